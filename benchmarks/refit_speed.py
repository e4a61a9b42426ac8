"""Times the refit of a whole scene as one BLAS: every vertex new, guest bytes rewritten in place.

`python -m benchmarks.refit_speed [--scene F.glb] [--nodes auto] [--leaf 2] [--out F.json]`

`whole_ms` is one compute pass, the phases are passes of their own (so their sum is more). Times are
GPU timestamps; on CPU drivers the wall clock, each pass submitted and waited for. Medians with the
least and the greatest. Afterwards the bytes are compared with the twin's.
"""

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from benchmarks.record import make_context, write_record
from bvh.build import BuildOptions
from bvh.gpu.refit import GpuRefit
from bvh.gpu.refit_plan import block_vertices, make_plan
from bvh.gpu.refit_records import pyramid_levels
from bvh.gpu.refit_twins import refit
from engine.gpu.device import open_device
from engine.scene.records import VERTEX
from passes.deforming import blas_meshes
from passes.gpu_scene import GpuScene
from passes.prepare import prepare
from passes.skinned import vertex_triangles
from treeline.pass_times import time_passes
from treeline.scenes import load

WARMUP_MS = 1000.0


def main(
    scene: Annotated[Path | None, typer.Option(help="The embedded hall without.")] = None,
    builder: str = "sah",
    nodes: str = "auto",
    leaf: int = 2,
    repeats: int = 20,
    adapter: str | None = None,
    out: Path | None = None,
) -> None:
    """Prints the times and writes a record."""
    device = open_device(adapter)
    options = BuildOptions(builder=builder, nodes=nodes, leaf=leaf, reinsertion=0)
    prepared = prepare(load(scene), options, "all")
    number = int(np.argmax([stats.triangles for stats in prepared.bvh.blas_stats]))
    meshes = blas_meshes(prepared)[number]
    words = prepared.bvh.blas_words(number)
    # Seams of these meshes do not part: every vertex at one place moves alike.
    positions = np.ascontiguousarray(prepared.pack.vertices["position"])
    _, first, alike = np.unique(positions, axis=0, return_index=True, return_inverse=True)
    triangles = vertex_triangles(prepared.scene, meshes)
    numbers = first[alike.reshape(-1)].astype(np.uint32)
    plan = make_plan(words, block_vertices(words, triangles, numbers))
    gpu = GpuScene(device, prepared)
    stage = GpuRefit(
        device,
        plan,
        base_bytes=int(prepared.bvh.blas_bases[number]),
        vertex_words=VERTEX.size // 4,
        vertex_first=gpu.bases[2],
    )
    buffers = {"words": gpu.buffers["bvh"], "positions": gpu.buffers["geometry"]}
    phases = stage.phases(buffers)

    def whole(scope: Any) -> None:
        stage.encode(scope, buffers)

    warmup_ms = 0.0 if device.info.is_cpu else WARMUP_MS
    times = time_passes(device, [whole, *phases.values()], repeats, warmup_ms)
    spread = {
        name: {k: float(f(row)) for k, f in (("median", np.median), ("min", min), ("max", max))}
        for name, row in zip(("whole_ms", *phases), times, strict=True)
    }
    expected = words.copy()
    refit(plan, expected, positions)
    start = int(prepared.bvh.blas_bases[number]) // 4
    got = device.read(gpu.buffers["bvh"])[start : start + len(expected)]
    stats = prepared.bvh.blas_stats[number]
    record = {
        "context": make_context(device),
        "timing_source": device.timing_source,
        "scene": prepared.scene.name,
        "builder": builder,
        "triangles": stats.triangles,
        "blocks": plan.blocks,
        "nodes_fp16": stats.nodes_fp16,
        "nodes_fp32": stats.nodes_fp32,
        "dispatches": 2 + len(pyramid_levels(plan.blocks)),
        "words_unlike_the_twin": int((got != expected).sum()),
        "words_unlike_the_build": int((got != words).sum()),
        "repeats": repeats,
        "times": spread,
    }
    for key in ("scene", "triangles", "blocks", "dispatches", "times"):
        print(key, record[key])
    print("words unlike the twin", record["words_unlike_the_twin"])
    if out:
        write_record(out, record)


if __name__ == "__main__":
    typer.run(main)
