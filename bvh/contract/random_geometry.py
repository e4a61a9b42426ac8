"""Geometry and rays of random contract cases: one function a kind, each gives n cases at once.

Coordinates are float32. Kinds named after an edge, a vertex or a plane use few-bit (dyadic)
numbers, so that the ray meets it exactly and every product is exact. Special values are put on top
by `random_cases`.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bvh import layout

F32 = NDArray[np.float32]
U32 = NDArray[np.uint32]
Random = np.random.Generator


@dataclass(frozen=True, slots=True)
class Rays:
    """`[n, 3]` each; `inverse_direction` as a guest would compute it."""

    origin: F32
    direction: F32
    inverse_direction: F32


def make_rays(origin: NDArray[np.floating], direction: NDArray[np.floating]) -> Rays:
    with np.errstate(all="ignore"):
        d = np.asarray(direction, np.float32)
        return Rays(np.asarray(origin, np.float32), d, np.float32(1) / d)


def dyadic(rng: Random, shape: tuple[int, ...], bits: int = 5) -> F32:
    """Multiples of 1/4 below 2^(bits - 2) in size."""
    size = 1 << bits
    return (rng.integers(-size, size + 1, shape) / 4).astype(np.float32)


def scales(rng: Random, count: int, low: int, high: int) -> F32:
    """Powers of two, the exponent uniform in low..high, `[n, 1]`."""
    return np.exp2(rng.integers(low, high + 1, (count, 1))).astype(np.float32)


def flatten_axes(rng: Random, direction: F32) -> F32:
    """One or two components (never all) become +0 or -0."""
    out = direction.copy()
    rows = np.arange(len(out))
    keep = rng.integers(0, 3, len(out))
    for step in (1, 2):
        chosen = rng.random(len(out)) < (1.0 if step == 1 else 0.5)
        axis = (keep + step) % 3
        zero = np.where(rng.random(len(out)) < 0.5, 0.0, -0.0)
        out[rows, axis] = np.where(chosen, zero, out[rows, axis])
    out[rows, keep] = np.where(out[rows, keep] == 0, 1, out[rows, keep])
    return out


def any_triangles(rng: Random, count: int) -> tuple[F32, Rays]:
    """Blocks of five vertices of any scale; rays to points in and around the second triangle."""
    scale = scales(rng, count, -20, 20)[:, None]
    vertices = rng.normal(size=(count, 5, 3)).astype(np.float32) * scale
    weights = rng.dirichlet((1, 1, 1), count) * 1.4 - 0.4 / 3
    target = (vertices[:, :3] * weights[:, :, None]).sum(1)
    origin = rng.normal(size=(count, 3)) * 3 * scale[:, 0]
    return vertices, make_rays(origin, (target - origin) * scales(rng, count, -3, 3))


def exact_triangles(rng: Random, count: int, at: str, parallel: bool) -> tuple[F32, Rays]:
    """Dyadic blocks whose rays meet an edge's midpoint, a vertex, or a point of the plane exactly.
    `at`: edge, vertex or inside; `parallel`: along an axis or in an axis plane."""
    vertices = dyadic(rng, (count, 5, 3))
    first = rng.integers(0, 5, count)
    second = (first + rng.integers(1, 5, count)) % 5
    rows = np.arange(count)
    a, b = vertices[rows, first], vertices[rows, second]
    target = {"edge": (a + b) / 2, "vertex": a, "inside": (a + b + 2 * vertices[:, 2]) / 4}[at]
    direction = dyadic(rng, (count, 3), 4)
    direction[(direction == 0).all(1)] = (0, 0, 1)
    if parallel:
        direction = flatten_axes(rng, direction)
    steps = rng.integers(-1, 5, (count, 1)).astype(np.float32)
    return vertices, make_rays(target - direction * steps, direction)


def degenerate_triangles(rng: Random, count: int) -> tuple[F32, Rays]:
    """Repeated and collinear vertices; rays through them, inside their plane, or without a
    direction."""
    vertices, rays = exact_triangles(rng, count, "vertex", False)
    how = rng.integers(0, 3, count)
    vertices[how == 0, 1] = vertices[how == 0, 0]
    vertices[how == 1, 1:] = vertices[how == 1, :1]
    line = how == 2
    steps = rng.integers(-4, 5, (line.sum(), 5, 1)) / np.float32(2)
    vertices[line] = vertices[line, :1] + rays.direction[line, None] * steps
    direction = rays.direction.copy()
    direction[rng.random(count) < 0.1] = 0
    return vertices, make_rays(rays.origin, direction)


def triangle_words(rng: Random, vertices: F32) -> U32:
    """Nodes `[n, 32]`: the five vertices, and a flag word of usual rotations or any bits."""
    count = len(vertices)
    words = np.zeros((count, 32), np.uint32)
    words[:, :15] = np.ascontiguousarray(vertices, np.float32).reshape(count, 15).view(np.uint32)
    usual = rng.choice(np.array([*layout.ROTATION_NIBBLES, 0x89], np.uint32), (count, 4))
    flags = (usual << np.arange(0, 32, 8, dtype=np.uint32)).sum(1, dtype=np.uint32)
    words[:, 15] = np.where(rng.random(count) < 0.8, flags, any_bits(rng, (count,)))
    return words


def any_boxes(rng: Random, count: int, low: int, high: int) -> tuple[F32, F32, Rays]:
    """Four boxes around a random place, and rays from in and around them."""
    scale = scales(rng, count, low, high)
    center = rng.normal(size=(count, 4, 3)) * scale[:, None]
    half = np.abs(rng.normal(size=(count, 4, 3))) * scale[:, None]
    origin = rng.normal(size=(count, 3)) * 2 * scale
    slot = rng.integers(0, 4, count)
    target = center[np.arange(count), slot] + rng.normal(size=(count, 3)) * scale / 2
    rays = make_rays(origin, target - origin)
    return (center - half).astype(np.float32), (center + half).astype(np.float32), rays


def corner_boxes(rng: Random, count: int) -> tuple[F32, F32, Rays]:
    """Rays that graze a corner or an edge's midpoint: entry and exit are a few ULPs apart."""
    low, high, _ = any_boxes(rng, count, -8, 8)
    slot, rows = rng.integers(0, 4, count), np.arange(count)
    side = rng.integers(0, 3, (count, 3)) / 2
    side[(side == 0.5).all(1)] = 0
    box_low, box_high = low[rows, slot], high[rows, slot]
    target = box_low + (box_high - box_low) * side
    direction = rng.normal(size=(count, 3))
    distance = np.linalg.norm(box_high - box_low, axis=1)[:, None] * 3 * rng.random((count, 1))
    return low, high, make_rays(target - direction * distance, direction)


def plane_boxes(rng: Random, count: int) -> tuple[F32, F32, Rays]:
    """Dyadic boxes with ties, flat and inverted ones; rays along axes, starting on planes."""
    low = dyadic(rng, (count, 4, 3), 3)
    high = low + np.abs(dyadic(rng, (count, 4, 3), 3))
    same = rng.random((count, 4)) < 0.4  # copies of the first box: equal keys
    low = np.where(same[..., None], low[:, :1], low)
    high = np.where(same[..., None], high[:, :1], high)
    inverted = rng.random((count, 4, 1)) < 0.05
    low, high = np.where(inverted, high, low), np.where(inverted, low, high)
    side = rng.integers(0, 3, (count, 3))
    corner = np.where(
        side == 0, low[:, 0], np.where(side == 1, high[:, 0], dyadic(rng, (count, 3)))
    )
    direction = flatten_axes(rng, dyadic(rng, (count, 3), 4))
    steps = rng.integers(-2, 4, (count, 1)).astype(np.float32)
    return low, high, make_rays(corner - direction * steps, direction)


def endless_boxes(rng: Random, count: int) -> tuple[F32, F32, Rays]:
    """Boxes without an end on one side of some axes, or on all; rays with infinite components,
    whose inverses are zeros of either sign."""
    low, high, rays = any_boxes(rng, count, -4, 4)
    low[rng.random(low.shape) < 0.2] = -np.inf
    high[rng.random(high.shape) < 0.2] = np.inf
    everywhere = rng.random((count, 4)) < 0.2
    low[everywhere], high[everywhere] = -np.inf, np.inf
    direction = rays.direction.copy()
    chosen = rng.random(direction.shape) < 0.25
    direction[chosen] = np.copysign(np.float32(np.inf), direction[chosen])
    return low, high, make_rays(rays.origin, direction)


def box_words(rng: Random, low: F32, high: F32, half: NDArray[np.bool_]) -> U32:
    """Nodes `[n, 32]` with random children; `half` says which are FP16. Some slots are empty, in
    each of the known ways."""
    count = len(low)
    words = np.zeros((count, 32), np.uint32)
    words[:, :4] = any_bits(rng, (count, 4)) >> np.uint32(4)
    with np.errstate(over="ignore", invalid="ignore"):
        packed = layout.pack_half_bounds(low, high)
    wide = np.concatenate([low, high], axis=-1).astype(np.float32).view(np.uint32)
    empty = rng.random((count, 4)) < 0.1
    zeros = rng.random((count, 4)) < 0.3  # bounds all zero instead of NaN
    words[:, :4][empty] = layout.INVALID_POINTER
    packed[empty] = layout.EMPTY_BOUND_FP16
    wide[empty] = layout.EMPTY_BOUND_FP32
    packed[empty & zeros] = 0
    wide[empty & zeros] = 0
    words[:, 4:28] = wide.reshape(count, 24)
    words[half, 4:16] = packed[half].reshape(-1, 12)
    words[half, 16:] = any_bits(rng, (int(half.sum()), 16))  # not a part of an FP16 node
    return words


def any_bits(rng: Random, shape: tuple[int, ...]) -> U32:
    return rng.integers(0, 1 << 32, shape, np.uint32)
