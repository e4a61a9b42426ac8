"""Twin of denoise.wgsl: one round of an a-trous wavelet filter."""

from typing import Any

import numpy as np

from passes.twins.camera import camera_direction
from passes.twins.filter_light import has_light, light_factor, luminance, unpack_w
from passes.twins.gbuffer import Pixels, tile_pixels, unpack_surface
from passes.twins.lobe_radius import lobe_radius
from passes.twins.octahedral import decode_normal
from passes.twins.tone_map import pack_radiance, unpack_radiance
from passes.twins.wgsl_functions import F32, U32, Flags, dot, length, normalize, to_float

NORMAL_POWER = np.float32(128.0)
PLANE_PIXELS = np.float32(1.0)
DIRECT_DEVIATIONS, REFLECTION_DEVIATIONS = np.float32(2.0), np.float32(4.0)
ROUGHNESS_APART = np.float32(0.1)
KERNEL = np.array([0.375, 0.25, 0.0625], np.float32)
HALF, NONE, ONE, LARGEST = (np.float32(x) for x in (0.5, 0.0, 1.0, 6.0e4))


def beside(frame: Any, here: Pixels, x: int, y: int) -> tuple[Pixels, Flags]:
    """The pixels so far to the right and down, and which of them are in the picture; the others
    are `here`."""
    width, height = int(frame["width"]), int(frame["height"])
    there_x, there_y = here.x + x, here.y + y
    inside = (there_x >= 0) & (there_y >= 0) & (there_x < width) & (there_y < height)
    there_x, there_y = np.where(inside, there_x, here.x), np.where(inside, there_y, here.y)
    return Pixels(there_x, there_y, (there_y * width + there_x).astype(np.uint32)), inside


def from_camera(frame: Any, pixels: Pixels, guided: U32) -> F32:
    """[n, 3]"""
    return camera_direction(frame, pixels.x, pixels.y) * to_float(guided[:, 0])[:, None]


@np.errstate(all="ignore")
def denoise(
    frame: Any,
    filter_view: Any,
    surface: U32,
    guide: U32,
    light: U32,
    unfiltered: U32,
    filtered: U32,
    lobe_table: U32,
    *,
    reflection: bool = False,
    step: int = 1,
    last: bool = False,
) -> None:
    """Writes `filtered` [pixels, 2]."""
    guide = guide[int(filter_view["after"]) :]
    pixels = tile_pixels(frame)
    filtered[pixels.index] = light[pixels.index]
    guided = guide[pixels.index]
    lit = np.flatnonzero(has_light(frame, guided[:, 2], to_float(guided[:, 3]), reflection))
    here, guided = pixels[lit], guided[lit]
    object, roughness = guided[:, 2], to_float(guided[:, 3])
    s = unpack_surface(surface[here.y, here.x])
    point = from_camera(frame, here, guided)
    off_plane = PLANE_PIXELS * np.float32(frame["pixel_spread"]) * to_float(guided[:, 0])
    brightness = luminance(unpack_radiance(unfiltered[here.index]))

    def alike(there: Pixels, inside: Flags) -> tuple[U32, Flags]:
        other = guide[there.index]
        same = inside & (other[:, 2] == object)
        return other, same & has_light(frame, object, to_float(other[:, 3]), reflection)

    squares, total = np.zeros(len(lit), np.float32), np.zeros(len(lit), np.float32)
    for y in range(-1, 2):
        for x in range(-1, 2):
            there, inside = beside(frame, here, x, y)
            same = alike(there, inside)[1]
            weight = np.where(same, ONE / np.float32((1 + abs(x)) * (1 + abs(y))), NONE)
            deviation = unpack_w(unfiltered[there.index])
            squares += weight * deviation * deviation
            total += weight
    deviations = REFLECTION_DEVIATIONS if reflection else DIRECT_DEVIATIONS
    noise = deviations * np.sqrt(squares / total)
    noise = noise + np.float32(1.0e-3) * brightness + np.float32(1.0e-6)
    w = unpack_w(light[here.index])
    radius = np.maximum(lobe_radius(frame, roughness, w, length(point)), np.float32(1.0e-3))
    narrow = HALF / (radius * radius)

    summed, variance = np.zeros((len(lit), 3), np.float32), np.zeros(len(lit), np.float32)
    total = np.zeros(len(lit), np.float32)
    for y in range(-2, 3):
        for x in range(-2, 3):
            there, inside = beside(frame, here, step * x, step * y)
            other, same = alike(there, inside)
            cosine = dot(decode_normal(other[:, 1]), s.shading_normal)
            same &= cosine > 0.0
            radiance = unpack_radiance(unfiltered[there.index])
            off = np.abs(dot(from_camera(frame, there, other) - point, s.geometric_normal))
            cost = off / off_plane + np.abs(luminance(radiance) - brightness) / noise
            cost -= NORMAL_POWER * np.log(np.clip(cosine, np.float32(1.0e-6), ONE))
            if reflection:
                cost += np.abs(to_float(other[:, 3]) - roughness) / ROUGHNESS_APART
                cost += narrow * np.float32(step * step * (x * x + y * y))
            weight = KERNEL[abs(x)] * KERNEL[abs(y)] * (np.exp(-cost) if x or y else ONE)
            weight = np.where(same, weight, NONE)
            deviation = unpack_w(unfiltered[there.index])
            summed += weight[:, None] * radiance
            variance += weight * weight * deviation * deviation
            total += weight
    mean = summed / total[:, None]
    if last:
        view = normalize(-camera_direction(frame, here.x, here.y))
        found = pack_radiance(mean * light_factor(lobe_table, s, view, reflection), w)
    else:
        found = pack_radiance(mean, np.minimum(np.sqrt(variance) / total, LARGEST))
    filtered[here.index] = found
