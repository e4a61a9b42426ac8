"""Shadow maps, probes and reflections from the screen in the frame on the CPU, where primary rays
through the oracle draw what the rasteriser draws."""

from functools import partial
from typing import Any

import numpy as np

from bvh.oracle import trace
from bvh.rays import make_rays
from passes.depth_pyramid import texture_size
from passes.frame_options import FULL_MASK, FrameOptions
from passes.frame_uniforms import FrameInputs
from passes.layer_copy import IDS_FORMAT
from passes.raster_targets import frame_targets
from passes.rays import REFLECTION, SHADOW, reflection_types
from passes.screen_counts import COUNT_NAMES
from passes.shadow_slots import ShadowSlots
from passes.twins.camera import camera_direction
from passes.twins.cpu_pass import CpuPass
from passes.twins.depth_pyramid import depth_pyramid
from passes.twins.gbuffer import tile_pixels
from passes.twins.gbuffer_rays import gbuffer_rays
from passes.twins.probe_blur import probe_blur
from passes.twins.probe_light import probe_light
from passes.twins.rays.reflection import INFINITE_T
from passes.twins.screen_reflection import screen_reflection
from passes.twins.shadow import shadow
from passes.twins.shadow_map_reflection import shadow_map_reflection
from passes.twins.shadow_map_visible import shadow_map_visible
from passes.twins.traverse_queue import FAILED_STACK, alpha_test
from passes.twins.wgsl_functions import F32, U32


def trace_depth(
    frame: Any,
    bvh: U32,
    alpha: U32,
    texels: U32,
    shadow_map: F32,
    primary_failed: U32,
    *,
    layer: int,
    mask: int = FULL_MASK,
) -> None:
    """Writes a layer of `shadow_map` [layers, size, size], whose view `frame` is: near plane /
    depth."""
    pixels = tile_pixels(frame)
    direction = camera_direction(frame, pixels.x, pixels.y)
    rays = make_rays(frame["camera_origin"][:3], direction, frame["view_near"], INFINITE_T)
    found = trace(bvh.reshape(-1), rays, mask=mask, accept=alpha_test(alpha, texels))
    if found.overflows.any():
        primary_failed[0] |= FAILED_STACK
    # Directions are 1 long along the view's axis, so that t is the depth; a miss is at infinity.
    depth = np.where(found.object == 0xFFFFFFFF, np.inf, found.t)
    shadow_map[layer, pixels.y, pixels.x] = frame["view_near"] / depth


def trace_ids(
    frame: Any,
    bvh: U32,
    alpha: U32,
    texels: U32,
    probe_ids: U32,
    primary_failed: U32,
    *,
    layer: int,
    mask: int = FULL_MASK,
) -> None:
    """Writes a layer of `probe_ids` [layers, size, size, 2], whose view `frame` is."""
    gbuffer_rays(frame, bvh, alpha, texels, probe_ids[layer], primary_failed, mask=mask)


def shadow_map_depths(options: FrameOptions) -> list[CpuPass]:
    mask = options.mask(SHADOW.name)
    return [
        CpuPass(
            f"shadow_map/depth/{index}",
            partial(trace_depth, layer=index, mask=mask),
            {"frame": target.view(index)},
        )
        for target in frame_targets(options)
        if target.name == "shadow_map"
        for index in range(target.layers)
    ]


def probe_passes(options: FrameOptions) -> list[CpuPass]:
    if not options.has_probe:
        return []
    target = next(t for t in frame_targets(options) if t.name == "probe_ids")
    mask = options.mask(REFLECTION.name)
    return [
        *(
            CpuPass(
                f"probe/ids/{index}",
                partial(trace_ids, layer=index, mask=mask),
                {"frame": target.view(index)},
            )
            for index in range(target.layers)
        ),
        CpuPass("probe/light", probe_light, {"frame": target.view(0)}),
        CpuPass("probe/blur", probe_blur, {"probe_out": "probe"}),
    ]


def map_shadows(options: FrameOptions, slots: ShadowSlots) -> list[CpuPass]:
    uniform = options.light_choice == "uniform"
    direct = partial(shadow, slots=slots, uniform=uniform, keep_light=True)
    return [
        CpuPass("shadow_map/direct", direct, {"push_queue": SHADOW.results}),
        CpuPass("shadow_map/visible", partial(shadow_map_visible, slots=slots)),
    ]


def map_reflected_shadows(options: FrameOptions, slots: ShadowSlots) -> list[CpuPass]:
    return [
        CpuPass(
            f"shadow_map/{ray.name}",
            partial(shadow_map_reflection, slots=slots, bounce=ray.bounce),
            {"queue": ray.queue, "results": ray.results},
        )
        for ray in reflection_types(options)
    ]


def screen_passes(options: FrameOptions, slots: ShadowSlots) -> list[CpuPass]:
    twin = partial(
        screen_reflection,
        steps=options.screen_steps,
        slots=slots,
        reflection_block=options.reflection_block,
        narrow_own=options.sends_narrow,
        count=options.count,
        without_color=options.finds_edges,
    )
    return [
        CpuPass("screen/depth_pyramid", depth_pyramid, {"pyramid_out": "pyramid"}),
        CpuPass("screen/reflection", twin),
    ]


def view_records(options: FrameOptions, inputs: FrameInputs, record: Any) -> dict[str, Any]:
    """The FRAME_UNIFORMS of each view; `record` is the picture's."""
    found = {}
    for target in frame_targets(options):
        for index, view in enumerate(target.views(inputs) if target.drawn else ()):
            found[target.view(index)] = view.record(record, target.size)
    return found


def raster_resources(options: FrameOptions, inputs: FrameInputs, record: Any) -> dict[str, Any]:
    """What `passes.raster_targets.RasterTargets` holds, and what stands for a queue of shadow
    rays; `record` is the picture's FRAME_UNIFORMS."""
    found = view_records(options, inputs, record)
    for target in frame_targets(options):
        shape = (target.layers, target.size, target.size)
        if target.texel_format == IDS_FORMAT:
            found[target.name] = np.zeros((*shape, 2), np.uint32)
        else:
            found[target.name] = np.zeros(shape, np.float32)
    if options.has_probe:
        size = options.probe_size
        found["probe_light"] = np.zeros((size * size, 4), np.float32)
        found["probe"] = np.zeros((size, size + size // 2, 4), np.float32)
        found["screen_counts"] = np.zeros(len(COUNT_NAMES), np.uint32)
    if options.reflections == "screen":
        width, height = texture_size(options.width, options.height)
        found["pyramid"] = np.zeros((height, width, 2), np.uint32)
    if options.shadows == "map":
        ray = SHADOW.of(options)
        slots = options.width * options.height * ray.slots_per_pixel
        found[ray.results] = np.zeros(slots, ray.result_dtype)
    return found
