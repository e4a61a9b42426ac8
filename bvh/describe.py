"""Tables about a scene buffer, as plain dicts: measured from the encoded bytes, not remembered.

Areas are those of the stored boxes (FP16 rounded outward), so `sah` here is what a traversal
meets and may exceed BuildStats.sah, which uses exact boxes. Expects a buffer that `validate`
accepts.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bvh.decode import decode
from bvh.encode import Image, stored_boxes
from bvh.fan_blocks import fan_table_units
from bvh.header import KIND_TLAS
from bvh.layout import NODE_PROCEDURAL, NODE_TRIANGLE_2, UNIT_BYTES
from bvh.sah import INTERSECTION_COST, TRAVERSAL_COST
from bvh.scene_bvh import SceneBvh
from bvh.tree import EMPTY, half_area, leaf_slots, stack_bound, tree_levels

F32 = NDArray[np.float32]
F64 = NDArray[np.float64]
U32 = NDArray[np.uint32]


def describe(bvh: SceneBvh) -> dict[str, Any]:
    """`{"bytes", "parent_bytes", "instances", "tlas": table, "blas": [table, ...]}`; each table
    as `describe_container`, BLAS tables with `name` and the build's own statistics too."""
    tables = []
    for i, name in enumerate(bvh.blas_names):
        stats = bvh.blas_stats[i]
        tables.append(
            {
                "name": name,
                "builder": stats.builder,
                "build_ms": stats.build_ms,
                "dropped_degenerate": stats.dropped_degenerate,
                "dropped_nonfinite": stats.dropped_nonfinite,
                **describe_container(bvh.blas_words(i)),
            }
        )
    return {
        "bytes": 4 * len(bvh.words),
        "parent_bytes": 4 * len(bvh.parents),
        "instances": len(bvh.instances),
        "tlas": describe_container(bvh.tlas_words),
        "blas": tables,
    }


def describe_container(words: U32) -> dict[str, Any]:
    """One container: counts by kind, bytes, bytes a primitive, `fill` (used slots a box node, of
    4), `fill_histogram` (nodes with 0..4 used slots), `depth`, `stack_bound` (see BuildStats),
    `depth_histogram` (leaves by the level of the box node above them, root = 0),
    `leaf_histogram` (leaves by their triangles, 0 to 4), `spheres`, `fan_table_bytes` (of `bytes`),
    `sibling_overlap` (area that two siblings share, over the area of the siblings, summed over all
    nodes) and `sah`."""
    image = decode(words)
    used = image.children != EMPTY
    leaves = leaf_slots(image.children)
    levels = tree_levels(image.children)
    per_level = [int(leaves[level].sum()) for level in levels]
    leaf_count = len(image.leaves)
    fill = used.sum(axis=1)
    spheres = int((image.leaf_types == NODE_PROCEDURAL).sum())
    fans = int((image.leaf_types >= NODE_TRIANGLE_2).sum()) - spheres
    fans = fans if image.kind != KIND_TLAS else 0
    table_bytes = UNIT_BYTES * fan_table_units(leaf_count, fans)
    table: dict[str, Any] = {
        "kind": "TLAS" if image.kind == KIND_TLAS else "BLAS",
        "primitives": image.primitive_count,
        "geometries": image.geometry_count,
        "nodes_fp32": int((~image.half).sum()),
        "nodes_fp16": int(image.half.sum()),
        "leaves": leaf_count,
        "bytes": 4 * _container_words(image) + table_bytes,
        "fill": float(fill.mean()),
        "fill_histogram": np.bincount(fill, minlength=5).tolist(),
        "depth": len(levels),
        "stack_bound": stack_bound(image.children),
        "depth_histogram": per_level,
        "mean_leaf_depth": float(np.dot(per_level, np.arange(len(levels))) / max(leaf_count, 1)),
        "bounds": [] if not leaf_count else image.bounds.tolist(),
    }
    table["bytes_per_primitive"] = table["bytes"] / max(image.primitive_count, 1)
    if image.kind != KIND_TLAS:
        blocks = image.leaf_types[image.leaf_types != NODE_PROCEDURAL]
        table["leaf_histogram"] = [0, *np.bincount(blocks, minlength=4).tolist()]
        table["spheres"] = spheres
        table["fan_table_bytes"] = table_bytes
        table["triangles_per_leaf"] = (image.primitive_count - spheres) / max(leaf_count, 1)
    return {**table, **_areas(image)}


def _container_words(image: Image) -> int:
    """Without the fan table."""
    nodes = 32 * int((~image.half).sum()) + 16 * int(image.half.sum())
    return 32 + nodes + image.leaves.size


def _areas(image: Image) -> dict[str, float]:
    used = image.children != EMPTY
    boxes = np.where(used[..., None, None], stored_boxes(image), np.float32(0))
    area = np.where(used, half_area(boxes), 0.0)
    root = float(half_area(image.bounds)) if used.any() else 0.0
    inner = float(area[image.children >= 0].sum())
    leaf = float(area[leaf_slots(image.children)].sum())
    shared = 0.0
    for a in range(4):
        for b in range(a + 1, 4):
            both = used[:, a] & used[:, b]
            shared += float(_shared_area(boxes[both, a], boxes[both, b]).sum())
    total = float(area.sum())
    return {
        "sah": (TRAVERSAL_COST * (root + inner) + INTERSECTION_COST * leaf) / root if root else 0.0,
        "sibling_overlap": shared / total if total else 0.0,
    }


def _shared_area(a: F32, b: F32) -> F64:
    """[n] half area that boxes `[n, 2, 3]` have in common. Boxes that only touch at a face share
    none; a flat box inside another one shares what it has."""
    low = np.maximum(a[:, 0], b[:, 0])
    high = np.minimum(a[:, 1], b[:, 1])
    solid = (a[:, 0] < a[:, 1]) & (b[:, 0] < b[:, 1])
    apart = ((low > high) | ((low == high) & solid)).any(axis=1)
    return np.where(apart, 0.0, half_area(np.stack([low, high], axis=1)))
