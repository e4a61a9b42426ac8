"""Times what a frame of many moving objects rebuilds on the GPU: small BLASes in one batch, then
TLASes over them, from instance records to guest bytes.

`python -m benchmarks.build_instances [--meshes 500] [--triangles 200] [--instances N ...]`

Meshes are bumpy sheets, instances random rotations and places. `whole_ms` is one pass with all
phases, the phases are passes of their own. `single_ms` is one BLAS of the same mesh by the builder
for large meshes: the batch has to stay far below `meshes` of them. Every scene is validated.
Times as in `treeline.pass_times`.
"""

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from benchmarks.record import make_context, put_out
from bvh.build import BuildOptions
from bvh.gpu.blas_builder import GpuBlasBuilder
from bvh.gpu.small_blas import GpuSmallBlas, SmallMesh, small_blas_bytes
from bvh.gpu.tlas import GpuTlas
from bvh.scene_bvh import SceneBvh
from bvh.tlas import BvhInstance
from bvh.validate import validate
from engine.gpu.device import Device, open_device
from treeline.pass_times import spread, time_passes

WARMUP_MS = 1000.0
COUNTS = (290, 1000, 10_000, 100_000)
SINGLE = BuildOptions(builder="lbvh", pairing="near", reinsertion=0)


def bumpy_sheet(count: int, rng: np.random.Generator) -> SmallMesh:
    """`count` triangles of a grid over the unit square, two a cell."""
    side = int(np.ceil(np.sqrt(count / 2)))
    x, y = np.meshgrid(*2 * [np.linspace(0, 1, side + 1)])
    points = np.stack([x, y, 0.3 * rng.random(x.shape)], axis=-1).astype(np.float32)
    a, b, c, d = points[:-1, :-1], points[1:, :-1], points[1:, 1:], points[:-1, 1:]
    cells = np.stack([np.stack([a, b, c], axis=2), np.stack([a, c, d], axis=2)], axis=2)
    ids = np.arange(count, dtype=np.uint32)
    return SmallMesh(cells.reshape(-1, 3, 3)[:count], 0 * ids, ids, np.ones(1, np.bool_))


def random_instances(count: int, meshes: int, rng: np.random.Generator) -> list[BvhInstance]:
    """Rotated and placed in a cube that they fill to about a third."""
    extent = 1.5 * count ** (1 / 3)
    turns = np.linalg.qr(rng.normal(size=(count, 3, 3)))[0]
    out = []
    for i in range(count):
        matrix = np.eye(4)
        matrix[:3, :3] = turns[i]
        matrix[:3, 3] = extent * rng.random(3)
        out.append(BvhInstance(i % meshes, matrix, first_object=i))
    return out


def measure_phases(
    device: Device, builder: GpuSmallBlas | GpuTlas, buffers: Any, repeats: int, warmup_ms: float
) -> dict[str, Any]:
    """Times of one builder's phases and of all in one pass."""
    phases = builder.phases(buffers)
    whole = time_passes(device, [lambda s: builder.encode(s, buffers)], repeats, warmup_ms)[0]
    times = time_passes(device, list(phases.values()), repeats, warmup_ms)
    return {
        "whole_ms": spread(whole),
        "phases_ms": {name: spread(row) for name, row in zip(phases, times, strict=True)},
    }


def main(
    meshes: Annotated[int, typer.Option(min=1)] = 500,
    triangles: Annotated[int, typer.Option(min=1, help="of each mesh")] = 200,
    instances: Annotated[
        list[int] | None, typer.Option(min=1, help="default: 290, 1000, 10000 and 100000")
    ] = None,
    repeats: Annotated[int, typer.Option(min=1)] = 20,
    adapter: Annotated[str | None, typer.Option(help="index or part of the name")] = None,
    warmup_ms: Annotated[float, typer.Option(min=0)] = WARMUP_MS,
    out: Annotated[Path | None, typer.Option(help="record to write")] = None,
) -> None:
    """Prints the record, or writes it to `out`."""
    device = open_device(adapter)
    counts = instances or COUNTS
    warmup_ms = 0.0 if device.info.is_cpu else warmup_ms
    rng = np.random.default_rng(1)
    batch = [bumpy_sheet(triangles, rng) for _ in range(meshes)]
    small = GpuSmallBlas(device, meshes, meshes * triangles)
    small.upload(batch)
    tlas = GpuTlas(device, max(counts), small.resources["blases"], meshes)
    end = tlas.reserved_bytes + small_blas_bytes([triangles] * meshes)
    buffers = {"words": device.buffer("words", end), "parents": device.buffer("links", end // 16)}
    small.set_output(tlas.reserved_bytes, end)
    single = GpuBlasBuilder(device, triangles, SINGLE)
    one = batch[0]
    single.upload(one.triangles, one.geometry, one.primitive, one.opaque)
    alone = time_passes(device, [single.encode], repeats, warmup_ms)[0]
    row = measure_phases(device, small, buffers, repeats, warmup_ms)
    report = small.read()
    rows: dict[str, Any] = {}
    for count in counts:
        placed = random_instances(count, meshes, rng)
        tlas.upload(placed)
        rows[str(count)] = measure_phases(device, tlas, buffers, repeats, warmup_ms)
        scene = SceneBvh(
            device.read(buffers["words"])[: end // 4],
            device.read(buffers["parents"])[: end // 64],
            report.bases.astype(np.uint32),
            (),
            ("sheet",) * meshes,
            tuple(placed),
            BuildOptions(),
        )
        made = tlas.read(buffers["words"])
        rows[str(count)].update(kept=made.kept, bytes=made.bytes, faults=len(validate(scene)))
    record = {
        "context": make_context(device),
        "timing_source": device.timing_source,
        "repeats": repeats,
        "small_blas": {
            **row,
            "meshes": meshes,
            "triangles_each": triangles,
            "single_ms": spread(alone),
            "bytes_a_triangle": round(
                (report.end_bytes - small.base_bytes) / (meshes * triangles), 2
            ),
        },
        "tlas": rows,
    }
    put_out(record, out)


if __name__ == "__main__":
    typer.run(main)
