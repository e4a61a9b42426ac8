"""Twin of depth_pyramid.wgsl: what screen_march.wgsl walks through."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from passes.depth_pyramid import TOP, corner, padded
from passes.twins.camera import camera_direction
from passes.twins.octahedral import decode_normal
from passes.twins.wgsl_functions import (
    F32,
    U32,
    Index,
    clamp,
    dot,
    pack_2x16_float,
    to_float,
    to_words,
    unpack_2x16_float,
    vector,
)

BEHIND = np.float32(1.0) / np.float32(1.02)
ROUNDING, PLACE_ROUNDING = np.float32(1.0e-6), np.float32(1.0 / 256.0)
ONE, HALF = np.float32(1.0), np.float32(0.5)
STEEPEST, LEAST_COSINE = np.float32(6.0e4), np.float32(-1.0e-6)
NEVER = np.float32(3.0e38)


@dataclass(frozen=True, slots=True)
class PixelPlane:
    """[n] reciprocal depths at centres, 0 where nothing is seen, [n, 2] their relative change from
    pixel to pixel."""

    near: F32
    tilt: F32


def unpack_plane(words: U32) -> PixelPlane:
    """`words` [n, 2]"""
    return PixelPlane(to_float(words[..., 0]), unpack_2x16_float(words[..., 1]))


def pixel_planes(frame: Any, surface: U32, depth: F32) -> U32:
    """[height, width, 2] packed"""
    height, width = depth.shape
    y, x = (a.ravel() for a in np.indices(depth.shape, np.int64))
    along = frame["camera_right"][:3] * (np.float32(2.0) / np.float32(width))
    down = frame["camera_up"][:3] * (np.float32(-2.0) / np.float32(height))
    normal = decode_normal(surface[..., 1].ravel())
    cosine = np.minimum(dot(normal, camera_direction(frame, x, y)), LEAST_COSINE)
    tilt = np.asarray(vector(dot(normal, along), dot(normal, down)) / cosine[:, None], np.float32)
    seen = depth.ravel() != 0.0
    near = np.where(seen, ONE / np.where(seen, depth.ravel(), ONE), np.float32(0.0))
    packed = pack_2x16_float(clamp(tilt, -STEEPEST, STEEPEST))
    words = np.stack([to_words(near), np.where(seen, packed, np.uint32(0))], -1)
    return np.asarray(words.reshape(height, width, 2))


def plane_bounds(plane: PixelPlane) -> tuple[F32, F32]:
    """The highest and the lowest reciprocal depth at which a ray may meet the pixel."""
    to_corner = HALF * (np.abs(plane.tilt[..., 0]) + np.abs(plane.tilt[..., 1]))
    slope = to_corner * (ONE + PLACE_ROUNDING) + ROUNDING
    nearest = plane.near * (ONE + slope)
    farthest = plane.near * np.minimum(ONE - slope, BEHIND - ROUNDING)
    seen = plane.near > 0.0
    return np.where(seen, nearest, -ONE), np.where(seen, farthest, NEVER)


def depth_pyramid(frame: Any, surface: U32, depth: F32, pyramid_out: U32) -> None:
    """Fills `pyramid_out` [height, width, 2] (passes/depth_pyramid.py)."""
    height, width = depth.shape
    wide, high = padded(width), padded(height)
    planes = pixel_planes(frame, surface, depth)
    pyramid_out[:height, :width] = planes
    nearest = np.full((high, wide), -ONE, np.float32)
    farthest = np.full((high, wide), NEVER, np.float32)
    nearest[:height, :width], farthest[:height, :width] = plane_bounds(unpack_plane(planes))
    for level in range(1, TOP + 1):
        shape = (high >> level, 2, wide >> level, 2)
        nearest, farthest = nearest.reshape(shape).max((1, 3)), farthest.reshape(shape).min((1, 3))
        x, y = corner(level, width, height)
        part = pyramid_out[y : y + shape[0], x : x + shape[2]]
        part[...] = np.stack([to_words(nearest), to_words(farthest)], -1)


def corners(level: Index, width: int, height: int) -> tuple[Index, Index]:
    """(x, y) of the first texel of levels [n]."""
    places = np.array([corner(one, width, height) for one in range(TOP + 1)])
    return places[level, 0], places[level, 1]
