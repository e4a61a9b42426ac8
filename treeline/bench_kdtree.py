"""BVH against KD-tree over the same triangles, on the CPU: build, update, bytes, duplication, and
counted traversal for each kind of ray.

Both are built over the scene's instances, baked to world space, all opaque; the BVH is the guest
container that every other command traces. Times are wall-clock milliseconds of NumPy code on this
machine's CPU: they compare the two structures here, and say nothing of a GPU. Hits of both are
compared ray by ray.
"""

import datetime
import os
import platform
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bvh.build import Blas, BuildOptions, build_blas
from bvh.gpu.refit_plan import block_vertices, make_plan
from bvh.gpu.refit_twins import refit
from bvh.oracle import trace as trace_bvh
from bvh.rays import RayFlags, Rays
from bvh.raysets import KINDS, make_rayset
from bvh.scene_bvh import assemble
from bvh.tlas import BvhInstance
from bvh.triangles import keep_usable, triangle_bounds
from engine.gpu.errors import UserError
from engine.scene.scene import Scene
from treeline.kd_tree.build import KdTree
from treeline.kd_tree.build import build as build_kd_tree
from treeline.kd_tree.trace import trace as trace_kd_tree
from treeline.measure import Progress
from treeline.scenes import baked_triangles
from treeline.version import commit, version

F32 = NDArray[np.float32]

VERTEX_BYTES = 36  # of a triangle, in the KD-tree's own copy; the BVH's blocks hold theirs
T_TOLERANCE = 1e-5  # relative: both use one triangle test


@dataclass(frozen=True, slots=True)
class Comparison:
    """`rows` is one dict a structure, `rays` one a kind of ray and structure."""

    triangles: int
    rows: list[dict[str, Any]]
    rays: list[dict[str, Any]]

    @property
    def different(self) -> int:
        return sum(row["different"] for row in self.rays)


def compare(
    scene: Scene, options: BuildOptions, width: int, height: int, seed: int, progress: Progress
) -> Comparison:
    """Builds both and traces the rays of one `width` x `height` view through both. UserError for a
    scene without a usable triangle."""
    given = baked_triangles(scene)
    numbers = np.arange(len(given), dtype=np.uint32)
    kept = keep_usable(given, np.zeros(len(given), np.uint32), numbers)
    triangles = kept.positions
    if not len(triangles):
        raise UserError("the scene has no triangle with an area")
    progress.begin(f"building a KD-tree over {len(triangles):,} triangles")
    tree, kd_ms = _timed(lambda: build_kd_tree(triangle_bounds(triangles)))
    progress.begin("building the BVH")
    geometry, opaque = np.zeros(len(triangles), np.uint32), np.ones(1, np.bool_)
    blas, bvh_ms = _timed(
        lambda: build_blas(triangles, geometry, numbers[: len(triangles)], opaque, options)
    )
    progress.begin("refitting the BVH")
    refit_ms = _refit_ms(blas, triangles)
    rows = [_bvh_row(blas, bvh_ms, refit_ms), _kd_row(tree, len(triangles), kd_ms)]

    bvh = assemble([blas], ["scene"], [BvhInstance(0)], options)
    light = (scene.light.center, scene.light.half_u, scene.light.half_v)
    rays = []
    for kind in KINDS:
        progress.begin(f"tracing {kind} rays")
        made = make_rayset(
            kind, bvh, scene.camera.transform, scene.camera.y_fov, width, height, light, seed
        )
        rays += _trace_both(kind, made.rays, blas, tree, triangles)
    return Comparison(len(triangles), rows, rays)


def _timed(call: Callable[[], Any]) -> tuple[Any, float]:
    start = time.perf_counter()
    result = call()
    return result, 1e3 * (time.perf_counter() - start)


def _refit_ms(blas: Blas, triangles: F32) -> float:
    corners = np.arange(3 * len(triangles), dtype=np.uint32).reshape(-1, 3)
    positions = triangles.reshape(-1, 3)
    # Pairs name equal corners of two triangles, which are vertices of their own here.
    alike = np.unique(
        np.ascontiguousarray(positions).view(np.uint32).reshape(-1, 3), axis=0, return_inverse=True
    )[1].astype(np.uint32)
    plan = make_plan(blas.words, block_vertices(blas.words, [corners], alike.reshape(-1)))
    words = blas.words.copy()
    return _timed(lambda: refit(plan, words, positions))[1]


def _bvh_row(blas: Blas, build_ms: float, refit_ms: float) -> dict[str, Any]:
    stats = blas.stats
    return {
        "structure": "BVH",
        "build_ms": build_ms,
        "update_ms": refit_ms,
        "update": "refit",
        "bytes": stats.bytes,
        "bytes_per_triangle": stats.bytes / stats.triangles,
        "duplication": 1.0,
        "depth": stats.depth,
        "inner_nodes": stats.nodes_fp16 + stats.nodes_fp32,
        "leaves": stats.blocks,
    }


def _kd_row(tree: KdTree, triangles: int, build_ms: float) -> dict[str, Any]:
    leaves = int((tree.child < 0).sum())
    total = tree.bytes + VERTEX_BYTES * triangles
    return {
        "structure": "KD-tree",
        "build_ms": build_ms,
        "update_ms": build_ms,
        "update": "rebuild",
        "bytes": total,
        "bytes_per_triangle": total / triangles,
        "duplication": len(tree.references) / triangles,
        "depth": tree.depth,
        "inner_nodes": len(tree.axis) - leaves,
        "leaves": leaves,
    }


def _trace_both(
    kind: str, rays: Rays, blas: Blas, tree: KdTree, triangles: F32
) -> list[dict[str, Any]]:
    any_hit = kind == "shadow"
    by_bvh = trace_bvh(blas.words, rays, any_hit=any_hit, flags=RayFlags.OPAQUE)
    by_kd = trace_kd_tree(tree, triangles, rays, any_hit=any_hit)
    hit = np.isfinite(by_kd.t)
    different = hit != by_bvh.hit
    if not any_hit:
        both = hit & by_bvh.hit
        far = np.abs(by_kd.t[both] - by_bvh.t[both]) > T_TOLERANCE * np.abs(by_bvh.t[both])
        different[both] |= far
    counters = by_bvh.counters
    shared = {"kind": kind, "rays": len(rays), "hit_share": float(hit.mean())}
    return [
        {
            **shared,
            "structure": "BVH",
            "inner_nodes": float(counters.nodes.mean()),
            "leaves": None,  # a leaf is a block: its triangles are counted
            "triangle_tests": float(counters.triangle_tests.mean()),
            "different": int(different.sum()),
        },
        {
            **shared,
            "structure": "KD-tree",
            "inner_nodes": float(by_kd.nodes.mean()),
            "leaves": float(by_kd.leaves.mean()),
            "triangle_tests": float(by_kd.triangle_tests.mean()),
            "different": int(different.sum()),
        },
    ]


def context(
    scene: Scene, scene_name: str, options: BuildOptions, width: int, height: int, seed: int
) -> dict[str, Any]:
    """Where the numbers come from. No adapter: nothing here runs on one."""
    return {
        "schema": 1,
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "version": version(),
        "commit": commit(),
        "scene": scene_name,
        "scene_sha256": scene.sha256,
        "builder": options.builder,
        "nodes": options.nodes,
        "leaf": options.leaf,
        "width": width,
        "height": height,
        "seed": seed,
        "timing_source": "wall-clock, CPU",
        "cpu": platform.processor() or platform.machine(),
        "num_cpus": os.cpu_count() or 0,
        "python": platform.python_version(),
        "numpy": np.__version__,
    }
