"""Reads a frame's GPU resources back as the arrays that twins take.

With `passes.twins.frame.run_cpu` it shows after which pass a picture is wrong.
"""

from typing import Any

import numpy as np

from passes.frame_data import TEXTURES, FrameData
from passes.frame_uniforms import FrameInputs, pack_uniforms
from passes.lights_apart import LIGHTS_APART, NO_REFLECTION_QUEUE
from passes.lobe_table import lobe_cells
from passes.queue import QUEUE_HEADER
from passes.rays import REFLECTION, SHADOW
from passes.screen_counts import COUNT_NAMES
from passes.shadow_slots import shadow_slots
from passes.slot_counts import SLOT_COUNTS
from passes.twins.queue_push import RayQueue
from passes.twins.raster_frame import view_records

_TEXEL_WORDS = {"rgba32uint": 4, "rg32uint": 2, "r32float": 1}


def read_resources(data: FrameData, inputs: FrameInputs) -> dict[str, Any]:
    """Every resource of a frame by name, in the form of `passes.twins.frame.make_resources`;
    `inputs` are those that the frame was drawn with. Waits for the GPU many times."""
    pixels, bound, read = data.pixels, data.resources, data.device.read
    found: dict[str, Any] = {
        **data.read_arrays(),
        "frame": pack_uniforms(inputs, data.width, data.height, data.scene.bases),
        "lobe_table": lobe_cells(),
    }
    for name in ("ids", "visibility", "surface", "depth"):
        words = _TEXEL_WORDS[TEXTURES[name]]
        raw = data.device.wgpu.queue.read_texture(
            {"texture": data.textures[name], "mip_level": 0, "origin": (0, 0, 0)},
            {"offset": 0, "bytes_per_row": 4 * words * data.width, "rows_per_image": data.height},
            (data.width, data.height, 1),
        )
        kind = np.float32 if name == "depth" else np.uint32
        shape = (data.height, data.width, words)[: 2 if words == 1 else 3]
        found[name] = np.frombuffer(raw, kind).reshape(shape).copy()
    slots = shadow_slots(data.options)
    for name, kind, width in (
        ("direct", np.uint32, slots.direct_bytes // 4),
        ("reflected", np.uint32, slots.reflected_bytes // 4),
        ("accumulated", np.float32, 4),
    ):
        found[name] = read(bound[name], kind, count=width * pixels).reshape(pixels, width)
    if NO_REFLECTION_QUEUE in bound:
        header = read(bound[NO_REFLECTION_QUEUE], QUEUE_HEADER.dtype, count=1).reshape(())
        found[NO_REFLECTION_QUEUE] = RayQueue(header, np.zeros(0, REFLECTION.record.dtype))
    for name in LIGHTS_APART.values() if data.options.lights_apart else ():
        found[name] = read(bound[name], np.uint32, count=2 * pixels).reshape(pixels, 2)
    if data.options.finds_motion:
        found["motion"] = data.read_motion().reshape(pixels, 2).copy()
    found["picture"] = read(bound["picture"], np.uint32, count=pixels)
    found["primary_failed"] = read(bound["primary_failed"], np.uint32, count=1)
    found |= read_targets(data, inputs, found["frame"])
    for ray in data.rays:
        rays = pixels * ray.slots_per_pixel
        found[ray.results] = read(bound[ray.results], ray.result_dtype, count=rays)
        header = read(bound[ray.queue], QUEUE_HEADER.dtype, count=1).reshape(())
        capacity = data.capacities[ray.name]
        records = read(bound[ray.queue], ray.record.dtype, offset=QUEUE_HEADER.size, count=capacity)
        found[ray.queue] = RayQueue(header, records)
        found[f"{ray.name}_arguments"] = read(bound[f"{ray.name}_arguments"], count=3)
        if data.options.count:
            words = len(data.counters)
            found[f"{ray.name}_counters"] = read(bound[f"{ray.name}_counters"], count=words)
            found[ray.slot_counts] = read(bound[ray.slot_counts], count=len(SLOT_COUNTS) * rays)
    return found


def read_targets(data: FrameData, inputs: FrameInputs, record: Any) -> dict[str, Any]:
    """What `passes.twins.raster_frame.raster_resources` has, as the frame left it."""
    options, targets = data.options, data.targets
    found = view_records(options, inputs, record)
    found |= {target.name: targets.read(target.name) for target in targets.targets}
    if options.has_probe:
        found["probe_light"] = data.device.read(data.resources["probe_light"], np.float32)
        found["probe_light"] = found["probe_light"].reshape(-1, 4).copy()
        found["probe"] = targets.read_probe()
        found["screen_counts"] = data.device.read(
            data.resources["screen_counts"], count=len(COUNT_NAMES)
        )
    if options.reflections == "screen":
        found["pyramid"] = targets.read_pyramid()
    if options.shadows == "map":
        found[SHADOW.results] = data.device.read(data.resources[SHADOW.results])
    return found
