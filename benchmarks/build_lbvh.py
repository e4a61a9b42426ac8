"""Times the phases of the LBVH build on the GPU, from triangles' boxes in a buffer to a four-wide
tree.

`python -m benchmarks.build_lbvh [--scene F.glb | --count N] [--repeats 20] [--out F.json]`

All instances of a scene are baked into one set of triangles; without a scene, N random triangles
of many sizes in a unit cube. Every code length is built; `whole_ms` is one pass with all phases,
the phases are passes of their own (so their sum is more). Times are GPU timestamps; on CPU drivers
the wall clock, each pass submitted and waited for. Medians with the least and the greatest.
"""

import json
import time
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from benchmarks.record import make_context, write_record
from bvh.builders.lbvh import LbvhConfig
from bvh.gpu.build_records import box_buffers, write_boxes
from bvh.gpu.collapse import MODES, GpuCollapse
from bvh.gpu.lbvh import GpuLbvh
from bvh.gpu.tree_order import TreeOrder
from bvh.sah import sah_cost
from bvh.tree import EMPTY, Tree, tree_levels
from bvh.triangles import triangle_bounds
from engine.gpu.device import Device, open_device
from engine.gpu.timer import PassTimer
from engine.scene.load import load_scene
from engine.scene.scene import Scene

F32 = NDArray[np.float32]

CODES = {
    "30 bits": LbvhConfig(10, 0),
    "31 bits with size": LbvhConfig(9, 4),
    "63 bits": LbvhConfig(21, 0),
    "62 bits with size": LbvhConfig(18, 8),
}
WARMUP_MS = 1000.0


def baked_triangles(scene: Scene) -> F32:
    """[n, 3, 3] world-space triangles of every instance."""
    parts = []
    for instance in scene.instances:
        mesh = scene.meshes[instance.mesh]
        points = mesh.positions @ instance.transform[:3, :3].T + instance.transform[:3, 3]
        parts.append(points.astype(np.float32)[mesh.triangles])
    return np.concatenate(parts)


def random_triangles(count: int, seed: int = 1) -> F32:
    """[n, 3, 3] triangles of sizes from 1e-4 to 1e-1 in a unit cube."""
    rng = np.random.default_rng(seed)
    size = 10.0 ** rng.uniform(-4, -1, (count, 1, 1))
    return (rng.random((count, 1, 3)) + size * rng.normal(size=(count, 3, 3))).astype(np.float32)


def time_passes(device: Device, passes: list[Any], repeats: int, warmup_ms: float) -> Any:
    """[passes, repeats] milliseconds of passes that run in order, after a warm-up: an idle GPU
    clocks down."""
    timer = PassTimer(device, len(passes))
    by_wall = device.timing_source == "wall-clock"

    def once() -> list[float]:
        if by_wall:
            times = []
            for encode in passes:
                start = time.perf_counter()
                _submit(device, [encode], None)
                device.wait()
                times.append(1e3 * (time.perf_counter() - start))
            return times
        _submit(device, passes, timer)
        spans = timer.read_ms()
        return list(spans[:, 1] - spans[:, 0])

    start = time.perf_counter()
    once()
    while not by_wall and 1e3 * (time.perf_counter() - start) < warmup_ms:
        once()
    return np.array([once() for _ in range(repeats)]).T


def _submit(device: Device, passes: list[Any], timer: PassTimer | None) -> None:
    encoder = device.wgpu.create_command_encoder(label="build")
    for index, encode in enumerate(passes):
        writes = timer.writes(index) if timer else None
        extra = {"timestamp_writes": writes} if writes else {}
        scope = encoder.begin_compute_pass(label="build", **extra)
        encode(scope)
        scope.end()
    if timer:
        timer.resolve(encoder)
    device.wgpu.queue.submit([encoder.finish()])


def spread(times: NDArray[np.float64]) -> dict[str, float]:
    """Median, least and greatest of one row of times."""
    values = {"median": np.median(times), "min": times.min(), "max": times.max()}
    return {name: round(float(value), 4) for name, value in values.items()}


def measure(
    device: Device, triangles: F32, config: LbvhConfig, repeats: int, warmup_ms: float
) -> dict[str, Any]:
    """One row of the record."""
    before = device.allocated_bytes
    builder = GpuLbvh(device, len(triangles), config)
    order = TreeOrder(device, len(triangles))
    collapses = {mode: GpuCollapse(device, len(triangles), mode) for mode in MODES}
    scratch = device.allocated_bytes - before
    kept = triangle_bounds(triangles[np.isfinite(triangles).all(axis=(1, 2))])
    inputs = box_buffers(device, len(triangles))
    write_boxes(device, inputs, kept)
    phases = builder.phases(inputs)
    tree_buffers = builder.tree_buffers
    phases["levels"] = partial(order.encode_levels, tree_buffers=tree_buffers)
    phases["subtrees"] = partial(order.encode_subtrees, tree_buffers=tree_buffers)
    for mode, item in collapses.items():
        phases[f"collapse {mode}"] = partial(
            item.encode, tree_buffers=tree_buffers, order_buffers=order.buffers
        )

    def everything(scope: Any) -> None:
        builder.encode(scope, inputs)
        order.encode(scope, tree_buffers, ranges=False)
        collapses["best"].encode(scope, tree_buffers, order.buffers)

    whole = time_passes(device, [everything], repeats, warmup_ms)[0]
    times = time_passes(device, list(phases.values()), repeats, warmup_ms)
    result = builder.read()
    wide = {mode: item.read(tree_buffers) for mode, item in collapses.items()}
    return {
        "grid_bits": config.grid_bits,
        "size_bits": config.size_bits,
        "whole_ms": spread(whole),
        "phases_ms": {name: spread(row) for name, row in zip(phases, times, strict=True)},
        "kept": len(kept),
        "depth": len(tree_levels(result.children)),
        "sah_binary": round(sah_cost(result, kept), 3),
        "sah_wide": {mode: round(sah_cost(tree, kept), 3) for mode, tree in wide.items()},
        "fill": {mode: round(tree_fill(tree), 3) for mode, tree in wide.items()},
        "buffers_bytes": scratch,
    }


def tree_fill(tree: Tree) -> float:
    """Used slots a node."""
    return float((tree.children != EMPTY).sum() / len(tree.children))


def main(
    scene: Annotated[Path | None, typer.Option(help="model file; its triangles are baked")] = None,
    count: Annotated[int, typer.Option(help="random triangles when there is no scene")] = 100_000,
    repeats: Annotated[int, typer.Option(min=1)] = 20,
    adapter: Annotated[str | None, typer.Option(help="index or part of the name")] = None,
    warmup_ms: Annotated[float, typer.Option(min=0)] = WARMUP_MS,
    out: Annotated[Path | None, typer.Option(help="record to write")] = None,
) -> None:
    """Prints the record, or writes it to `out`."""
    device = open_device(adapter)
    loaded = load_scene(scene) if scene else None
    triangles = baked_triangles(loaded) if loaded else random_triangles(count)
    record = {
        "context": make_context(device),
        "timing_source": device.timing_source,
        "repeats": repeats,
        "scene": loaded.name if loaded else "random triangles",
        "scene_sha256": loaded.sha256 if loaded else None,
        "triangles": len(triangles),
        "rows": {
            name: measure(device, triangles, config, repeats, warmup_ms)
            for name, config in CODES.items()
        },
    }
    if out:
        write_record(out, record)
    else:
        print(json.dumps(record, indent=1))


if __name__ == "__main__":
    typer.run(main)
