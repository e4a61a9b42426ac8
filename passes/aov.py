"""Arbitrary output values: what a frame's buffers hold for each pixel, as NumPy arrays."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.gpu.errors import UserError
from engine.scene.upload import decode_normals
from passes.frame_data import FrameData
from passes.frame_options import FrameOptions
from passes.light_history import LIGHTS
from passes.rays import frame_rays
from passes.rays.ray_sum import ray_sums, with_sums
from passes.slot_counts import SLOT_COUNTS, combine_counts, sum_slots

SURFACE_AOVS = (
    "depth",
    "normal",
    "roughness",
    "metalness",
    "base_color",
    "material",
    "object",
    "primitive",
)


def aov_names(options: FrameOptions) -> tuple[str, ...]:
    """Of a frame with these options: of every frame, what is asked for, then the <count>/<ray type>
    of its rays and of their sums, which only counted frames know."""
    rays = with_sums(frame_rays(options))
    counts = (f"{count}/{ray.name}" for ray in rays for count in SLOT_COUNTS)
    histories = (f"history_{light}" for light in LIGHTS if options.history)
    return (*SURFACE_AOVS, *("motion",) * options.finds_motion, *histories, *counts)


def read_aov(data: FrameData, name: str) -> NDArray[Any]:
    """[height, width] or [height, width, 2 or 3]; waits for the GPU. UserError for an unknown name,
    ValueError for a count of a frame that does not count."""
    known = aov_names(data.options)
    if name not in known:
        raise UserError(f"unknown aov '{name}', there are {', '.join(known)}")
    if name == "motion":
        return data.read_motion()
    if name.startswith("history_") and data.light_history is not None:
        length = data.light_history.read_length(name.removeprefix("history_"))
        return length.reshape(data.height, data.width)
    count, _, ray_name = name.partition("/")
    if ray_name:
        sums = {found.name: found.rays for found in ray_sums(data.rays)}
        rays = sums.get(ray_name) or [ray for ray in data.rays if ray.name == ray_name]
        planes = [
            sum_slots(count, data.read_slot_counts(ray, count), ray.slots_per_pixel) for ray in rays
        ]
        return combine_counts(count, planes).reshape(data.height, data.width)
    if name in ("object", "primitive", "depth"):
        seen = data.read_texture("visibility")
        covered = seen[..., 0] != 0xFFFFFFFF
        if name == "depth":
            return np.where(covered, data.read_texture("depth")[..., 0], np.float32(np.inf))
        return seen[..., 0 if name == "object" else 1].astype(np.int64) * covered - ~covered
    surface = data.read_texture("surface")
    if name in ("roughness", "metalness"):
        shift = np.uint32(16 if name == "roughness" else 24)
        return ((surface[..., 3] >> shift) & 0xFF).astype(np.float32) / 255
    if name == "base_color":
        bytes4 = np.ascontiguousarray(surface[..., 2]).view(np.uint8)
        root = bytes4.reshape(data.height, data.width, 4)[..., :3].astype(np.float32) / 255
        return root * root
    covered = data.read_texture("visibility")[..., 0] != 0xFFFFFFFF
    if name == "normal":
        flat = decode_normals(np.ascontiguousarray(surface[..., 0]).reshape(-1))
        return flat.reshape(data.height, data.width, 3) * covered[..., None]
    return (surface[..., 3] & 0xFFFF).astype(np.int32) * covered - ~covered
