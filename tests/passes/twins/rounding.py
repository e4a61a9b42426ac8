"""How far float32 results of a driver may be from a twin's, from what rounds in them.

u = 2^-24 is the relative error of one rounding, and n of them change a sum by at most n u of the
sum of its absolute terms (Higham, "Accuracy and Stability of Numerical Algorithms", chapter 3). A
driver that fuses a product into a sum leaves a rounding out; so it and NumPy each keep to such a
bound, and differ by at most twice as much.

`strict` says that the driver rounds as NumPy does (conftest.py): then nothing is allowed for it.
"""

from typing import Any

import numpy as np

from passes.twins.camera import camera_direction
from passes.twins.gbuffer import NOTHING
from passes.twins.surface import OBJECT_VEC4S, corner_words
from passes.twins.wgsl_functions import to_float

U = 2.0**-24
RELATIVE, ABSOLUTE = 1e-5, 1e-5  # where no better bound is known
# Roundings have either sign: sums of n of them reach about sqrt(n) / n of their bound. Weights of a
# pixel's triangle are made by about 100 in a row.
SHARE_OF_BOUND = 1 / 8

# Rays that may be further apart than all others, part of all: a decision was rounded otherwise, or
# the sample stands where rounding is magnified.
RAYS_APART = 0.005
# A ray's origin is a sum of three corners' coordinates, each a sum of four products, moved along a
# normal by some ULPs of the largest coordinate and rounded away: at most 9 roundings and their half
# ULPs on either side, two or less as a rule. The move itself is 10 ULPs and more: one that goes the
# wrong way or is left out shows.
ORIGIN_ULPS, MOST_ORIGIN_ULPS = 2, 9
# A direction is sampled about the view's projection on the surface. Where one looks along the
# normal that projection is 0 but for roundings: u / |projection| of the lobe's width.
MOST_DIRECTION = 1e-4

# Rasterisers place vertices on a grid of 1/256 of a pixel (Direct3D 11, 3.4.3.1): half of a step
# off in x and in y, their depth goes along the slope of the triangle. They keep the depth as a
# plane over the picture, whose terms may be as large as 1, at the near plane, wherever it is seen:
# 8 roundings for each coordinate of a vertex, and 16 for the plane.
SNAPPED = 2.0**-9
DEPTH_ROUNDINGS = 32 * U
STRICT_DEPTH = 1e-4  # of itself


def few(apart: Any, strict: bool) -> bool:
    """Whether of rays' flags no more are set than may be."""
    return bool(apart.sum() <= (0 if strict else np.ceil(RAYS_APART * apart.size)))


def origins_close(a: Any, b: Any, strict: bool) -> bool:
    """[n, 3]"""
    apart, ulp = np.abs(a - b), np.spacing(np.abs(a).max(-1, keepdims=True))
    return few((apart > ORIGIN_ULPS * ulp).any(-1), strict) and bool(
        (apart <= MOST_ORIGIN_ULPS * ulp).all()
    )


def directions_close(a: Any, b: Any, strict: bool) -> bool:
    """[n, 3] unit vectors."""
    apart = ~np.isclose(a, b, rtol=RELATIVE, atol=ABSOLUTE).all(-1)
    return few(apart, strict) and bool(np.abs(a - b).max(initial=0) <= MOST_DIRECTION)


def depths_apart(gpu: Any, cpu: Any, strict: bool) -> Any:
    """Which texels [layers, height, width] of a rasteriser's depths are not those of rays."""
    apart = np.abs(gpu.astype(float) - cpu)
    if strict:
        return apart > STRICT_DEPTH * np.abs(cpu)
    slope = np.zeros(cpu.shape)
    for axis in (1, 2):
        step = np.abs(np.diff(cpu.astype(float), axis=axis))
        # To the neighbour on the same triangle, if there is one.
        ends = [np.insert(step, at, np.inf, axis) for at in (0, step.shape[axis])]
        slope += np.minimum(*ends)
    return apart > SNAPPED * slope + DEPTH_ROUNDINGS


def weights_close(gpu: Any, cpu: Any, resources: Any, strict: bool) -> bool:
    """`visibility` [height, width, 4] words: u and v, which a triangle seen edge-on magnifies."""
    if np.array_equal(gpu, cpu):
        return True
    a, b = (np.ascontiguousarray(v[..., 2:]).view(np.float32).astype(float) for v in (gpu, cpu))
    seen = gpu[..., 0] != NOTHING
    allowed = ABSOLUTE + RELATIVE * np.abs(b[seen])
    if not strict:
        given = (resources[name] for name in ("frame", "tables", "geometry"))
        allowed = np.maximum(allowed, SHARE_OF_BOUND * weights_bound(*given, gpu)[seen])
    return np.array_equal(a[~seen], b[~seen], equal_nan=True) and bool(
        (np.abs(a - b)[seen] <= allowed).all()
    )


def weights_bound(frame: Any, tables: Any, geometry: Any, visibility: Any) -> Any:
    """[height, width, 2]: by how much pixel_hit's weights may be apart (Moeller, Trumbore), 0 where
    nothing is seen. Values go with their errors through the steps that pixel_hit takes."""
    y, x = np.nonzero(visibility[..., 0] != NOTHING)
    object, primitive = visibility[y, x, :2].T
    local = to_float(corner_words(frame, tables, geometry, object, primitive))[:, :, :3]
    rows = to_float(tables)[object.astype(int)[:, None] * OBJECT_VEC4S + np.arange(3)].astype(float)
    local = np.concatenate([local, np.ones((*local.shape[:2], 1))], -1).astype(float)
    corners = np.einsum("nij,nkj->nki", rows, local)
    corner_error = 4 * U * np.einsum("nij,nkj->nki", np.abs(rows), np.abs(local))
    direction = camera_direction(frame, x, y).astype(float)
    axes = (np.abs(frame[f"camera_{name}"][:3]) for name in ("forward", "right", "up"))
    ray = direction, np.broadcast_to(8 * U * sum(axes), direction.shape)

    def from_first(points: Any, error: Any) -> tuple[Any, Any]:
        apart = points - corners[:, 0]
        return apart, error + corner_error[:, 0] + U * np.abs(apart)

    e1, e2 = (from_first(corners[:, k], corner_error[:, k]) for k in (1, 2))
    s = from_first(frame["camera_origin"][:3].astype(float), 0.0)
    p = _cross(ray, e2)
    determinant = _dot(e1, p)
    bound = np.zeros((*visibility.shape[:2], 2))
    for k, (value, error) in enumerate((_dot(s, p), _dot(ray, _cross(s, e1)))):
        size = np.abs(value / determinant[0])
        bound[y, x, k] = (error + size * determinant[1]) / np.abs(determinant[0]) + 3 * U * size
    return 2 * bound


def _cross(a: tuple[Any, Any], b: tuple[Any, Any]) -> tuple[Any, Any]:
    """Of vectors with their errors."""

    def absolute(x: Any, y: Any) -> Any:
        parts = [x[:, i] * y[:, j] + x[:, j] * y[:, i] for i, j in ((1, 2), (2, 0), (0, 1))]
        return np.stack(parts, -1)

    sizes = np.abs(a[0]), np.abs(b[0])
    error = absolute(sizes[0], b[1]) + absolute(a[1], sizes[1]) + 2 * U * absolute(*sizes)
    return np.cross(a[0], b[0]), error


def _dot(a: tuple[Any, Any], b: tuple[Any, Any]) -> tuple[Any, Any]:
    sizes = np.abs(a[0]), np.abs(b[0])
    error = sizes[0] * b[1] + a[1] * sizes[1] + 3 * U * sizes[0] * sizes[1]
    return (a[0] * b[0]).sum(-1), error.sum(-1)
