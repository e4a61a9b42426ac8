"""The surface under a hit, read back from the guest bytes, and a safe origin for the next ray.

World space, metres, float64. The point comes from the primitive (barycentrics times the block's
vertices), never from origin + t * direction, whose error grows with the distance travelled.

Error bound, after Pharr, Jakob, Humphreys, "Physically Based Rendering" (3rd ed., section 3.9):
gamma(n) = n * 2^-24 / (1 - n * 2^-24) bounds n float32 roundings in a row. Along each world axis a
tracer may misplace the surface by

    gamma(3) (|M| |p_object| + |M_t|)                    the point rounded to float32
    + |M| gamma(5) (|W| |p_world| + |W_t|)               the next ray's way into object space
    + |M| gamma(8) max |v - p_object|                    the projected triangle test

with M object to world and W its inverse. The last maximum is over the triangle's vertices and all
three axes: the test measures t along the direction's dominant axis, so the extent of a floor along
x and z displaces it along y. The new origin moves along the geometric normal far
enough to leave that box, then one float32 step further.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from bvh import layout
from bvh.oracle import Trace
from bvh.rays import Rays

F64 = NDArray[np.float64]
U32 = NDArray[np.uint32]

_SLOTS = np.array(layout.TRIANGLE_SLOTS)


class Placed(Protocol):
    """An instance: only its object-to-world matrix [4, 4] is read."""

    @property
    def transform(self) -> F64: ...


class Traceable(Protocol):
    """What `bvh.scene_bvh.SceneBvh` offers of itself here."""

    @property
    def words(self) -> U32: ...
    @property
    def instances(self) -> Sequence[Placed]: ...


@dataclass(frozen=True, slots=True)
class Surface:
    """Hit points, one row a hit ray. `normal` is geometric, unit, and faces the ray."""

    lanes: NDArray[np.int64]  # [h] rays that hit
    point: F64  # [h, 3]
    normal: F64  # [h, 3]
    error: F64  # [h, 3] bound of the point's error along each axis


def gamma(n: int) -> float:
    """Bound of the relative error of n float32 roundings."""
    return n * 2.0**-24 / (1 - n * 2.0**-24)


def surface_at(scene: Traceable, rays: Rays, trace: Trace) -> Surface:
    """Points, normals and error bounds of the rays of `trace` that hit."""
    lanes = np.flatnonzero(trace.hit)
    pointer = trace.pointer[lanes].astype(np.int64)
    block, kind = (pointer & ~np.int64(7)) << 1, pointer & 7
    # Slots to original vertices a, b, c through the flag byte: b sits in slot I, c in slot J.
    flag = (scene.words[block + layout.TRIANGLE_FLAGS_WORD].astype(np.int64) >> 8 * kind) & 0xFF
    i, j = flag & layout.FLAG_I_MASK, flag >> layout.FLAG_J_SHIFT & layout.FLAG_I_MASK
    slots = _SLOTS[kind]
    column = np.stack(
        [np.take_along_axis(slots, s[:, None], 1)[:, 0] for s in (3 - i - j, i, j)], 1
    )
    address = block[:, None, None] + 3 * column[:, :, None] + np.arange(3)
    corners = scene.words.view(np.float32)[address].astype(np.float64)  # [h, vertex, axis]
    u, v = trace.u[lanes].astype(np.float64), trace.v[lanes].astype(np.float64)
    weights = np.stack([1 - u - v, u, v], 1)
    local = (weights[:, :, None] * corners).sum(1)
    full = [np.asarray(item.transform, np.float64) for item in scene.instances]
    matrix = np.array([m[:3] for m in full]).reshape(-1, 3, 4)
    inverse = np.array([np.linalg.inv(m)[:3] for m in full]).reshape(-1, 3, 4)
    which = trace.instance[lanes].astype(np.int64)
    m, w = matrix[which], inverse[which]
    linear, shift = m[:, :, :3], m[:, :, 3]
    point = _apply(linear, local) + shift
    # The normal of the transformed triangle, so that a mirrored transform needs no special case.
    edges = _apply(linear[:, None], corners[:, 1:] - corners[:, :1])
    normal = np.cross(edges[:, 0], edges[:, 1])
    normal /= np.linalg.norm(normal, axis=1, keepdims=True)
    away = (normal * rays["direction"][lanes]).sum(1) > 0
    normal[away] *= -1
    extent = np.abs(corners - local[:, None]).max((1, 2))[:, None]
    inward = _apply(np.abs(w[:, :, :3]), np.abs(point)) + np.abs(w[:, :, 3])
    error = gamma(3) * (_apply(np.abs(linear), np.abs(local)) + np.abs(shift))
    error += _apply(np.abs(linear), gamma(5) * inward + gamma(8) * extent)
    return Surface(lanes, point, normal, error)


def offset_origin(point: F64, normal: F64, error: F64) -> NDArray[np.float32]:
    """float32 origins [h, 3] on the side that `normal` points to, clear of the surface."""
    distance = (np.abs(normal) * error).sum(1, keepdims=True)
    moved = point + distance * normal
    rounded = moved.astype(np.float32)
    return np.nextafter(rounded, np.copysign(np.float32(np.inf), normal).astype(np.float32))


def _apply(matrix: F64, vectors: F64) -> F64:
    """matrix [..., 3, 3] times vectors [..., 3]."""
    return np.asarray((matrix * vectors[..., None, :]).sum(-1))
