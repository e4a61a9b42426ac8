"""Twin of upsample.wgsl: light from the senders nearby whose surfaces are like a pixel's."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from passes.shadow_slots import ShadowSlots
from passes.twins.brdf import MIRROR_ROUGHNESS, NARROW_ROUGHNESS
from passes.twins.camera import camera_direction
from passes.twins.gbuffer import GBufferSurface, Pixels, unpack_surface
from passes.twins.reflected import reflected_distance, reflected_radiance
from passes.twins.reflection_block import Senders
from passes.twins.tone_map import MISS_DISTANCE
from passes.twins.wgsl_functions import F32, U32, Index, dot, vector

PLANE_TOLERANCE = np.float32(1.0)
ROUGHNESS_TOLERANCE = np.float32(0.5)
WIDE_SLACK = np.float32(8.0)
HARDLY = np.float32(1.0e-3)
LEAST_LIKENESS = np.float32(0.05)
OTHER_MATERIAL = np.float32(0.25)
LIKER = np.float32(1.001)
NEAREST = np.float32(0.025)


@dataclass(frozen=True, slots=True)
class Receivers:
    """[n] pixels that are shown light."""

    pixels: Pixels
    position: F32
    tolerance: F32
    s: GBufferSurface

    def __getitem__(self, lanes: Any) -> "Receivers":
        s = GBufferSurface(*(getattr(self.s, name)[lanes] for name in GBufferSurface.__slots__))
        return Receivers(self.pixels[lanes], self.position[lanes], self.tolerance[lanes], s)


def alike(r: Receivers, other: GBufferSurface, height: F32, slack: np.float32) -> F32:
    """[n]"""
    one = np.float32(1.0)
    plane = np.maximum(0.0, one - np.abs(height) / (slack * r.tolerance))
    c = np.maximum(0.0, dot(r.s.shading_normal, other.shading_normal))
    c2 = c * c
    facing = c2 * c2 * c2 * c2 * c2 * c2 * c2 * c2 if slack == one else c2
    roughness = np.maximum(r.s.roughness, other.roughness)
    allowed = slack * (np.float32(0.02) + ROUGHNESS_TOLERANCE * roughness)
    rough = np.maximum(0.0, one - np.abs(r.s.roughness - other.roughness) / allowed)
    return np.asarray(np.maximum(0.0, plane * facing * rough - LEAST_LIKENESS))


@dataclass(frozen=True, slots=True)
class Gathered:
    """[n, 3] radiance times weight; [n] weight; [n] the likest sender's distance."""

    radiance: F32
    weight: F32
    distance: F32


@dataclass(frozen=True, slots=True)
class SentLight:
    """What senders have, as the stage binds it."""

    frame: Any
    surface: U32
    depth: F32
    reflected: U32
    shadow_results: U32
    senders: Senders
    block: int
    slots: ShadowSlots

    def from_camera(self, x: Index, y: Index) -> F32:
        return np.asarray(self.depth[y, x][:, None] * camera_direction(self.frame, x, y))

    def receivers(self, pixels: Pixels, s: GBufferSurface) -> Receivers:
        spread = np.float32(self.block) * self.frame["pixel_spread"]
        footprint = spread * self.depth[pixels.y, pixels.x]
        position = self.from_camera(pixels.x, pixels.y)
        return Receivers(pixels, position, PLANE_TOLERANCE * footprint, s)

    def likeness(self, r: Receivers, x: Index, y: Index, *, wide: bool) -> F32:
        """[n] of the senders at (x, y)."""
        other = unpack_surface(self.surface[y, x])
        height = dot(r.s.geometric_normal, self.from_camera(x, y) - r.position)
        weight = alike(r, other, height, np.float32(1.0))
        if wide:
            weight = weight + HARDLY * alike(r, other, height, WIDE_SLACK)
        for limit in (MIRROR_ROUGHNESS, NARROW_ROUGHNESS):
            below = [s.roughness < limit for s in (other, r.s)]
            weight = np.where(below[0] != below[1], np.float32(0.0), weight)
        same = other.material == r.s.material
        return np.asarray(weight * np.where(same, np.float32(1.0), OTHER_MATERIAL))

    def gather(self, r: Receivers, corner: Any, side: int, *, wide: bool) -> Gathered:
        """From side x side blocks; `corner` x and y, [n] each, is the first."""
        down, across = self.senders.sends.shape
        radiance = np.zeros((len(r.position), 3), np.float32)
        total, largest = np.zeros((2, len(radiance)), np.float32)
        distance = np.full(len(radiance), MISS_DISTANCE)
        for step_y, step_x in np.ndindex(side, side):
            bx, by = corner[0] + step_x, corner[1] + step_y
            inside = (bx >= 0) & (by >= 0) & (bx < across) & (by < down)
            bx, by = np.clip(bx, 0, across - 1), np.clip(by, 0, down - 1)
            x, y = self.senders.x[by, bx], self.senders.y[by, bx]
            step = vector(x - r.pixels.x, y - r.pixels.y) / np.float32(self.block)
            weight = self.likeness(r, x, y, wide=wide) / (NEAREST + dot(step, step))
            weight = np.where(inside & self.senders.sends[by, bx], weight, np.float32(0.0))
            index = self.senders.index(self.frame)[by, bx]
            light = reflected_radiance(self.slots, self.reflected, self.shadow_results, index)
            some = (weight > 0.0)[:, None]
            radiance += np.where(some, weight[:, None] * light, np.float32(0.0))
            total += weight
            found = reflected_distance(self.slots, self.reflected, index)
            liker = weight > LIKER * largest
            distance = np.where(liker, found, distance)
            largest = np.where(liker, weight, largest)
        return Gathered(radiance, total, distance)

    def nearest_blocks(self, pixels: Pixels) -> tuple[Index, Index]:
        double = 2 * self.block
        x, y = ((2 * side + 1 + self.block) // double - 1 for side in (pixels.x, pixels.y))
        return x, y
