"""Buffers and textures of the frame on the CPU, as the twins bind them."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from bvh.counters import counter_words
from passes.candidates import CANDIDATE, queue_names, round_count
from passes.frame_options import FrameOptions
from passes.frame_uniforms import FrameInputs, pack_uniforms
from passes.gpu_scene import scene_arrays
from passes.hit_records import pack_hit_records
from passes.light_history import start_arrays
from passes.lights_apart import LIGHTS_APART, NO_REFLECTION_QUEUE
from passes.lobe_table import lobe_cells
from passes.mixed import MIXED, MIXED_ARGUMENTS
from passes.motion_records import pack_previous
from passes.prepare import PreparedScene
from passes.rays import REFLECTION, frame_rays
from passes.shadow_slots import shadow_slots
from passes.slot_counts import SLOT_COUNTS
from passes.sorting import filled_queue, sort_buffers
from passes.twins.queue_push import empty_queue
from passes.twins.raster_frame import raster_resources


def make_resources(
    prepared: PreparedScene,
    options: FrameOptions,
    inputs: FrameInputs,
    arrays: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Every buffer and texture of the frame by name, as `passes.frame_data.FrameData` allocates
    and clears them; `arrays` are the scene's where they are not those prepared."""
    width, height = options.width, options.height
    pixels = width * height
    slots = shadow_slots(options)
    prepared_arrays, bases = scene_arrays(prepared)
    resources: dict[str, Any] = {
        "previous_view": pack_previous(
            inputs.previous_camera or inputs.camera, width / height, still=True
        ),
        "previous_objects": prepared_arrays["tables"],
        "previous_vertices": prepared_arrays["geometry"],
        "motion": np.zeros((pixels, 2), np.float32),
        **(start_arrays(options) if options.filtered else {}),
        **(prepared_arrays if arrays is None else arrays),
        "frame": pack_uniforms(inputs, width, height, bases),
        "ids": np.zeros((height, width, 2), np.uint32),
        "visibility": np.zeros((height, width, 4), np.uint32),
        "surface": np.zeros((height, width, 4), np.uint32),
        "depth": np.zeros((height, width), np.float32),
        "direct": np.zeros((pixels, slots.direct_bytes // 4), np.uint32),
        "reflected": np.zeros((pixels, slots.reflected_bytes // 4), np.uint32),
        "accumulated": np.zeros((pixels, 4), np.float32),
        "picture": np.zeros(pixels, np.uint32),
        "primary_failed": np.zeros(1, np.uint32),
        "lobe_table": lobe_cells(),
    }
    for name in LIGHTS_APART.values() if options.lights_apart else ():
        resources[name] = np.zeros((pixels, 2), np.uint32)
    if options.lights_apart:
        resources[NO_REFLECTION_QUEUE] = empty_queue(REFLECTION.record, 1)
    resources |= raster_resources(options, inputs, resources["frame"])
    if options.hit_table == "fine":
        resources["hit_records"] = pack_hit_records(prepared)
    for name in MIXED:
        resources[f"{name}_arguments"] = np.zeros(MIXED_ARGUMENTS.size // 4, np.uint32)
    counters = counter_words(prepared.objects()[1])
    for ray in frame_rays(options):
        rays = pixels * ray.slots_per_pixel
        resources[ray.results] = np.zeros(rays, ray.result_dtype)
        capacity = max(1, int(rays * options.queue_fraction))
        resources[ray.queue] = empty_queue(ray.record, capacity)
        for name, size in sort_buffers(options, ray, capacity).items():
            resources[name] = np.zeros(size // 4, np.uint32)
        resources[filled_queue(options, ray)] = empty_queue(ray.record, capacity)
        resources[f"{ray.name}_arguments"] = np.zeros(3, np.uint32)
        for number in range(round_count(options, prepared.asks)):
            for name in queue_names(ray.name, number):
                resources[name] = empty_queue(CANDIDATE, capacity)
                resources[f"{name}_arguments"] = np.zeros(3, np.uint32)
        resources[f"{ray.name}_counters"] = counters.copy()
        resources[ray.slot_counts] = np.zeros(len(SLOT_COUNTS) * rays, np.uint32)
    return resources
