"""Twin of history.wgsl: a light blended with what is remembered of it."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from passes.filter_records import CLAMPED_DIFFUSE, CLAMPED_GLOSSY, PASTS
from passes.twins.borrowed import sample_worth
from passes.twins.brdf import NARROW_ROUGHNESS, diffuse_albedo
from passes.twins.camera import camera_direction
from passes.twins.environment import ambient_radiance
from passes.twins.filter_light import has_light, light_factor, luminance, unpack_w
from passes.twins.gbuffer import NOTHING, GBufferSurface, Pixels, tile_pixels, unpack_surface
from passes.twins.lobe_radius import lobe_radius
from passes.twins.octahedral import decode_normal
from passes.twins.surface_albedo import surface_albedo
from passes.twins.tone_map import pack_radiance, unpack_radiance
from passes.twins.wgsl_functions import (
    F32,
    U32,
    Flags,
    dot,
    mix,
    normalize,
    pack_2x16_float,
    to_float,
    to_words,
    unpack_2x16_float,
    vector,
)
from passes.twins.wgsl_functions import (
    length as size_of,
)

SAME_NORMAL = np.float32(0.98)
LIKE_NORMAL = np.float32(0.9)
SAME_PLANE = np.float32(0.01)
CLAMP_DEVIATIONS = np.float32(1.5)
DOUBT_DEVIATIONS = np.float32(3.0)
BLUR_NOISE = np.float32(0.08)
DIRECT_FRAMES = np.float32(4.0)
GLOSSY = np.float32(0.6)
SHARP_FRAMES = np.float32(3.0)
SHARP_STALE = np.float32(0.5)
LEAST_FOCUS = np.float32(0.1)
LEAST_SAMPLES = 4.0
REACH = 2
ONE, TWO, HALF, NONE, LARGEST = (np.float32(x) for x in (1.0, 2.0, 0.5, 0.0, 6.0e4))
LEAST, LEAST_SQUARE = np.float32(1.0e-6), np.float32(1.0e-12)


@dataclass(frozen=True, slots=True)
class Past:
    """Of [n] pixels: `light` [n, 3], the frames that it is the mean of, a sample's deviation, and
    the part of it that the newest sample makes up for."""

    light: F32
    length: F32
    deviation: F32
    stale: F32


def no_past(count: int) -> Past:
    zeros = np.zeros(count, np.float32)
    return Past(np.zeros((count, 3), np.float32), *(zeros.copy() for _ in range(3)))


def where(chosen: Flags, past: Past, other: Past) -> Past:
    return Past(
        np.where(chosen[:, None], past.light, other.light),
        np.where(chosen, past.length, other.length),
        np.where(chosen, past.deviation, other.deviation),
        np.where(chosen, past.stale, other.stale),
    )


def past_at(history: U32, index: Any) -> Past:
    words = history[index]
    more = unpack_2x16_float(words[:, 3])
    return Past(to_float(words[:, :3]), more[:, 0], more[:, 1], np.zeros(len(words), np.float32))


def direction_before(frame: Any, view: Any, place: F32) -> F32:
    """[n, 3] of `place` [n, 2]."""
    x = place[:, :1] / np.float32(frame["width"]) * np.float32(2.0) - ONE
    y = ONE - place[:, 1:] / np.float32(frame["height"]) * np.float32(2.0)
    return view["forward"][:3] + x * view["right"][:3] + y * view["up"][:3]


def place_before(frame: Any, view: Any, point: F32) -> F32:
    """[n, 3] pixels, and depth."""
    v = point - view["origin"][:3]
    right, up = view["right"][:3], view["up"][:3]
    z = dot(v, view["forward"][:3])
    x = dot(v, right) / dot(right, right) / z
    y = dot(v, up) / dot(up, up) / z
    width, height = np.float32(frame["width"]), np.float32(frame["height"])
    return vector((HALF + HALF * x) * width, (HALF - HALF * y) * height, z)


def reflected_motion(
    frame: Any, view: Any, direction: F32, z: F32, distance: F32, roughness: F32, curvature: F32
) -> F32:
    """[n, 2] pixels"""
    smoothness = ONE - roughness
    focused = distance / np.maximum(ONE + TWO * curvature * distance, LEAST_FOCUS)
    behind = focused * smoothness * (np.sqrt(smoothness) + roughness)
    point = frame["camera_origin"][:3] + direction * z[:, None]
    image = place_before(frame, view, point + normalize(direction) * behind[:, None])
    itself = place_before(frame, view, point)
    seen = (image[:, 2:] > 0.0) & (itself[:, 2:] > 0.0)
    return np.where(seen, image[:, :2] - itself[:, :2], NONE)


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """Of [n] pixels and those around on the same surface: `mean` and `deviation` [n, 3] of their
    samples, `light_deviation` of the luminance, `bend` radians to the normal that is turned most,
    `curvature` in 1/metres, positive where the surface bulges to the camera."""

    mean: F32
    deviation: F32
    light_deviation: F32
    bend: F32
    curvature: F32


def neighbourhood(
    frame: Any, here: Pixels, object: U32, normal: F32, light: F32, point: F32
) -> Neighbourhood:
    """`point` [n, 3] metres from the camera."""
    width, height = int(frame["width"]), int(frame["height"])
    padded: list[Any] = []
    for values, empty in ((object, NOTHING), (normal, 0.0), (light, 0.0), (point, 0.0)):
        side = (height + 2 * REACH, width + 2 * REACH)
        grid = np.full((*side, *values.shape[1:]), empty, values.dtype)
        grid[here.y + REACH, here.x + REACH] = values
        padded.append(grid)
    n = len(object)
    turned, along, squared_way = (np.zeros(n, np.float32) for _ in range(3))
    count, light_sum, light_squares = (np.zeros(n, np.float32) for _ in range(3))
    total, squares = (np.zeros((n, 3), np.float32) for _ in range(2))
    for y in range(2 * REACH + 1):
        for x in range(2 * REACH + 1):
            other, facing, lit, place = (grid[here.y + y, here.x + x] for grid in padded)
            same = (other == object) & (dot(facing, normal) >= LIKE_NORMAL)
            turn = facing - normal
            turned = np.where(same, np.maximum(turned, dot(turn, turn)), turned)
            way = place - point
            along += np.where(same, dot(turn, way), NONE)
            squared_way += np.where(same, dot(way, way), NONE)
            apart = np.where(same[:, None], lit - light, NONE)
            light_apart = luminance(apart)
            count += same
            total += apart
            squares += apart * apart
            light_sum += light_apart
            light_squares += light_apart * light_apart
    mean, light_mean = total / count[:, None], light_sum / count
    deviation = np.sqrt(np.maximum(squares / count[:, None] - mean * mean, NONE))
    light_deviation = np.sqrt(np.maximum(light_squares / count - light_mean * light_mean, NONE))
    curvature = np.asarray(along / np.maximum(squared_way, np.float32(1.0e-20)), np.float32)
    return Neighbourhood(light + mean, deviation, light_deviation, np.sqrt(turned), curvature)


def blurred(past: Past, blur: F32, reflection: bool) -> F32:
    """[n]"""
    variance = past.deviation * past.deviation
    edge = np.maximum(blur * blur - BLUR_NOISE * variance, LEAST_SQUARE)
    part = np.maximum(HALF * variance / edge, LEAST_SQUARE)
    most = past.length if reflection else np.full_like(part, DIRECT_FRAMES)
    frames = np.clip(np.power(part, np.float32(1.0 / 3.0)), ONE, np.maximum(most, ONE))
    even = ONE / (past.length + ONE)
    return np.maximum((ONE / (frames + ONE) - even) / (ONE - even), NONE)


def moved_past(
    frame: Any,
    view: Any,
    here: Pixels,
    object: U32,
    s: GBufferSurface,
    depth: F32,
    distance: F32,
    curvature: F32,
    motion: F32,
    depth_before: F32,
    guide: U32,
    history: U32,
    reflection: bool,
) -> Past:
    before, width, height = int(view["before"]), int(frame["width"]), int(frame["height"])
    z_before = depth_before[here.index]
    was = vector(here.x, here.y) + HALF - motion[here.index]
    point = direction_before(frame, view, was) * z_before[:, None]
    place = was
    if reflection:
        direction = camera_direction(frame, here.x, here.y)
        place = was + reflected_motion(
            frame, view, direction, depth[here.y, here.x], distance, s.roughness, curvature
        )
    first = np.floor(place - HALF)
    part = place - HALF - first
    off_plane = z_before * (SAME_PLANE + np.float32(frame["pixel_spread"]))
    past = no_past(len(object))
    total = np.zeros(len(object), np.float32)
    weights, lights = (np.zeros((len(object), 4), np.float32) for _ in range(2))
    for k in range(4):
        step = np.array([k & 1, k >> 1], np.float32)
        tap = first + step
        inside = (tap >= 0.0).all(-1) & (tap[:, 0] < width) & (tap[:, 1] < height)
        at = np.where(inside, tap[:, 1] * width + tap[:, 0], 0).astype(np.int64)
        seen = guide[before + at]
        there = direction_before(frame, view, tap + HALF) * to_float(seen[:, 0])[:, None]
        old = past_at(history, before + at)
        same = inside & (z_before > 0.0) & (old.length > 0.0) & (seen[:, 2] == object)
        same &= dot(decode_normal(seen[:, 1]), s.shading_normal) >= SAME_NORMAL
        same &= np.abs(dot(there - point, s.geometric_normal)) <= off_plane
        sides = mix(ONE - part, part, step)
        weight = np.where(same, sides[:, 0] * sides[:, 1], NONE)
        total += weight
        weights[:, k] = weight
        lights[:, k] = np.where(same, luminance(old.light), NONE)
        past.light[:] += np.where(same[:, None], weight[:, None] * old.light, NONE)
        past.length[:] += np.where(same, weight * old.length, NONE)
        past.deviation[:] += np.where(same, weight * old.deviation, NONE)
    found = total >= np.float32(1.0e-3)
    safe = np.where(found, total, ONE)
    past = Past(
        np.where(found[:, None], past.light / safe[:, None], NONE),
        np.where(found, past.length / safe, NONE),
        np.where(found, past.deviation / safe, NONE),
        np.where(found & (not reflection), np.maximum(ONE - total * total, NONE), NONE),
    )
    if not view["clamped"]:
        return past
    apart = np.abs(lights - luminance(past.light)[:, None])
    blur = np.asarray(HALF * dot(weights, apart) / safe, np.float32)
    return replace(
        past, stale=np.where(found, np.maximum(past.stale, blurred(past, blur, reflection)), NONE)
    )


def shines(lobe_table: U32, s: GBufferSurface, view: F32) -> Flags:
    """[n]"""
    specular = surface_albedo(lobe_table, s, view)
    diffuse = diffuse_albedo(s.base_color, s.metalness, specular)
    return np.asarray((s.roughness <= GLOSSY) & (luminance(specular) > luminance(diffuse)))


def fit_to(around: Neighbourhood, past: Past, reflection: bool) -> Past:
    reach = (DOUBT_DEVIATIONS if reflection else CLAMP_DEVIATIONS) * around.deviation
    fitting = np.minimum(np.maximum(past.light, around.mean - reach), around.mean + reach)
    changed = np.abs(luminance(past.light - fitting))
    room = np.maximum(changed + CLAMP_DEVIATIONS * around.light_deviation, LEAST)
    light = past.light if reflection else fitting
    return replace(past, light=light, length=past.length * (ONE - changed / room))


def kept_sharp(
    frame: Any,
    here: Pixels,
    depth: F32,
    distance: F32,
    roughness: F32,
    around: Neighbourhood,
    past: Past,
    reflection: bool,
) -> Past:
    if not reflection:
        return replace(past, stale=np.maximum(past.stale, ONE - roughness / GLOSSY))
    most = np.where(around.bend > frame["pixel_spread"], NONE, SHARP_FRAMES)
    direction = camera_direction(frame, here.x, here.y)
    away = size_of(direction) * depth[here.y, here.x]
    curved = TWO * np.abs(around.curvature) * away * distance / (distance + away)
    bent = np.where(roughness < NARROW_ROUGHNESS, curved, NONE)
    is_sharp = TWO * lobe_radius(frame, roughness, distance, away) < ONE + bent
    sharp = replace(
        past, length=np.minimum(past.length, most), stale=np.maximum(past.stale, SHARP_STALE)
    )
    return where(is_sharp, sharp, past)


@np.errstate(all="ignore")
def history(
    frame: Any,
    filter_view: Any,
    visibility: U32,
    surface: U32,
    depth: F32,
    light: U32,
    occlusion_results: U32,
    motion: F32,
    depth_before: F32,
    guide: U32,
    history: U32,
    filtered: U32,
    lobe_table: U32,
    *,
    reflection: bool = False,
    occluded: bool = False,
    denoised: bool = False,
    reflection_block: int = 1,
) -> None:
    """Writes the frame's half of `history` [2 * pixels, 4], `filtered` [pixels, 2], and with the
    area light's `guide` [2 * pixels, 4]."""
    after = int(filter_view["after"])
    pixels = tile_pixels(frame)
    object = visibility[pixels.y, pixels.x, 0]
    words = surface[pixels.y, pixels.x]
    s = unpack_surface(words)
    if not reflection:
        z = to_words(depth[pixels.y, pixels.x])
        guide[after + pixels.index] = np.stack([z, words[:, 0], object, to_words(s.roughness)], -1)
    history[after + pixels.index] = 0
    filtered[pixels.index] = light[pixels.index]
    lit = np.flatnonzero(has_light(frame, object, s.roughness, reflection))
    here, object, s = pixels[lit], object[lit], unpack_surface(words[lit])
    view = normalize(-camera_direction(frame, here.x, here.y))
    factor = light_factor(lobe_table, s, view, reflection)
    radiance = unpack_radiance(light[here.index])
    if occluded and not reflection:
        diffuse = diffuse_albedo(s.base_color, s.metalness, surface_albedo(lobe_table, s, view))
        arrives = occlusion_results[here.index] != 0
        ambient = diffuse * ambient_radiance(frame, s.shading_normal)
        radiance = radiance + np.where(arrives[:, None], ambient, NONE)
    now = radiance / factor
    w = unpack_w(light[here.index])
    point = camera_direction(frame, here.x, here.y) * depth[here.y, here.x][:, None]
    around = neighbourhood(frame, here, object, s.shading_normal, now, point)

    past = no_past(len(lit))
    kind = PASTS[int(filter_view["past"])]
    if kind == "same":
        past = past_at(history, int(filter_view["before"]) + here.index)
    elif kind == "moved":
        past = moved_past(
            frame,
            filter_view,
            here,
            object,
            s,
            depth,
            w,
            around.curvature,
            motion,
            depth_before,
            guide,
            history,
            reflection,
        )
        is_glossy = shines(lobe_table, s, view) | reflection
        fitted = fit_to(around, past, reflection)
        sharp = kept_sharp(frame, here, depth, w, s.roughness, around, fitted, reflection)
        clamped = np.where(is_glossy, CLAMPED_GLOSSY, CLAMPED_DIFFUSE) & filter_view["clamped"]
        past = where(clamped != 0, where(is_glossy, sharp, fitted), past)
    worth = np.ones(len(lit), np.float32)
    if reflection:
        told = unpack_2x16_float(light[here.index, 1])[:, 1]
        away = size_of(camera_direction(frame, here.x, here.y)) * depth[here.y, here.x]
        frames = past.length if kind == "same" else np.zeros_like(past.length)
        worth = sample_worth(frame, s.roughness, told, away, frames, reflection_block)
    length = np.minimum(past.length + worth, np.float32(filter_view["limit"]))
    even = worth / length
    share = even + (ONE - even) * past.stale * worth
    apart = now - past.light
    blended = past.light + share[:, None] * apart
    shift = luminance(apart)
    squares = past.deviation * past.deviation + share * shift * shift
    deviation = np.where(past.length < HALF, NONE, np.sqrt((ONE - share) * squares))
    more = pack_2x16_float(vector(length, np.minimum(deviation, LARGEST)))
    history[after + here.index] = np.concatenate([to_words(blended), more[:, None]], -1)
    if denoised:
        of_sample = np.where(length < LEAST_SAMPLES, around.light_deviation, deviation)
        part = ONE / np.maximum(length, ONE)
        of_mean = of_sample * np.sqrt(part + (ONE - part) * past.stale)
        of_mean = np.minimum(of_mean, LARGEST)
        filtered[here.index] = pack_radiance(blended, of_mean)
    else:
        filtered[here.index] = pack_radiance(blended * factor, w)
