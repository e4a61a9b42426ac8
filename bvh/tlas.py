"""The TLAS: instance nodes under box nodes over world-space boxes.

Instance nodes are ours, after RADV's (see `bvh.layout`). Their transforms are float32, and the
inverse is that of the float32 matrix, so that both directions describe one mapping. Box nodes of
a TLAS are always FP32 (as GPURT's). World boxes are conservative: they enclose what the float32
matrices can make of the BLAS's bounds.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bvh.build import Blas, BuildOptions, build_tree
from bvh.encode import Image, make_image
from bvh.header import KIND_TLAS, unpack_header
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
    NODE_BYTES,
    NODE_INSTANCE,
    UNIT_BYTES,
    InstanceFlags,
    pack_instance_flags,
)
from bvh.transforms.slot_order import heaviest_first
from bvh.tree import Bounds, empty_bounds
from engine.gpu.errors import UserError

F32 = NDArray[np.float32]
F64 = NDArray[np.float64]
U32 = NDArray[np.uint32]
I64 = NDArray[np.int64]

# A determinant this small against the product of the row lengths means that the rows are linearly
# dependent as far as float32 can tell (2^-24 is 6e-8; three roundings reach about 1e-7).
SINGULAR = 1e-10
# World boxes of transforms that move or scale grow by this fraction of the numbers that went into
# them: four float32 roundings (a transformed origin has three products and three sums).
ROUNDING = 4.0 * 2.0**-24


def _identity() -> F64:
    return np.eye(4)


@dataclass(frozen=True, slots=True)
class BvhInstance:
    """One placement of BLAS number `blas`. `transform` is object to world, `[4, 4]`, last row
    0 0 0 1; `mask` is ANDed with the ray's; `first_object` and `custom_index` have 24 bits;
    precedence of `flags` is documented at `InstanceFlags`."""

    blas: int
    transform: F64 = field(default_factory=_identity)
    mask: int = 0xFF
    first_object: int = 0
    custom_index: int = 0
    flags: InstanceFlags = InstanceFlags.NONE
    name: str = ""


def instance_matrices(instances: Sequence[BvhInstance]) -> tuple[F32, F32]:
    """(object to world, world to object), each `[n, 3, 4]` float32. A transform that has no
    inverse, is not finite or not affine is a UserError naming the instance."""
    matrices = [np.asarray(instance.transform, np.float64) for instance in instances]
    affine = [m.shape == (4, 4) and m[3].tolist() == [0.0, 0.0, 0.0, 1.0] for m in matrices]
    _refuse(instances, affine, "transform is not a 4x4 matrix with last row 0 0 0 1")
    with np.errstate(over="ignore"):
        forward = np.array(matrices).reshape(-1, 4, 4)[:, :3].astype(np.float32)
    finite = np.isfinite(forward).all(axis=(1, 2))
    _refuse(instances, finite, "transform is not finite in float32")
    linear = forward[:, :, :3].astype(np.float64)
    lengths = np.linalg.norm(linear, axis=2)
    unit = linear / np.where(lengths > 0, lengths, 1.0)[:, :, None]
    sound = (lengths > 0).all(axis=1) & (np.abs(np.linalg.det(unit)) >= SINGULAR)
    _refuse(instances, sound, "singular transform (it flattens space and has no inverse)")
    backward = np.zeros_like(forward)
    with np.errstate(over="ignore", invalid="ignore"):
        # Rows of unit length keep the inversion away from overflow and underflow.
        inverse = np.linalg.inv(unit) / lengths[:, None]
        backward[:, :, :3] = inverse
        backward[:, :, 3] = -(inverse @ forward[:, :, 3:].astype(np.float64))[:, :, 0]
    finite = np.isfinite(backward).all(axis=(1, 2))
    _refuse(instances, finite, "singular transform (its inverse overflows float32)")
    return forward, backward


def _refuse(instances: Sequence[BvhInstance], good: Any, reason: str) -> None:
    """UserError for the first instance that is not `good` [n]."""
    for i in np.flatnonzero(~np.asarray(good, np.bool_))[:1]:
        name = instances[i].name
        raise UserError(f"instance {i}" + (f" '{name}'" if name else "") + f": {reason}")


def world_bounds(bounds: Bounds, forward: F32, backward: F32) -> Bounds:
    """[n, 2, 3] boxes around `bounds [n, 2, 3]` placed in the world, rounded outward. Encloses
    both the forward image and the set of points that the stored inverse maps into the bounds."""
    low, high = bounds[:, 0].astype(np.float64), bounds[:, 1].astype(np.float64)
    centre, half = 0.5 * (low + high), 0.5 * (high - low)
    out = empty_bounds(len(bounds))
    if not len(bounds):
        return out
    back = backward.astype(np.float64)
    recovered = np.linalg.inv(back[:, :, :3])
    exact = (forward == np.eye(3, 4, dtype=np.float32)).all(axis=(1, 2))
    minimum = np.full((len(bounds), 3), np.inf)
    maximum = np.full((len(bounds), 3), -np.inf)
    for linear, offset in (
        (forward[:, :, :3].astype(np.float64), forward[:, :, 3].astype(np.float64)),
        (recovered, -np.einsum("nij,nj->ni", recovered, back[:, :, 3])),
    ):
        middle = np.einsum("nij,nj->ni", linear, centre) + offset
        reach = np.einsum("nij,nj->ni", np.abs(linear), half)
        size = np.einsum("nij,nj->ni", np.abs(linear), np.abs(centre) + half) + np.abs(offset)
        pad = np.where(exact[:, None], 0.0, ROUNDING * size)
        minimum = np.minimum(minimum, middle - reach - pad)
        maximum = np.maximum(maximum, middle + reach + pad)
    # An identity keeps its bounds bit for bit: nothing was rounded.
    minimum[exact], maximum[exact] = low[exact], high[exact]
    if max(float(np.abs(minimum).max()), float(np.abs(maximum).max())) > 3e38:
        raise UserError("an instance reaches beyond float32's range (3e38) in world space")
    narrow_low, narrow_high = minimum.astype(np.float32), maximum.astype(np.float32)
    out[:, 0] = np.where(
        narrow_low > minimum, np.nextafter(narrow_low, np.float32(-np.inf)), narrow_low
    )
    out[:, 1] = np.where(
        narrow_high < maximum, np.nextafter(narrow_high, np.float32(np.inf)), narrow_high
    )
    return out


def pack_instances(
    instances: Sequence[BvhInstance],
    ids: I64,
    forward: F32,
    backward: F32,
    blas_bases: I64,
    geometry_counts: I64,
) -> U32:
    """[n, 32] instance nodes; `ids[n]` are the indices in the TLAS build input, `blas_bases`
    (bytes in the scene buffer) and `geometry_counts` are per instance."""
    words = np.zeros((len(instances), NODE_BYTES[NODE_INSTANCE] // 4), np.uint32)
    flags = {kind: pack_instance_flags(kind) for kind in {item.flags for item in instances}}
    words[:, INSTANCE_CUSTOM_WORD] = [
        item.custom_index | item.mask << INSTANCE_MASK_SHIFT for item in instances
    ]
    words[:, INSTANCE_OBJECT_WORD] = [item.first_object | flags[item.flags] for item in instances]
    root = ((blas_bases + HEADER_BYTES) >> 3) | NODE_BOX_FP32
    words[:, INSTANCE_BLAS_WORD] = root & 0xFFFFFFFF
    words[:, INSTANCE_BLAS_WORD + 1] = root >> 32
    words[:, INSTANCE_ID_WORD] = ids
    words[:, INSTANCE_BLAS_BASE_WORD] = blas_bases // UNIT_BYTES
    words[:, INSTANCE_GEOMETRY_COUNT_WORD] = geometry_counts
    for first, matrix in (
        (INSTANCE_WORLD_TO_OBJECT_WORD, backward),
        (INSTANCE_OBJECT_TO_WORLD_WORD, forward),
    ):
        words[:, first : first + 12] = np.ascontiguousarray(matrix).view(np.uint32).reshape(-1, 12)
    return words


def build_tlas(
    blases: Sequence[Blas],
    blas_bases: I64,
    instances: Sequence[BvhInstance],
    options: BuildOptions,
) -> Image:
    """The TLAS container's image. `blas_bases[b]` are bytes in the scene buffer. An instance of
    an empty BLAS is checked like any other but gets no node: nothing in it can be hit."""
    for i, instance in enumerate(instances):
        _check(i, instance, len(blases))
    forward, backward = instance_matrices(instances)
    ids = np.array(
        [i for i, x in enumerate(instances) if blases[x.blas].stats.blocks > 0], np.int64
    )
    used = [instances[i] for i in ids]
    which = np.array([x.blas for x in used], np.int64)
    object_bounds = np.array([blases[b].bounds for b in which], np.float32).reshape(-1, 2, 3)
    boxes = world_bounds(object_bounds, forward[ids], backward[ids])
    counts = np.array([blases[b].geometry_count for b in which], np.int64)
    bases = np.asarray(blas_bases, np.int64)[which]
    sizes = np.array([unpack_header(blas.words).primitive_count for blas in blases], np.int64)
    return make_image(
        heaviest_first(build_tree(boxes, options), sizes[which]),
        boxes,
        pack_instances(used, ids, forward[ids], backward[ids], bases, counts),
        np.full(len(used), NODE_INSTANCE, np.uint8),
        kind=KIND_TLAS,
        nodes="fp32",
        primitive_count=len(used),
        geometry_count=0,
    )


def _check(index: int, instance: BvhInstance, blas_count: int) -> None:
    label = f"instance {index}" + (f" '{instance.name}'" if instance.name else "")
    if not 0 <= instance.blas < blas_count:
        raise UserError(f"{label}: BLAS {instance.blas}, there are {blas_count}")
    if not 0 <= instance.mask <= 0xFF:
        raise UserError(f"{label}: mask {instance.mask}, the limit is 255")
    for name in ("first_object", "custom_index"):
        value = getattr(instance, name)
        if not 0 <= value <= INSTANCE_INDEX_MASK:
            raise UserError(f"{label}: {name} {value}, the limit is {INSTANCE_INDEX_MASK}")
