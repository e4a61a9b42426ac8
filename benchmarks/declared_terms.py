"""Whether switching each option changes the terms of the cost that it declares, and no others.

`python -m benchmarks.declared_terms [--scene F] [--assets DIR] [--size WxH] [--only NAME,NAME]
[--minutes N] [--out F.json]`

Every option that a user may change is set to each of its other values (a number to a neighbour and
to its ends), one at a time, and counted frames are compared ray by ray as `treeline ablate` does it
(treeline/ablate_terms.py): the terms that counts decide, which are rays, any-hit, nodes and layout
bytes. Exit code 1 where one changes that is neither declared nor known to follow.

It is bounded: values that would make a structure of more than MOST_TRIANGLES (copies of shared
meshes) are refused with that number, and what there is no time for is named. The record is written
anew after each option, so that what was found before an end by force is there.
"""

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from benchmarks.record import frame_context, put_out
from bvh.blas_cache import BlasCache
from engine.gpu.device import open_device
from engine.gpu.errors import UserError
from engine.scene.pose import moves
from engine.scene.scene import Scene
from passes.frame_options import FrameOptions
from passes.grouping import group_members
from passes.option_list import OPTIONS, Option, ViewSettings, find_option
from passes.prepare import PreparedScene
from treeline.ablate_switches import Setup
from treeline.ablate_terms import counted_changes
from treeline.ablate_variants import Variants
from treeline.cli.options import parse_size
from treeline.counted_rays import CountedRays
from treeline.scenes import load
from treeline.shared_builds import SharedBuilds
from treeline.time_limit import NO_TIME, TimeLimit

MOST_TRIANGLES = 3_000_000  # of a structure: three times the kitchen frame's


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


def group_triangles(scene: Scene, group: str) -> int:
    """Of all BLASes of a scene so grouped: members of the group are copied, others stored once."""
    members = group_members(scene, group)
    inside = set(members)
    alone = {x.mesh for i, x in enumerate(scene.instances) if i not in inside}
    meshes = [*(scene.instances[i].mesh for i in members), *alone]
    return sum(len(scene.meshes[mesh].triangles) for mesh in meshes)


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
    minutes: Annotated[float | None, typer.Option(help="For all options together.")] = None,
    out: Path | None = None,
) -> None:
    limit = TimeLimit.of(minutes)
    device = open_device()
    loaded = load(scene, assets or ())
    chosen = [find_option(name) for name in only.split(",")] if only else list(OPTIONS)
    pose: dict[str, Any] = {}
    if moves(loaded) and loaded.animation is not None:
        pose = {"clip": loaded.animation.clip(None).name, "time": 0.3}

    builds = SharedBuilds(device, BlasCache())

    def prepare(setup: Setup) -> PreparedScene:
        settings = setup.settings
        triangles = group_triangles(setup.scene, settings.group)
        if triangles > MOST_TRIANGLES:
            raise UserError(
                f"a structure of {triangles:,} triangles; at most {MOST_TRIANGLES:,} are built here"
            )
        return builds.prepare(setup.scene, settings.build, settings.group)

    width, height = parse_size(size)
    variants = Variants(device, prepare, (width, height), pose)
    frame = FrameOptions(width, height, gbuffer="rays", occlusion=True)
    setup = Setup(loaded, ViewSettings(frame))
    base = variants.count(setup)
    context = frame_context(device, scene, loaded, width, height)
    rows: list[dict[str, Any]] = []
    left_out: list[str] = []
    for option in chosen:
        for value in other_values(option, setup.settings):
            if limit.left() < 0:
                left_out.append(f"{option.name} {value}")
                continue
            try:
                rows.append(compare_option(variants, setup, base, option, value))
            except UserError as error:  # what this adapter or scene cannot do
                rows.append({"option": option.name, "value": value, "refused": str(error)})
            row = rows[-1]
            told = row.get("refused") or f"undeclared: {', '.join(row['undeclared']) or 'none'}"
            print(f"{option.name} {value}: {told}", flush=True)
        if out is not None:
            put_out({"context": context, "options": rows, "left_out": left_out}, out)
    for name in left_out:
        print(f"{name}: {NO_TIME}")
    if out is None:
        put_out({"context": context, "options": rows, "left_out": left_out}, None)
    wrong = [f"{row['option']} {row['value']}" for row in rows if row.get("undeclared")]
    if wrong:
        raise SystemExit(f"undeclared terms: {', '.join(wrong)}")


if __name__ == "__main__":
    typer.run(main)
