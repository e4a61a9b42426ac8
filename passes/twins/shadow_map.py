"""Twin of shadow_map.wgsl: how much of the light a point sees, from depths about its centre."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from passes.frame_options import LIGHT_FACES
from passes.twins.rect_light import RectLights, lights_at
from passes.twins.wgsl_functions import F32, U32, Index, cross, dot, normalize, vector

TAPS_A_SIDE = 4
SEARCH = np.float32(3.0)
RINGS = 5
ASIDE = np.float32(3.0)
BIAS = np.float32(0.5)
ZERO, ONE, TWO = np.float32(0.0), np.float32(1.0), np.float32(2.0)


@dataclass(frozen=True, slots=True)
class MapTexel:
    """Arrays over lanes."""

    x: Index
    y: Index
    layer: Index
    direction: F32
    stored: F32


@dataclass(frozen=True, slots=True)
class LightAxes:
    """[n, 3] each."""

    x: F32
    y: F32
    z: F32


@dataclass(frozen=True, slots=True)
class Receiver:
    """[n, 3], [n, 3], [n]."""

    offset: F32
    normal: F32
    height: F32


def light_axes(light: RectLights) -> LightAxes:
    x = normalize(light.half_u)
    return LightAxes(x, cross(light.normal, x), light.normal)


def map_texel(shadow_map: F32, axes: LightAxes, first: Index, d: F32) -> MapTexel:
    """`shadow_map` [layers, size, size], `d` [n, 3]; each one's map begins at `first` [n]."""
    size = np.float32(shadow_map.shape[1])
    p = vector(dot(d, axes.x), dot(d, axes.y), dot(d, axes.z))
    a = np.abs(p)
    whole = p[:, 2] >= np.maximum(a[:, 0], a[:, 1])
    along_x = a[:, 0] >= a[:, 1]
    side = np.where(along_x, p[:, 0], p[:, 1])
    layer = np.where(along_x, 1, 3) + (side < 0.0)
    layer = first + np.where(whole, 0, layer)
    sign = np.where(side >= 0.0, ONE, -ONE)[:, None]
    face_axis = np.where(along_x[:, None], sign * axes.x, sign * axes.y)
    axis = np.where(whole[:, None], axes.z, face_axis)
    right = np.where((whole | ~along_x)[:, None], axes.x, axes.y)
    up = np.where(whole[:, None], axes.y, axes.z)
    across = np.where(whole | ~along_x, p[:, 0], p[:, 1])
    upward = np.where(whole, p[:, 1], p[:, 2])
    depth = np.where(whole, p[:, 2], np.where(along_x, a[:, 0], a[:, 1]))
    depth = np.maximum(depth, np.float32(1.0e-20))
    tangent_x, tangent_y = across / depth, upward / depth
    y = np.where(whole, tangent_y, TWO * tangent_y - ONE)
    half = np.float32(0.5)
    place = vector(half + half * tangent_x, half - half * y) * size
    column, row = np.clip(place, ZERO, size - ONE).astype(np.int64).T
    centre_x, centre_y = ((part + half).astype(np.float32) / size for part in (column, row))
    right_part = TWO * centre_x - ONE
    up_part = np.where(whole, ONE - TWO * centre_y, ONE - centre_y)
    direction = axis + right_part[:, None] * right + up_part[:, None] * up
    return MapTexel(
        column, row, layer, np.asarray(direction, np.float32), shadow_map[layer, row, column]
    )


def receiver_depth(axes: LightAxes, r: Receiver, direction: F32) -> F32:
    ahead = dot(direction, axes.z)
    depth = np.where(ahead > 0.0, r.height / ahead, np.float32(3.0e38))
    facing = dot(direction, r.normal)
    plane = dot(r.offset, r.normal) / facing
    meets = (facing < 0.0) & (plane > 0.0)
    return np.where(meets, np.minimum(depth, plane), depth)


@np.errstate(all="ignore")
def map_visibility(
    frame: Any,
    shadow_map: F32,
    number: U32,
    position: F32,
    surface_normal: F32,
    jitter: F32,
) -> F32:
    """[n] in 0 to 1, of lights `number` [n]; `jitter` [n, 2]."""
    light = lights_at(frame, number)
    axes, first = light_axes(light), LIGHT_FACES * number.astype(np.int64)
    near = frame["view_near"]
    offset = position - light.center
    away = (dot(surface_normal, offset) > 0.0)[:, None]
    normal = np.where(away, -surface_normal, surface_normal)
    texel_part = TWO / np.float32(shadow_map.shape[1])
    reach = np.maximum(
        np.abs(dot(offset, axes.x)), np.maximum(np.abs(dot(offset, axes.y)), dot(offset, axes.z))
    )
    offset = offset + (BIAS * texel_part * reach)[:, None] * normal
    r = Receiver(offset, normal, dot(offset, axes.z))
    u, v = light.half_u, light.half_v
    u2, v2 = dot(u, u), dot(v, v)
    least = np.sqrt(np.minimum(u2, v2))

    blockers = np.zeros(len(position), np.float32)
    width = np.zeros(len(position), np.float32)
    nearest = np.full(len(position), ASIDE)
    nearest_width = np.zeros(len(position), np.float32)
    for i in range(4 * RINGS + 1):
        s = search_point(i, jitter)
        texel = map_texel(shadow_map, axes, first, r.offset + s[:, :1] * u + s[:, 1:] * v)
        depth = near / np.maximum(texel.stored, np.float32(1.0e-30))
        nearer = depth < receiver_depth(axes, r, texel.direction)
        blocker = depth[:, None] * texel.direction
        height = dot(blocker, axes.z)
        below = r.height - height
        on_light = r.offset + (blocker - r.offset) * (r.height / below)[:, None]
        slack = ONE + texel_part * depth * (reach / below) / least
        between = nearer & (height > 0.0) & (below > 0.0)
        aside = np.maximum(np.abs(dot(on_light, u)) / u2, np.abs(dot(on_light, v)) / v2)
        hides = between & (aside <= slack)
        blockers += hides
        width += np.where(hides, below / height, ZERO)
        misses = between & ~hides & (aside < nearest)
        nearest = np.where(misses, aside, nearest)
        nearest_width = np.where(misses, below / height, nearest_width)
    lit = (blockers == 0) & (nearest == ASIDE)
    width = np.where(blockers > 0, width / np.maximum(blockers, ONE), nearest_width)
    filtered = np.maximum(width, texel_part * reach / least)

    hidden = np.zeros(len(position), np.float32)
    for i in range(TAPS_A_SIDE**2):
        s = filtered[:, None] * tap(i, jitter)
        texel = map_texel(shadow_map, axes, first, r.offset + s[:, :1] * u + s[:, 1:] * v)
        depth = near / np.maximum(texel.stored, np.float32(1.0e-30))
        hidden += depth < receiver_depth(axes, r, texel.direction)
    visible = np.where(lit, ONE, ONE - hidden / np.float32(TAPS_A_SIDE**2))
    return np.where(r.height <= 0.0, ZERO, visible)


def search_point(i: int, jitter: F32) -> F32:
    """[n, 2] in lights."""
    if i == 4 * RINGS:
        return np.zeros_like(jitter)
    side = SEARCH / np.float32(4 ** (i // 4))
    return np.asarray(side * (np.array([i & 1, (i >> 1) & 1], np.float32) + jitter - ONE))


def tap(i: int, jitter: F32) -> F32:
    """[n, 2] of -1 to 1."""
    cell = np.array([i % TAPS_A_SIDE, i // TAPS_A_SIDE], np.float32)
    return np.asarray(TWO * (cell + jitter) / np.float32(TAPS_A_SIDE) - ONE)
