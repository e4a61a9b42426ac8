"""Whether `treeline ablate` finds what was made slow on purpose: one thing, the rest as it was.

`python -m benchmarks.planted_slowdowns --assets DIR [--size WxH] [--pairs N] [--out F.json]`

* bvh_quality: the truck's trees join triangles by lot, by a builder that only this file knows;
* foliage_any_hit: every material of the truck is alpha-tested, which all of it passes, and the test
  does its work many times over (benchmarks/planted_alpha.py);
* characters_update: the fox is built anew each frame instead of refitted.

DIR holds CesiumMilkTruck.glb and Fox.glb.

Each is measured as `treeline ablate` does, with the switches named beside it. Exit code 1 where the
first cause of a verdict is not the planted one.
"""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any
from unittest.mock import patch

import numpy as np
import typer

import bvh.blas
import bvh.builders
import passes.traverse_passes
from benchmarks.record import make_context, put_out
from bvh.blas_cache import BlasCache
from bvh.build import BuildOptions
from bvh.builders import Builder
from bvh.tree import EMPTY, Bounds, Tree, fit_bounds
from engine.gpu.device import Device, open_device
from engine.scene.pose import moves
from passes.frame_options import FrameOptions
from passes.option_list import ViewSettings
from passes.prepare import PreparedScene
from treeline import structures
from treeline.ablate import Ablation, ablate
from treeline.ablate_switches import Setup
from treeline.cli.console import Steps
from treeline.report_context import plain
from treeline.scenes import load

TRACED = ("half_resolution", "reflection", "shadow", "builder", "hit_grouping")
MOVING = ("half_resolution", "reflection", "shadow", "builder", "update", "hit_grouping")


def by_lot(bounds: Bounds, config: Any) -> Tree:
    """A balanced tree over the primitives in random order."""
    count = len(bounds)
    if count < 2:
        return fit_bounds(np.array([[~0 if count else EMPTY, EMPTY]], np.int32), bounds)
    order = np.random.default_rng(config).permutation(count)
    # A heap: inner nodes 0..count-2, then the leaves.
    slots = np.arange(1, 2 * count - 1).reshape(count - 1, 2)
    leaves = ~order[np.maximum(slots - (count - 1), 0)]
    return fit_bounds(np.where(slots < count - 1, slots, leaves).astype(np.int32), bounds)


BY_LOT = Builder("lot", by_lot, 7)


@dataclass(frozen=True, slots=True)
class Case:
    """`cause` is what has to come first."""

    cause: str
    scene: str
    build: Callable[[], BuildOptions]
    update: str = "refit"
    switches: tuple[str, ...] = TRACED
    mask_all: bool = False


CASES = (
    Case(
        "bvh_quality",
        "CesiumMilkTruck.glb",
        lambda: BuildOptions(builder=BY_LOT.name, reinsertion=0),
    ),
    Case(
        "foliage_any_hit",
        "CesiumMilkTruck.glb",
        lambda: BuildOptions(opacity="material"),
        switches=(*TRACED, "any_hit"),
        mask_all=True,
    ),
    Case("characters_update", "Fox.glb", BuildOptions, update="rebuild", switches=MOVING),
)


def measure(
    case: Case, assets: Path, device: Device, size: tuple[int, int], pairs: int
) -> Ablation:
    scene = load(assets / case.scene)
    if case.mask_all:
        masked = [replace(m, alpha_mode="MASK", alpha_cutoff=0.25) for m in scene.materials]
        scene = replace(scene, materials=tuple(masked))
    pose: dict[str, Any] = {}
    if moves(scene) and scene.animation is not None:
        pose = {"clip": scene.animation.clip(None).name, "time": 0.3}
    frame = FrameOptions(*size, gbuffer="rays", update=case.update)
    setup = Setup(scene, ViewSettings(frame, case.build()))

    def prepare(setup: Setup) -> PreparedScene:
        build, known = setup.settings.build, setup.settings.build.builder != BY_LOT.name
        return structures.build(
            setup.scene,
            build,
            setup.settings.group,
            device=device if known else None,
            cache=BlasCache() if known else None,
            or_cpu=True,
        ).prepared

    return ablate(
        device,
        setup,
        prepare,
        size,
        pose,
        Steps(None, False),
        pairs=pairs,
        only=case.switches,
        warmup_ms=0.0 if device.info.is_cpu else 1000.0,
    )


def main(
    assets: Annotated[Path, typer.Option(help="Where the two files are.")],
    size: str = "64x36",
    pairs: int = 8,
    adapter: str | None = None,
    out: Path | None = None,
) -> None:
    device = open_device(adapter)
    width, height = (int(part) for part in size.split("x"))
    cases: dict[str, Any] = {}
    with ExitStack() as planted:
        builders = (*bvh.builders.BUILDERS, BY_LOT)
        planted.enter_context(patch.object(bvh.builders, "BUILDERS", builders))
        planted.enter_context(patch.object(bvh.blas, "BUILDERS", builders))
        for case in CASES:
            accept = passes.traverse_passes._accept
            with ExitStack() as slow:
                if case.mask_all:
                    slow.enter_context(
                        patch.object(
                            passes.traverse_passes,
                            "_accept",
                            lambda asks, count, accept=accept: (
                                accept(asks, count)
                                if count or not asks
                                else "benchmarks.planted_alpha"
                            ),
                        )
                    )
                found = measure(case, assets, device, (width, height), pairs)
            first, base_ms = found.verdict.findings[0], found.verdict.base_ms
            print(f"{case.cause}: {first.cause} {first.effect_ms:.2f} of {base_ms:.2f} ms")
            cases[case.cause] = plain({"table": found.table, **found.verdict.facts()})
    context = make_context(device) | {"width": width, "height": height, "pairs": pairs}
    put_out({"context": context, "cases": cases}, out)
    wrong = [name for name, case in cases.items() if case["verdict"][0]["cause"] != name]
    if wrong:
        raise SystemExit(f"not found first: {', '.join(wrong)}")


if __name__ == "__main__":
    typer.run(main)
