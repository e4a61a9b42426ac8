"""Fast traversal against contract traversal, every disagreement listed and explained, as a record.

    python -m benchmarks.differential --out F.json [--size 320x180] [scene.glb ...]

Each scene (the embedded hall always) with primary, mirror, diffuse and shadow rays; each against
`chapter` and `gpurt` at the default growth. Then leaks and double hits of rays from inside a closed
mesh at its vertices and edges, for each mode and growth. Reasons: `bvh.disagreements`.
"""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.record import make_context, write_record
from bvh.build import BuildOptions, build_blas
from bvh.contract.cases import RULES
from bvh.disagreements import ALLOWED, F64, REASONS, U32, Triangles, find
from bvh.gpu.default_kernel import default_kernel
from bvh.gpu.trace_rays import RayTracer, Variant
from bvh.layout import DEFAULT_GROWTH
from bvh.rays import RayFlags, Rays, make_rays
from bvh.raysets import KINDS, make_rayset
from bvh.scene_bvh import SceneBvh, assemble
from bvh.tlas import BvhInstance
from engine.gpu.device import Device, open_device
from passes.prepare import PreparedScene, prepare
from treeline.scenes import load

Kernels = dict[tuple[bool, str], RayTracer]  # by any-hit and "fast" or the rule set

WATERTIGHT_RAYS = 100_000
# (name, variant settings): what the closed mesh is traced with.
MODES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("fast", {}),
    *((f"chapter, growth {g}", {"traversal": "contract", "growth": g}) for g in (0, 1, 2, 3, 6)),
    *(
        (f"gpurt, growth {g}", {"traversal": "contract", "rules": "gpurt", "growth": g})
        for g in (0, 2, 6)
    ),
)


def scene_triangles(prepared: PreparedScene) -> Triangles:
    """World-space corners of what was traced, float64."""
    pack = prepared.pack
    positions = np.asarray(pack.vertices["position"], np.float64)
    indices = np.asarray(pack.indices).reshape(-1, 3)
    to_world = pack.objects["object_to_world"].astype(np.float64)

    def corners(objects: U32, primitives: U32) -> F64:
        rows = pack.objects["first_triangle"][objects].astype(np.int64) + primitives
        points = positions[indices[rows]]
        matrix = to_world[objects]
        moved = np.einsum("nij,nkj->nki", matrix[:, :, :3], points) + matrix[:, None, :, 3]
        return np.asarray(moved, np.float64)

    return corners


def compare_scene(
    device: Device,
    name: str,
    prepared: PreparedScene,
    size: tuple[int, int],
    kinds: Iterable[str] = KINDS,
    rules: Iterable[str] = RULES,
    seed: int = 1,
    kernels: Kernels | None = None,
) -> list[dict[str, Any]]:
    """One row a ray kind and rule set. `kernels` keeps what was compiled from scene to scene."""
    view, bvh = prepared.scene, prepared.bvh
    light = (view.light.center, view.light.half_u, view.light.half_v)
    triangles = scene_triangles(prepared)
    kernels = {} if kernels is None else kernels
    for kernel in kernels.values():
        kernel.bind(bvh.words)

    def tracer(any_hit: bool, mode: str) -> RayTracer:
        if (any_hit, mode) not in kernels:
            variant = Variant(mode, any_hit=any_hit, has_alpha=False)
            if mode == "fast":
                variant = replace(variant, loops=default_kernel(device.info).loops)
            else:
                variant = replace(variant, traversal="contract", rules=mode)
            kernels[any_hit, mode] = RayTracer(device, bvh.words, variant, stack=64)
        return kernels[any_hit, mode]

    rows = []
    for kind in kinds:
        camera = view.camera
        rayset = make_rayset(kind, bvh, camera.transform, camera.y_fov, *size, light, seed)
        rays, any_hit = rayset.rays, rayset.any_hit
        fast = tracer(any_hit, "fast").trace(rays)
        for mode in rules:
            contract = tracer(any_hit, mode).trace(rays)
            found = find(rays, fast.hits, contract.hits, triangles, any_hit)
            reasons = Counter(item.reason for item in found)
            rows.append(
                {
                    "scene": name,
                    "rays": kind,
                    "rules": mode,
                    "growth": DEFAULT_GROWTH,
                    "count": len(rays),
                    "hits": int((fast.hits["object"] != 0xFFFFFFFF).sum()),
                    "failures": [*fast.failures, *contract.failures],
                    "differ": len(found),
                    "reasons": {reason: reasons[reason] for reason in REASONS},
                    "fast_ms": float(fast.ms),
                    "contract_ms": float(contract.ms),
                    "listed": [{**asdict(item), "text": str(item)} for item in found],
                }
            )
            print(f"{name} {kind} {mode}: {len(found)} of {len(rays):,} differ", file=sys.stderr)
    return rows


def closed_mesh(seed: int = 3) -> tuple[F64, SceneBvh]:
    """A sphere of 1,280 triangles turned out of every axis: corners [m, 3, 3] float32, and its
    scene."""
    import trimesh

    sphere = trimesh.creation.icosphere(subdivisions=3)
    turn = trimesh.transformations.random_rotation_matrix(np.random.default_rng(seed).random(3))
    vertices = (sphere.vertices @ turn[:3, :3].T).astype(np.float32)
    corners = vertices[sphere.faces]
    count = len(corners)
    blas = build_blas(
        corners,
        np.zeros(count, np.uint32),
        np.arange(count, dtype=np.uint32),
        np.ones(1, np.bool_),
        BuildOptions(nodes="fp32", leaf=1),  # the tightest boxes
    )
    return corners, assemble([blas], ["sphere"], [BvhInstance(0, np.eye(4))])


def edge_rays(corners: Any, count: int, seed: int = 4) -> Rays:
    """From inside to vertices and edge midpoints, half each; as near as float32 can aim."""
    rng = np.random.default_rng(seed)
    triangle, corner = rng.integers(0, len(corners), count), rng.integers(0, 3, count)
    first = corners[triangle, corner]
    second = corners[triangle, (corner + 1) % 3]
    target = np.where((np.arange(count) % 2 == 0)[:, None], first, (first + second) / 2)
    origin = rng.uniform(-0.5, 0.5, (count, 3))
    return make_rays(origin, target - origin)


def watertight(
    device: Device, count: int = WATERTIGHT_RAYS, modes: Iterable[str] = tuple(dict(MODES))
) -> list[dict[str, Any]]:
    """Leaks and double hits of rays that leave a closed convex mesh at its edges and vertices:
    each has to cross it exactly once.

    chapter's triangle rule gives every such ray one owner; its box test with little growth still
    loses some, because the owner of a ray that float32 puts on an edge may be the triangle just
    beside it, whose tight box the ray passes by a few ULPs. gpurt's triangle rule is inclusive on
    both sides of an edge and rounds them apart.
    """
    corners, bvh = closed_mesh()
    rays = edge_rays(corners, count)
    rows = []
    for name in modes:
        settings = dict(MODES)[name]
        variant = Variant(name, flags=int(RayFlags.NON_OPAQUE))
        variant = replace(variant, **(settings or {"loops": default_kernel(device.info).loops}))
        tracer = RayTracer(device, bvh.words, variant, count_all=True, stack=64)
        trace = tracer.trace(rays)
        crossings = trace.hits["instance"]
        rows.append(
            {
                "mode": name,
                "rays": count,
                "leaks": int((crossings == 0).sum()),
                "double_hits": int((crossings > 1).sum()),
                "failures": list(trace.failures),
            }
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("scenes", nargs="*", type=Path, help="scene files beside the hall")
    parser.add_argument("--size", default="320x180", help="pixels, WxH")
    parser.add_argument("--adapter", help="part of an adapter's name, or its number")
    parser.add_argument("--out", type=Path, required=True, help="the JSON record to write")
    arguments = parser.parse_args()
    width, height = (int(part) for part in arguments.size.split("x"))
    device = open_device(arguments.adapter)
    rows: list[dict[str, Any]] = []
    kernels: Kernels = {}
    for path in (None, *arguments.scenes):
        prepared = prepare(load(path), BuildOptions())
        name = "hall" if path is None else path.name
        rows += compare_scene(device, name, prepared, (width, height), kernels=kernels)
    tight = watertight(device)
    record = {
        "context": {
            **make_context(device),
            "width": width,
            "height": height,
            "allowed_roundings": ALLOWED,
        },
        "benchmarks": rows,
        "watertight": tight,
    }
    write_record(arguments.out, record)
    for row in rows:
        print(
            f"{row['scene']:<18} {row['rays']:<8} {row['rules']:<8} {row['count']:>9,} rays", end=""
        )
        print(f" {row['differ']:>6,} differ: {json.dumps(row['reasons'])}")
    for row in tight:
        print(
            f"closed mesh, {row['mode']:<18} {row['leaks']} leaks, {row['double_hits']} double hits"
        )
    if any(row["failures"] or row["reasons"]["unexplained"] for row in rows):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
