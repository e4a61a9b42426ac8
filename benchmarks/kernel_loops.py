"""How much faster a frame's rays are traced by two loops and by three than by one.

`python -m benchmarks.kernel_loops [--scene F --assets D] [--size WxH] [--turns N] [--adapter NAME]
[--out F.json]`

Whole frames with the same structure take turns, as in `treeline tune`; their rays have to hit the
same to the last one. A ratio is of paired turns, with its interval. This is what the defaults of
`bvh/gpu/default_kernel.py` rest on.
"""

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from benchmarks.record import frame_context, put_out
from bvh.blas import BuildOptions
from bvh.blas_cache import BlasCache
from bvh.gpu.default_kernel import LOOPS, default_kernel
from engine.gpu.device import open_device
from passes.frame_options import FrameOptions
from passes.prepare import PreparedScene
from passes.ray_kernel import RayKernel
from passes.rays import frame_rays
from treeline import structures
from treeline.cli.options import parse_size
from treeline.scenes import load
from treeline.tune.blocks import Measured, gain
from treeline.tune.cases import Case, Recipe
from treeline.tune.measure import FrameMeasurer

GPU_WARMUP_MS = 1000.0


def facts(of: Measured, one: Measured) -> dict[str, Any]:
    """Of each ray type and of all: ms of either, and how many times as fast."""
    rows = {}
    for ray in (*of.ms, None):
        rows[ray or "all"] = {
            "ms": float(np.exp(np.median(of.logs(ray)))),
            "one_loop_ms": float(np.exp(np.median(one.logs(ray)))),
            **gain(of, one, ray).facts(),
        }
    return rows


def main(
    scene: Annotated[Path | None, typer.Option(help="Default: the hall.")] = None,
    assets: Annotated[Path | None, typer.Option(help="Where a scene file's models lie.")] = None,
    size: str = "640x360",
    turns: Annotated[int, typer.Option(min=2)] = 8,
    adapter: str | None = None,
    out: Path | None = None,
) -> None:
    device = open_device(adapter)
    loaded = load(scene, [str(assets)] if assets else [])
    width, height = parse_size(size)

    def build(recipe: Recipe) -> PreparedScene:
        made = structures.build(
            loaded, recipe.build, recipe.group, device=device, cache=BlasCache(), or_cpu=True
        )
        return made.prepared

    options = FrameOptions(width, height)
    warmup_ms = 0.0 if device.info.is_cpu else GPU_WARMUP_MS
    rays = frame_rays(options)
    cases = [
        Case.of(Recipe(BuildOptions()), {ray.name: RayKernel(loops=loops) for ray in rays})
        for loops in LOOPS
    ]
    measurer = FrameMeasurer(device, options, {}, build, warmup_ms)
    results = dict(zip(LOOPS, measurer.measure("loops", cases, turns).results, strict=True))
    record = {
        "context": {
            **frame_context(device, scene, loaded, width, height),
            "turns": turns,
            "default_loops": default_kernel(device.info).loops,
        },
        "loops": {
            name: {"refused": found.refused}
            if found.refused
            else {
                "hits": {ray: hits.facts() for ray, hits in found.hits.items()},
                "rays": facts(found, results["one"]),
            }
            for name, found in results.items()
            if name != "one"
        },
    }
    put_out(record, out)


if __name__ == "__main__":
    typer.run(main)
