"""Instances to guest bytes and world boxes on the GPU; those that cannot be hit are left out.

The inverse is that of the float32 matrix, worked out in about 46 bits (`bvh.gpu.two_float`) and
rounded once, as `bvh.tlas.instance_matrices` does in float64. The world box is
`bvh.tlas.world_bounds` in float32: the union of the forward image and of what the stored inverse
maps into the BLAS's bounds, grown by PADDING of the numbers that went into it (about 13 roundings
of float32 here, 4 for traversal), so that it encloses the host's box.

A matrix is singular here where the determinant, rows and columns scaled to [1, 2), is under 2^-20;
beyond it 46 bits do not give 24 good ones. The host goes on to 1e-10.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bvh.gpu.build_records import GROUP_SIZE, LARGEST, group_count
from bvh.gpu.cluster_records import SEGMENT
from bvh.gpu.scene_box import centroids
from bvh.gpu.tlas_records import (
    BEYOND,
    EMPTY_BLAS,
    NONE,
    NONFINITE,
    REMOVED,
    SINGULAR,
    UNKNOWN_BLAS,
)
from bvh.gpu.two_float import Two, add, multiply, reciprocal, total, two_cross
from bvh.layout import (
    HEADER_BYTES,
    INSTANCE_BLAS_BASE_WORD,
    INSTANCE_BLAS_WORD,
    INSTANCE_CUSTOM_WORD,
    INSTANCE_GEOMETRY_COUNT_WORD,
    INSTANCE_ID_WORD,
    INSTANCE_INDEX_MASK,
    INSTANCE_MASK_SHIFT,
    INSTANCE_OBJECT_TO_WORLD_WORD,
    INSTANCE_OBJECT_WORD,
    INSTANCE_WORLD_TO_OBJECT_WORD,
    NODE_BOX_FP32,
    UNIT_BYTES,
    pack_instance_flags,
)

F32 = NDArray[np.float32]
U32 = NDArray[np.uint32]
Mask = NDArray[np.bool_]
Records = NDArray[Any]

PADDING = np.float32(20.0 * 2.0**-24)
SMALLEST_DETERMINANT = np.float32(2.0**-20)
FARTHEST = np.float32(3e38)


def _exponents(values: F32) -> U32:
    return np.ascontiguousarray(values).view(np.uint32) >> np.uint32(23) & np.uint32(0xFF)


def _factors(exponent: U32) -> F32:
    clamped = np.clip(exponent, 1, 253).astype(np.uint32)
    return ((np.uint32(254) - clamped) << np.uint32(23)).view(np.float32)


def _inverse(linear: F32, offset: F32) -> tuple[F32, F32, Mask]:
    """Of x -> linear x + offset, [n, 3, 3] and [n, 3]; and which of them there are."""
    columns = _exponents(linear).max(axis=1)
    by_column = _factors(columns)
    scaled = linear * by_column[:, None, :]
    rows = _exponents(scaled).max(axis=2)
    by_row = _factors(rows)
    scaled = scaled * by_row[:, :, None]
    sound = (columns > 0).all(axis=1) & (rows > 0).all(axis=1)
    scaled[~sound] = np.eye(3, dtype=np.float32)
    a, b, c = scaled[:, 0], scaled[:, 1], scaled[:, 2]
    of_a, of_b, of_c = two_cross(b, c), two_cross(c, a), two_cross(a, b)
    determinant = total(multiply(Two(a, np.zeros_like(a)), of_a))
    sound &= np.abs(determinant.high) >= SMALLEST_DETERMINANT
    one = np.where(sound, determinant.high, np.float32(1))
    factor = reciprocal(Two(one, np.where(sound, determinant.low, np.float32(0))))
    wide = Two(np.repeat(factor.high[:, None], 3, 1), np.repeat(factor.low[:, None], 3, 1))
    inverse = [multiply(column, wide) for column in (of_a, of_b, of_c)]
    t = offset * by_row
    exponent = np.clip(_exponents(t).max(axis=1), 1, 253).astype(np.uint32)
    t = t * _factors(exponent)[:, None]
    grow = (exponent << np.uint32(23)).view(np.float32)[:, None]
    none = np.zeros_like(t)
    moved = [
        multiply(column, Two(np.repeat(t[:, i : i + 1], 3, 1), none))
        for i, column in enumerate(inverse)
    ]
    back_offset = -(add(add(moved[0], moved[1]), moved[2]).high * by_column) * grow
    back = np.stack([column.high for column in inverse], axis=2)
    back = (back * by_row[:, None, :]) * by_column[:, :, None]
    sound &= (_exponents(back) < 0xFF).all(axis=(1, 2)) & (_exponents(back_offset) < 0xFF).all(
        axis=1
    )
    return back, back_offset, sound


def _dot(rows: F32, vector: F32) -> F32:
    products = rows * vector[:, None, :]
    return np.asarray((products[..., 0] + products[..., 1]) + products[..., 2])


def _image(linear: F32, offset: F32, low: F32, high: F32) -> tuple[F32, F32]:
    half = np.float32(0.5)
    centre, half_size = low * half + high * half, high * half - low * half
    far = np.abs(centre) + half_size
    middle = _dot(linear, centre) + offset
    size = _dot(np.abs(linear), far) + np.abs(offset)
    room = _dot(np.abs(linear), half_size) + size * PADDING
    return middle - room, middle + room


def _summarise(placed: Records, summaries: Records) -> None:
    """Those kept of each group of GROUP_SIZE, and the box around their centroids."""
    for group in range(group_count(len(placed))):
        mine = placed[group * GROUP_SIZE : (group + 1) * GROUP_SIZE]
        mine = mine[mine["removed"] == 0]
        centre = centroids(np.stack([mine["low"], mine["high"]], axis=1))
        summaries["low"][group] = centre.min(axis=0, initial=LARGEST)
        summaries["kept"][group] = len(mine)
        summaries["high"][group] = centre.max(axis=0, initial=-LARGEST)
        summaries["reserved"][group] = 0


def instance_setup(
    parameters: Records,
    instance_count: U32,
    instances: Records,
    blases: Records,
    placed: Records,
    summaries: Records,
    report: Records,
) -> None:
    """Twin of instance_setup.wgsl."""
    report["counts"], report["first"] = 0, NONE
    bound = int(parameters["bound"][0])
    count = min(int(instance_count[0]), bound)
    out = placed[:bound]
    out["low"], out["high"], out["removed"] = 0, 0, NONE
    if not count:
        _summarise(out, summaries)
        return
    given = instances[:count]
    matrix = np.stack([given[f"row_{i}"] for i in range(3)], axis=1)
    linear, offset = matrix[:, :, :3].copy(), matrix[:, :, 3].copy()
    unknown = given["blas"] >= parameters["blas_count"][0]
    nonfinite = (_exponents(matrix) == 0xFF).any(axis=(1, 2))
    linear[nonfinite], offset[nonfinite] = np.eye(3), 0
    blas = blases[np.where(unknown, 0, given["blas"])]
    with np.errstate(over="ignore", invalid="ignore"):
        back, back_offset, sound = _inverse(linear, offset)
        usable = np.where(sound[:, None, None], back, np.eye(3, dtype=np.float32))
        again, again_offset, recovered = _inverse(
            usable, np.where(sound[:, None], back_offset, np.float32(0))
        )
        sound &= recovered
        low, high = blas["low"].copy(), blas["high"].copy()
        ahead = _image(linear, offset, low, high)
        behind = _image(again, again_offset, low, high)
        exact = (matrix == np.eye(3, 4, dtype=np.float32)).all(axis=(1, 2))[:, None]
        low = np.where(exact, low, np.minimum(ahead[0], behind[0]) + np.float32(0))
        high = np.where(exact, high, np.maximum(ahead[1], behind[1]) + np.float32(0))
        inside = (np.maximum(np.abs(low), np.abs(high)) <= FARTHEST).all(axis=1)
    removed = np.where(inside, 0, BEYOND)
    for mask, reason in (
        (~(blas["low"][:, 0] <= blas["high"][:, 0]), EMPTY_BLAS),
        (~sound, SINGULAR),
        (nonfinite, NONFINITE),
        (unknown, UNKNOWN_BLAS),
    ):
        removed[mask] = reason
    boxed = (removed == 0) | (removed == BEYOND)
    mine = out[:count]
    mine["low"] = np.where(boxed[:, None], low, np.float32(0))
    mine["high"] = np.where(boxed[:, None], high, np.float32(0))
    mine["removed"] = removed
    _summarise(out, summaries)
    known = np.flatnonzero(~unknown & ~nonfinite)
    node = mine["node"]
    unit = blas["base_unit"].astype(np.uint64) + np.uint64(HEADER_BYTES // UNIT_BYTES)
    # The shader leaves rows of unusable instances as they were.
    words = np.zeros((count, 32), np.uint32)
    words[:, INSTANCE_BLAS_WORD] = unit << np.uint64(3) & np.uint64(0xFFFFFFFF) | np.uint64(
        NODE_BOX_FP32
    )
    words[:, INSTANCE_BLAS_WORD + 1] = unit >> np.uint64(29)
    index_mask = np.uint32(INSTANCE_INDEX_MASK)
    words[:, INSTANCE_CUSTOM_WORD] = given["custom_index"] & index_mask | (
        given["mask"] << np.uint32(INSTANCE_MASK_SHIFT)
    )
    flag_words = np.array([pack_instance_flags(flags) for flags in range(16)], np.uint32)
    words[:, INSTANCE_OBJECT_WORD] = given["first_object"] & index_mask
    words[:, INSTANCE_OBJECT_WORD] |= flag_words[given["flags"] & 15]
    words[:, INSTANCE_ID_WORD] = np.arange(count)
    words[:, INSTANCE_BLAS_BASE_WORD] = blas["base_unit"]
    words[:, INSTANCE_GEOMETRY_COUNT_WORD] = blas["geometry_count"]
    inverse = np.concatenate([back, back_offset[:, :, None]], axis=2)
    for first, rows in (
        (INSTANCE_WORLD_TO_OBJECT_WORD, inverse),
        (INSTANCE_OBJECT_TO_WORLD_WORD, matrix),
    ):
        words[:, first : first + 12] = np.ascontiguousarray(rows).view(np.uint32).reshape(-1, 12)
    node[known] = words[known]


def instance_compact(
    parameters: Records,
    placed: Records,
    summaries: Records,
    boxes: F32,
    leaves: U32,
    state: Records,
    segments: Records,
    report: Records,
) -> None:
    """Twin of instance_compact.wgsl."""
    bound, number = int(parameters["bound"][0]), int(parameters["segments"][0])
    removed = placed["removed"][:bound]
    keep = np.flatnonzero(removed == 0)
    kept = int(summaries["kept"][: group_count(bound)].sum())
    state["kept"] = state["triangles"] = kept
    state["degenerate"] = state["nonfinite"] = 0
    first = SEGMENT * np.arange(number)
    segments["first"][: number + 1] = [*first, bound]
    segments["count"][: number + 1] = [*np.clip(kept - first, 0, SEGMENT), 0]
    for reason in range(len(REMOVED)):
        rows = np.flatnonzero(removed == reason)
        report["counts"][0, reason] = len(rows)
        report["first"][0, reason] = rows[0] if len(rows) else NONE
    box = np.concatenate([placed["low"][keep], placed["high"][keep]], axis=1)
    boxes[: 6 * kept].reshape(-1, 6)[:] = box
    leaves[: 32 * kept].reshape(-1, 32)[:] = placed["node"][keep]
