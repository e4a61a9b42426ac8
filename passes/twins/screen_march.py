"""Twin of screen_march.wgsl: a ray followed over the picture."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from passes.twins.camera import camera_direction
from passes.twins.octahedral import decode_normal
from passes.twins.wgsl_functions import F32, U32, Flags, Index, dot, vector

THICKNESS = np.float32(0.02)
HALF, FAR = np.float32(0.5), np.float32(3.0e38)


@dataclass(frozen=True, slots=True)
class ScreenHit:
    """Arrays over lanes; places of lanes that found nothing are (0, 0)."""

    found: Flags
    x: Index
    y: Index
    t: F32


@dataclass(frozen=True, slots=True)
class ScreenRay:
    a: F32  # [n, 2]
    b: F32
    z: F32  # [n]
    dz: F32

    def place(self, t: F32) -> F32:
        return np.asarray((self.a + t[:, None] * self.b) / (self.z + t * self.dz)[:, None])

    def __getitem__(self, lanes: Any) -> "ScreenRay":
        return ScreenRay(self.a[lanes], self.b[lanes], self.z[lanes], self.dz[lanes])


def screen_ray(frame: Any, origin: F32, direction: F32) -> ScreenRay:
    size = np.array([frame["width"], frame["height"]], np.float32)
    forward = frame["camera_forward"][:3]
    right, up = (frame[f"camera_{name}"][:3] for name in ("right", "up"))
    right, up = right / dot(right, right), up / dot(up, up)
    from_eye = origin - frame["camera_origin"][:3]
    z, dz = dot(from_eye, forward), dot(direction, forward)
    at = vector(dot(from_eye, right), -dot(from_eye, up))
    along = vector(dot(direction, right), -dot(direction, up))
    return ScreenRay(HALF * size * (at + z[:, None]), HALF * size * (along + dz[:, None]), z, dz)


@dataclass(frozen=True, slots=True)
class PixelPlane:
    start: F32
    slope: F32
    depth: F32


def on_screen(frame: Any, place: F32) -> Flags:
    inside = (place[:, 0] < frame["width"]) & (place[:, 1] < frame["height"])
    return np.asarray(inside & (place >= 0.0).all(1))


@np.errstate(all="ignore")
def march_screen(
    frame: Any,
    surface: U32,
    depth: F32,
    origin: F32,
    direction: F32,
    steps: int,
) -> ScreenHit:
    """`origin` and `direction` [n, 3]; at most `steps` long steps."""

    def pixel_plane(place: F32, lanes: Index) -> PixelPlane:
        x, y = place.astype(np.int64).T
        pixel_depth = depth[y, x]
        seen = pixel_depth != 0.0
        normal = decode_normal(surface[y, x, 1])
        position = frame["camera_origin"][:3]
        position = position + pixel_depth[:, None] * camera_direction(frame, x, y)
        start = dot(normal, origin[lanes] - position)
        slope = dot(normal, direction[lanes])
        return PixelPlane(
            np.where(seen, start, np.float32(0.0)),
            np.where(seen, slope, np.float32(0.0)),
            pixel_depth,
        )

    ray = screen_ray(frame, origin, direction)
    count = len(origin)
    begin_at = ray.place(np.zeros(count, np.float32))
    moves = ray.b * ray.z[:, None] - ray.a * ray.dz[:, None]
    along_x = np.abs(moves[:, 0]) >= np.abs(moves[:, 1])

    def longer(pair: F32) -> F32:
        return np.where(along_x, pair[:, 0], pair[:, 1])

    forward, begin, a, b = (longer(pair) for pair in (moves, begin_at, ray.a, ray.b))
    size = np.where(along_x, np.float32(frame["width"]), np.float32(frame["height"]))
    unit = np.where(forward > 0.0, np.float32(1.0), np.float32(-1.0))
    first = np.where(forward > 0.0, np.floor(begin) + 1, np.ceil(begin) - 1).astype(np.float32)
    borders = np.where(forward > 0.0, size - first + 1, first + 1)
    borders = np.maximum(borders, 1).astype(np.int64)
    stride = (borders + steps - 1) // steps

    found = np.zeros(count, bool)
    pixel, at = np.zeros((count, 2), np.int64), np.zeros(count, np.float32)
    entered = np.zeros(count, np.float32)
    passed, single = np.zeros(count, np.int64), np.zeros(count, np.int64)
    going = (forward != 0.0) & on_screen(frame, begin_at)

    def border_at(lanes: Index, number: Index) -> tuple[F32, F32]:
        border = first[lanes] + unit[lanes] * number.astype(np.float32)
        t = (border * ray.z[lanes] - a[lanes]) / (b[lanes] - border * ray.dz[lanes])
        return border, t

    while (going & (passed < borders)).any():
        going &= passed < borders
        lanes = np.flatnonzero(going & (stride > 1) & (single == 0))
        _, t = border_at(lanes, passed[lanes] + stride[lanes] - 1)
        back = HALF * unit[lanes]
        zero = np.float32(0.0)
        shift = vector(np.where(along_x[lanes], back, zero), np.where(along_x[lanes], zero, back))
        place = ray[lanes].place(t) - shift
        ahead = ray.z[lanes] + t * ray.dz[lanes] > 0.0
        known = (t > entered[lanes]) & ahead & on_screen(frame, place)
        plane = pixel_plane(np.where(known[:, None], place, zero), lanes)
        free = known & ((plane.depth == 0.0) | (plane.start + t * plane.slope > 0.0))
        entered[lanes[free]] = t[free]
        passed[lanes[free]] += stride[lanes[free]]
        single[lanes[~free]] = stride[lanes[~free]]
        jumped = np.zeros(count, bool)
        jumped[lanes[free]] = True

        lanes = np.flatnonzero(going & ~jumped)
        own = ray[lanes]
        border, t = border_at(lanes, passed[lanes])
        ends = ~(t > entered[lanes]) | (own.z + t * own.dz <= 0.0)
        last = np.where(own.dz < 0.0, -own.z / own.dz, FAR)
        leaves = np.where(ends, last, t)
        other = own.place(np.where(ends, entered[lanes], HALF * (entered[lanes] + t)))
        centre = border - HALF * unit[lanes]
        x_side = along_x[lanes]
        place = vector(np.where(x_side, centre, other[:, 0]), np.where(x_side, other[:, 1], centre))
        inside = on_screen(frame, place)
        going[lanes[~inside]] = False
        lanes, ends, leaves, t = lanes[inside], ends[inside], leaves[inside], t[inside]
        place, own, came = place[inside], own[inside], entered[lanes]
        plane = pixel_plane(place, lanes)
        behind = own.z + came * own.dz - plane.depth
        near = (plane.start + came * plane.slope >= 0.0) | (behind <= THICKNESS * plane.depth)
        hit = (plane.depth > 0.0) & (plane.slope < 0.0) & near
        hit &= plane.start + leaves * plane.slope <= 0.0
        found[lanes[hit]] = True
        pixel[lanes[hit]] = place[hit].astype(np.int64)
        t_hit = np.minimum(np.maximum(-plane.start / plane.slope, came), leaves)
        at[lanes[hit]] = t_hit[hit]
        going[lanes[hit | ends]] = False
        entered[lanes] = t
        passed[lanes] += 1
        single[lanes] -= single[lanes] > 0
    return ScreenHit(found, pixel[:, 0], pixel[:, 1], at)
