"""Twin of screen_march.wgsl: a ray followed over the picture."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from passes.depth_pyramid import TOP
from passes.twins.camera import camera_direction
from passes.twins.depth_pyramid import BEHIND, HALF, ONE, corners, unpack_plane
from passes.twins.wgsl_functions import F32, U32, Flags, Index, clamp, dot, to_float, vector

FAR, LEAST_MOVE = np.float32(3.0e38), np.float32(1.0e-20)


@dataclass(frozen=True, slots=True)
class ScreenHit:
    """Arrays over lanes; places of lanes that found nothing are (0, 0). `cut`: had not come to
    their end; `steps`: the cells that each looked at."""

    found: Flags
    cut: Flags
    x: Index
    y: Index
    t: F32
    steps: Index


@dataclass(frozen=True, slots=True)
class ScreenRay:
    """Over s = t / depth: the place on the picture, [n, 2] pixels, and the reciprocal of the depth,
    [n]."""

    start: F32
    moves: F32
    near: F32
    near_rate: F32

    def place(self, s: F32) -> F32:
        return np.asarray(self.start + s[:, None] * self.moves)

    def nearness(self, s: F32) -> F32:
        return np.asarray(np.maximum(self.near + s * self.near_rate, np.float32(0.0)))

    def __getitem__(self, lanes: Any) -> "ScreenRay":
        return ScreenRay(
            self.start[lanes], self.moves[lanes], self.near[lanes], self.near_rate[lanes]
        )


def screen_ray(frame: Any, x: Index, y: Index, near: F32, direction: F32) -> ScreenRay:
    """From where the centres of pixels show something, at the reciprocal depths `near`."""
    size = np.array([frame["width"], frame["height"]], np.float32)
    start = vector(x, y) + HALF
    right, up = (frame[f"camera_{name}"][:3] for name in ("right", "up"))
    right, up = right / dot(right, right), up / dot(up, up)
    along = vector(dot(direction, right), -dot(direction, up))
    dz = dot(direction, frame["camera_forward"][:3])
    moves = HALF * size * along + (HALF * size - start) * dz[:, None]
    least = np.where(moves < 0.0, -LEAST_MOVE, LEAST_MOVE)
    some = np.asarray(np.where(np.abs(moves) < LEAST_MOVE, least, moves), np.float32)
    return ScreenRay(start, some, near, -dz * near)


def seen_nearness(pyramid: U32, x: Index, y: Index) -> F32:
    return to_float(pyramid[y, x, 0])


def seen_position(frame: Any, pyramid: U32, x: Index, y: Index) -> F32:
    """[n, 3] what pixels show."""
    seen = camera_direction(frame, x, y) / seen_nearness(pyramid, x, y)[:, None]
    return np.asarray(frame["camera_origin"][:3] + seen)


def next_pixel(
    ray: ScreenRay, inverse: F32, forward: Index, beyond: Index, by_x: Flags, s: F32
) -> Index:
    def other(pair: Any) -> Any:
        return np.where(by_x, pair[:, 1], pair[:, 0])

    start, to_s, ahead = other(ray.start), other(inverse), other(forward)
    place = np.floor(start + s * other(ray.moves)).astype(np.int64)
    passed = ((place + ahead).astype(np.float32) - start) * to_s <= s
    not_yet = ((place + 1 - ahead).astype(np.float32) - start) * to_s > s
    place += (2 * ahead - 1) * (passed.astype(np.int64) - not_yet)
    x, y = np.where(by_x, beyond[:, 0], place), np.where(by_x, place, beyond[:, 1])
    return np.stack([x, y], -1)


@np.errstate(all="ignore")
def march_screen(
    frame: Any, pyramid: U32, x: Index, y: Index, direction: F32, steps: int, top: int = TOP
) -> ScreenHit:
    """From what pixels x, y show on along `direction` [n, 3]; looks at no more than `steps` cells,
    of levels up to `top`: of level 0 alone it goes through every pixel."""
    width, height, count = int(frame["width"]), int(frame["height"]), len(x)
    rays = screen_ray(frame, x, y, seen_nearness(pyramid, x, y), direction)
    inverses = ONE / rays.moves
    forwards = (rays.moves > 0.0).astype(np.int64)
    far_side = np.where(forwards > 0, np.array([width, height], np.float32), np.float32(0.0))
    ends = ((far_side - rays.start) * inverses).min(1)
    ends = np.where(rays.near_rate < 0.0, np.minimum(ends, -rays.near / rays.near_rate), ends)

    found, at = np.zeros(count, bool), np.zeros(count, np.float32)
    pixels, looked = np.zeros((count, 2), np.int64), np.zeros(count, np.int64)
    lanes = np.flatnonzero(ends > 0.0)
    pixel = np.stack([x, y], -1)[lanes]
    level, entered = np.zeros(len(lanes), np.int64), np.zeros(len(lanes), np.float32)
    for step in range(steps):
        looked[lanes] += 1
        ray, inverse, forward = rays[lanes], inverses[lanes], forwards[lanes]
        corner_x, corner_y = corners(level, width, height)
        cell = pixel >> level[:, None]
        words = pyramid[corner_y + cell[:, 1], corner_x + cell[:, 0]]
        border = (cell + forward) << level[:, None]
        crossings = (border.astype(np.float32) - ray.start) * inverse
        leaves = np.minimum(crossings.min(1), ends[lanes])
        near, near_out = ray.nearness(entered), ray.nearness(leaves)
        by_x = crossings[:, 0] < crossings[:, 1]
        following = next_pixel(ray, inverse, forward, border + forward - 1, by_x, leaves)

        plane = unpack_plane(words)
        offset = ray.place(entered) - (pixel.astype(np.float32) + HALF)
        lifted = ONE + dot(plane.tilt, offset)
        before = near - plane.near * lifted
        rise = (leaves - entered) * dot(plane.tilt, ray.moves)
        after = near_out - plane.near * (lifted + rise)
        hit = (level == 0) & (plane.near > 0.0) & (step > 0)
        hit &= ((before >= 0.0) | (near >= BEHIND * plane.near)) & (after <= 0.0)
        hit &= after < before
        part = clamp(before / (before - after), 0.0, 1.0)
        s_hit = entered + part * (leaves - entered)
        found[lanes[hit]], pixels[lanes[hit]] = True, pixel[hit]
        at[lanes[hit]] = (s_hit / ray.nearness(s_hit))[hit]

        bounds = to_float(words)
        meets = np.minimum(near, near_out) <= bounds[:, 0]
        meets &= np.maximum(near, near_out) >= bounds[:, 1]
        descends = (level > 0) & meets
        ended = ~descends & (hit | (leaves >= ends[lanes]))

        leaves_parent = ((following ^ pixel) >> (level[:, None] + 1)).any(1)
        risen = np.minimum(level + leaves_parent, top)
        pixel = np.where(descends[:, None], pixel, following)
        entered = np.where(descends, entered, leaves)
        level = np.where(descends, level - 1, risen)
        going = ~ended
        lanes, pixel, entered, level = lanes[going], pixel[going], entered[going], level[going]
        if not len(lanes):
            break
    cut = np.zeros(count, bool)
    cut[lanes] = True
    return ScreenHit(found, cut, pixels[:, 0], pixels[:, 1], at, looked)
