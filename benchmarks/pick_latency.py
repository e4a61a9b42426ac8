"""How long a pick in the viewer takes to answer.

`python -m benchmarks.pick_latency [--scene F.glb] [--width 1920] [--height 1080] [--adapter NAME]`

Draws one frame, then picks random pixels as the viewer does. `rays` reads a pixel's G-buffer, rays
and results from the GPU; `pick` does so and finds the path through the structure; then come the
steps of a ray by the oracle, and the same ray by the GPU. Wall clock, `cpu` of all threads.
"""

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from bvh.build import BuildOptions
from engine.gpu.device import open_device
from passes.hybrid import FrameOptions, HybridFrame
from passes.prepare import prepare
from treeline.scenes import load
from treeline.view.pick import pick
from treeline.view.pixel_rays import pixel_rays
from treeline.view.ray_walk import RayWalk
from treeline.view.step_check import check_steps


def main(
    scene: Annotated[Path | None, typer.Option(help="The embedded hall without.")] = None,
    width: int = 1920,
    height: int = 1080,
    picks: int = 40,
    adapter: str | None = None,
) -> None:
    """Prints the times; the first of each has kernels to compile."""
    device = open_device(adapter)
    prepared = prepare(load(scene), BuildOptions(reinsertion=0), device=device)
    frame = HybridFrame(device, prepared, FrameOptions(width, height))
    stats = frame.run()
    spent: dict[str, list[tuple[float, float]]] = {}

    def timed(name: str, action: Callable[[], Any]) -> Any:
        begun, cpu = time.perf_counter(), time.process_time()
        result = action()
        times = time.perf_counter() - begun, time.process_time() - cpu
        spent.setdefault(name, []).append((1e3 * times[0], 1e3 * times[1]))
        return result

    rng = np.random.default_rng(0)
    for number in rng.integers(width * height, size=picks).tolist():
        y, x = divmod(number, width)
        timed("rays", partial(pixel_rays, frame, x, y))
        for ray in timed("pick", partial(pick, frame, x, y)).rays:
            walk = timed("steps", partial(RayWalk, ray))
            timed("verify", partial(check_steps, device, ray, list(walk.steps)))
    rays = ", ".join(f"{item.rays:,} {name}" for name, item in stats.rays.items())
    print(f"{device.info.adapter}, {prepared.scene.name} at {width}x{height}: {rays} rays")
    for name, pairs in spent.items():
        wall, cpu = np.array(pairs[1:]).T
        print(
            f"{name:>8}: median {np.median(wall):6.1f} ms, p95 {np.percentile(wall, 95):6.1f} ms, "
            f"cpu {np.median(cpu):6.1f} ms; the first {pairs[0][0]:6.1f} ms"
        )


if __name__ == "__main__":
    typer.run(main)
