"""Spheres to a BLAS: filter, build, optimise, collapse, encode, by the builders of triangles.

Always on the CPU, whatever a build's pairing says: spheres have no blocks to pair, and the scenes
that hold them hold few. A builder that splits references builds over whole spheres here.
"""

import time
from typing import Any

import numpy as np

from bvh.blas import Blas, BuildOptions, BuildStats
from bvh.build import build_tree
from bvh.coordinate_range import describe, in_range, largest_coordinate
from bvh.encode import encode, make_image
from bvh.header import KIND_BLAS
from bvh.layout import GEOMETRY_INDEX_MASK, NODE_PROCEDURAL
from bvh.sah import sah_cost
from bvh.spheres import keep_usable_spheres, pack_spheres, sphere_bounds
from bvh.tree import EMPTY, stack_bound, tree_levels
from engine.gpu.errors import UserError


def build_sphere_blas(
    centers: Any, radii: Any, geometry: Any, primitive: Any, opaque: Any, options: BuildOptions
) -> Blas:
    """A BLAS over spheres `centers [m, 3]`, `radii [m]`; `geometry`, `primitive` and `opaque` as
    `bvh.build.build_blas` takes them. Spheres that are not finite or have no radius are dropped
    and counted; none left gives a valid empty BLAS. Coordinates outside the range of
    `bvh.coordinate_range` are a UserError."""
    started = time.perf_counter()
    centers = np.ascontiguousarray(centers, np.float32).reshape(-1, 3)
    radii = np.ascontiguousarray(radii, np.float32)
    geometry = np.ascontiguousarray(geometry, np.uint32)
    primitive = np.ascontiguousarray(primitive, np.uint32)
    opaque = np.ascontiguousarray(opaque, np.bool_)
    if not len(centers) == len(radii) == len(geometry) == len(primitive):
        raise ValueError("centers, radii, geometry and primitive differ in length")
    if len(geometry) and int((geometry & GEOMETRY_INDEX_MASK).max()) >= len(opaque):
        raise ValueError(f"a geometry has no entry in opaque[{len(opaque)}]")
    kept = keep_usable_spheres(centers, radii, geometry, primitive)
    boxes = sphere_bounds(kept.centers, kept.radii)
    largest = largest_coordinate(boxes)
    if not in_range(largest):
        raise UserError(f"spheres: {describe(largest)}")
    tree = build_tree(boxes, options)
    image = make_image(
        tree,
        boxes,
        pack_spheres(kept, opaque),
        np.full(len(boxes), NODE_PROCEDURAL, np.uint8),
        kind=KIND_BLAS,
        nodes=options.nodes,
        primitive_count=len(boxes),
        geometry_count=len(opaque),
    )
    words, parents = encode(image)
    stats = BuildStats(
        builder=options.builder,
        triangles=0,
        dropped_degenerate=kept.dropped_degenerate,
        dropped_nonfinite=kept.dropped_nonfinite,
        blocks=len(boxes),
        pairs=0,
        nodes_fp16=int(image.half.sum()),
        nodes_fp32=int((~image.half).sum()),
        bytes=4 * len(words),
        fill=float((tree.children != EMPTY).sum() / len(tree.children)),
        depth=len(tree_levels(tree.children)),
        stack_bound=stack_bound(tree.children),
        sah=sah_cost(tree, boxes),
        build_ms=1000.0 * (time.perf_counter() - started),
        spheres=len(boxes),
    )
    return Blas(words, parents, stats, image.bounds, len(opaque))
