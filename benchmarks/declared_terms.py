"""Whether switching each option changes the terms of the cost that it declares, and no others.

`python -m benchmarks.declared_terms [--scene F] [--assets DIR] [--size WxH] [--only NAME,NAME]
[--out F.json]`

Every option that a user may change is set to each of its other values (a number to a neighbour and
to its ends), one at a time, and counted frames are compared ray by ray as `treeline ablate` does it
(treeline/ablate_terms.py): the terms that counts decide, which are rays, any-hit, nodes and layout
bytes. Exit code 1 where one changes that is neither declared nor known to follow.
"""

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from benchmarks.record import make_context, put_out
from bvh.blas_cache import BlasCache
from engine.gpu.device import open_device
from engine.gpu.errors import UserError
from engine.scene.pose import moves
from passes.frame_options import FrameOptions
from passes.option_list import OPTIONS, Option, ViewSettings, find_option
from passes.prepare import PreparedScene
from treeline import structures
from treeline.ablate_variants import Variants
from treeline.ablate_switches import Setup
from treeline.ablate_terms import counted_changes
from treeline.cli.options import parse_size
from treeline.counted_rays import CountedRays
from treeline.scenes import load


def other_values(option: Option, settings: ViewSettings) -> list[Any]:
    """What the option may be set to instead."""
    value = option.get(settings)
    if option.kind == "choice":
        return [choice for choice in option.choices if choice != value]
    if option.kind == "flag":
        return [not value]
    near = value + option.step if value + option.step <= option.high else value - option.step
    ends = (type(value)(option.low), type(value)(option.high))
    return list(dict.fromkeys(v for v in (near, *ends) if v != value))


def compare_option(
    variants: Variants, setup: Setup, base: CountedRays, option: Option, value: Any
) -> dict[str, Any]:
    """What setting it changes: terms that it declares, terms that follow, others."""
    settings = option.set(setup.settings, value)
    found = counted_changes(base, variants.count(replace(setup, settings=settings)))
    follows = dict(option.follows)
    return {
        "option": option.name,
        "value": value,
        "declared": option.cost_term,
        "changes": found.changes,
        "follows": {term: follows[term] for term in found.changes if term in follows},
        "undeclared": [t for t in found.changes if t != option.cost_term and t not in follows],
        "unjudged": found.unjudged,
    }


def main(
    scene: Annotated[Path | None, typer.Option(help="Default: the hall.")] = None,
    assets: Annotated[list[str] | None, typer.Option()] = None,
    size: str = "64x36",
    only: str = "",
    out: Path | None = None,
) -> None:
    device = open_device()
    loaded = load(scene, assets or ())
    chosen = [find_option(name) for name in only.split(",")] if only else list(OPTIONS)
    pose: dict[str, Any] = {}
    if moves(loaded) and loaded.animation is not None:
        pose = {"clip": loaded.animation.clip(None).name, "time": 0.3}

    def prepare(setup: Setup) -> PreparedScene:
        settings, cache = setup.settings, BlasCache()
        return structures.build(
            setup.scene, settings.build, settings.group, device=device, cache=cache, or_cpu=True
        ).prepared

    width, height = parse_size(size)
    variants = Variants(device, prepare, (width, height), pose)
    frame = FrameOptions(width, height, gbuffer="rays", occlusion=True)
    setup = Setup(loaded, ViewSettings(frame))
    base = variants.count(setup)
    rows: list[dict[str, Any]] = []
    for option in chosen:
        for value in other_values(option, setup.settings):
            try:
                rows.append(compare_option(variants, setup, base, option, value))
            except UserError as error:  # what this adapter or scene cannot do
                rows.append({"option": option.name, "value": value, "refused": str(error)})
            row = rows[-1]
            told = row.get("refused") or f"undeclared: {', '.join(row['undeclared']) or 'none'}"
            print(f"{option.name} {value}: {told}", flush=True)
    context = make_context(device) | {
        "scene": "hall" if scene is None else scene.name,
        "scene_sha256": loaded.sha256,
        "width": width,
        "height": height,
    }
    put_out({"context": context, "options": rows}, out)
    wrong = [f"{row['option']} {row['value']}" for row in rows if row.get("undeclared")]
    if wrong:
        raise SystemExit(f"undeclared terms: {', '.join(wrong)}")


if __name__ == "__main__":
    typer.run(main)
