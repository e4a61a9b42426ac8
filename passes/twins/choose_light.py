"""Twin of choose_light.wgsl: which light each shadow ray of a surface goes to."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from passes.shadow_slots import ShadowSlots
from passes.twins.rect_light import RectLights, light_count, lights_at
from passes.twins.wgsl_functions import F32, U32, Flags, dot

ALIKE = np.float32(0.125)


@dataclass(frozen=True, slots=True)
class LightChoice:
    """[n] each; weight of what the ray brings, 0: no light reaches the surface."""

    light: U32
    weight: F32


def light_height(light: RectLights, position: F32, normal: F32) -> F32:
    """[n] how far it reaches above the plane through `position`."""
    sides = np.abs(dot(normal, light.half_u)) + np.abs(dot(normal, light.half_v))
    return np.asarray(dot(normal, light.center - position) + sides)


def light_importance(light: RectLights, position: F32, geometric_normal: F32, normal: F32) -> F32:
    """[n]"""
    ahead = dot(position - light.center, light.normal)
    height = light_height(light, position, normal)
    low = light_height(light, position, geometric_normal) <= 0.0
    nothing: Flags = (ahead <= 0.0) | (height <= 0.0) | low
    way = light.center - position
    sides = dot(light.half_u, light.half_u) + dot(light.half_v, light.half_v)
    distance2 = dot(way, way) + sides
    power = light.area * light.radiance.sum(-1)
    bound = power * (height / distance2) * (ahead / distance2)
    return np.where(nothing, np.float32(0.0), bound)


@np.errstate(all="ignore")  # where no light reaches the surface nothing is chosen
def choose_light(
    frame: Any,
    slots: ShadowSlots,
    number: int,
    r: F32,
    position: F32,
    geometric_normal: F32,
    normal: F32,
    *,
    uniform: bool = False,
) -> LightChoice:
    """For the surfaces' `number`th rays."""
    lights, count = light_count(frame), len(position)
    if lights <= slots.rays:
        light = number % lights
        rays = (slots.rays - light + lights - 1) // lights
        weight = np.full(count, np.float32(1.0) / np.float32(rays))
        return LightChoice(np.full(count, light, np.uint32), weight)
    found = [
        light_importance(lights_at(frame, i), position, geometric_normal, normal)
        for i in range(lights)
    ]
    total, lit = np.zeros((2, count), np.float32)
    for importance in found:
        total = total + importance
        lit = lit + (importance > 0.0).astype(np.float32)
    place = (np.float32(number) + r) / np.float32(slots.rays)
    alike = np.float32(1.0) if uniform else ALIKE
    chosen, weight = np.zeros(count, np.uint32), np.zeros(count, np.float32)
    begin = np.zeros(count, np.float32)
    for i, importance in enumerate(found):
        probability = (np.float32(1.0) - alike) * (importance / total) + alike / lit
        here = (importance > 0.0) & (begin <= place)
        chosen[here] = i
        weight = np.where(here, np.float32(1.0) / (np.float32(slots.rays) * probability), weight)
        begin = np.where(here, begin + probability, begin)
    return LightChoice(chosen, weight)
