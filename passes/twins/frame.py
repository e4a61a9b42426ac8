"""The hybrid frame on the CPU: the twins in the frame's order over NumPy arrays.

Bisects a wrong picture to one stage: run both, compare what each pass wrote. There is no
rasteriser here; primary rays through the oracle take its place, whatever the options say, and draw
shadow maps and probes.
"""

from collections.abc import Mapping
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from bvh.counters import counter_words
from passes.candidates import CANDIDATE, queue_names, round_count
from passes.filter_stages import composite_lights, filter_stages
from passes.frame_options import PRIMARY, FrameOptions
from passes.frame_uniforms import FrameInputs, frame_inputs, pack_uniforms
from passes.gpu_scene import scene_arrays
from passes.hit_records import pack_hit_records
from passes.light_history import start_arrays
from passes.lights_apart import LIGHTS_APART, NO_REFLECTION_QUEUE
from passes.mixed import MIXED, MIXED_ARGUMENTS, mixes
from passes.motion_records import pack_previous
from passes.prepare import PreparedScene
from passes.raster_targets import NO_QUEUE
from passes.rays import OCCLUSION, REFLECTION, SHADOW, RayType, frame_rays, reflection_types
from passes.rough_fallback import probe_texture
from passes.shadow_slots import shadow_slots
from passes.slot_counts import SLOT_COUNTS
from passes.sorting import (
    AXIS_BITS,
    filled_queue,
    hits_of,
    sort_buffers,
    sort_in_place,
    sorted_names,
    sorts_hits,
    sorts_rays,
)
from passes.twins.arguments import arguments
from passes.twins.arguments_mixed import arguments_mixed
from passes.twins.bounce import bounce
from passes.twins.composite import composite
from passes.twins.cpu_pass import CpuPass
from passes.twins.denoise import denoise
from passes.twins.gather_rays import gather_rays
from passes.twins.gbuffer_rays import gbuffer_rays
from passes.twins.history import history
from passes.twins.hit_keys import hit_keys
from passes.twins.light_direct import light_direct
from passes.twins.light_reflection import light_reflection
from passes.twins.motion import motion
from passes.twins.motion_depth import motion_depth
from passes.twins.occlusion import occlusion
from passes.twins.queue_push import empty_queue
from passes.twins.raster_frame import (
    map_reflected_shadows,
    map_shadows,
    probe_passes,
    raster_resources,
    screen_reflection_pass,
    shadow_map_depths,
)
from passes.twins.ray_keys import ray_keys
from passes.twins.reflection import reflection
from passes.twins.resolve import resolve
from passes.twins.shade import shade
from passes.twins.shadow import shadow
from passes.twins.test_candidates import test_candidates
from passes.twins.test_candidates_counted import test_candidates_counted
from passes.twins.traverse_last import traverse_last
from passes.twins.traverse_last_counted import traverse_last_counted
from passes.twins.traverse_mixed import traverse_mixed
from passes.twins.traverse_queue import traverse_queue
from passes.twins.traverse_queue_counted import traverse_queue_counted
from passes.twins.traverse_round import traverse_round
from passes.twins.traverse_round_counted import traverse_round_counted


def cpu_passes(options: FrameOptions, asks: bool = True) -> list[CpuPass]:
    """The frame, in order, each pass named as in `passes.frame_passes`. `asks`: whether a
    triangle's alpha is to be tested (`PreparedScene.asks`)."""

    slots = shadow_slots(options)
    by_rays, by_map = options.reflections == "rays", options.shadows == "map"
    chosen: dict[str, Any] = {"slots": slots, "uniform": options.light_choice == "uniform"}

    def arguments_pass(queue: str, user: str, again: str = "") -> CpuPass:
        bind = {"queue": queue, "arguments": f"{user}_arguments"}
        return CpuPass(f"arguments/{user}{again}", arguments, bind)

    def tracing(ray: RayType) -> dict[str, Any]:
        return {
            "ray": ray.of(options),
            "sort": options.kernel_sorts(ray.family, ray.any_hit),
            "mask": options.mask(ray.family),
            "flags": options.ray_flags,
        }

    def filled(ray: RayType) -> str:
        return filled_queue(options, ray)

    def radix(name: str, what: str) -> CpuPass:
        return CpuPass(f"{name}/radix", sort_in_place, sorted_names(what))

    def ordered(ray: RayType, again: str = "") -> list[CpuPass]:
        counted = arguments_pass(filled(ray), ray.name, again)
        if not sorts_rays(options, ray):
            return [counted]
        name, names = f"sort/{ray.name}{again}", sorted_names(ray.name)
        keys = partial(ray_keys, ray=ray, axis_bits=AXIS_BITS[options.ray_sort])
        bind = {"unsorted": filled(ray), "order": names["order"], "queue": ray.queue}
        return [
            counted,
            CpuPass(f"{name}/keys", keys, {"queue": filled(ray), **names}),
            radix(name, ray.name),
            CpuPass(f"{name}/gather", gather_rays, bind),
        ]

    def mixed_passes(number: int, first: RayType, other: RayType) -> list[CpuPass]:
        name = f"{MIXED[number]}_arguments"
        counted = {"queue": filled(first), "other_queue": filled(other), "arguments": name}
        traced = {
            "queue": first.queue,
            "results": first.results,
            "other_queue": other.queue,
            "other_results": other.results,
            "spans": name,
        }
        trace = partial(traverse_mixed, first=tracing(first), other=tracing(other))
        return [
            CpuPass(f"arguments/{MIXED[number]}", arguments_mixed, counted),
            CpuPass(f"traverse/{MIXED[number]}", trace, traced),
        ]

    def traverse_passes(ray: RayType) -> list[CpuPass]:
        rays = tracing(ray)
        bound = {
            "queue": ray.queue,
            "results": ray.results,
            "counters": f"{ray.name}_counters",
            "slot_counts": ray.slot_counts,
        }
        name, count = f"traverse/{ray.name}", options.count
        rounds = round_count(options, asks)
        if not rounds:
            twin: Any = traverse_queue_counted if count else traverse_queue
            return [CpuPass(f"{name}/0", partial(twin, **rays), bound)]
        found, behind = [], queue_names(ray.name, 0)[1]
        for number in range(rounds):
            here, rejected = queue_names(ray.name, number)
            twin = partial(
                traverse_round_counted if count else traverse_round, **rays, resumed=number > 0
            )
            test = partial(
                test_candidates_counted if count else test_candidates, ray=ray.of(options)
            )
            bind = {**bound, "rejected": behind, "push_queue": here}
            test_bind = {**bound, "candidates": here, "push_queue": rejected}
            found += [
                CpuPass(f"{name}/{number}", twin, bind),
                arguments_pass(here, here),
                CpuPass(f"any-hit/{ray.name}/{number}", test, test_bind),
                arguments_pass(rejected, rejected),
            ]
            behind = rejected
        last = partial(traverse_last_counted if count else traverse_last, **rays)
        bind = {**bound, "rejected": behind}
        return [*found, CpuPass(f"{name}/{rounds}", last, bind)]

    is_fine = options.hit_table == "fine"
    hit_records = "hit_records" if is_fine else "surface"

    def bounces() -> list[CpuPass]:
        found = []
        for before, ray in pairwise(reflection_types(options)):
            bind = {
                "queue": before.queue,
                "results": before.results,
                "push_queue": filled(ray),
                "hit_records": hit_records,
            }
            twin = partial(
                bounce,
                number=ray.bounce,
                count=options.count,
                fine_table=is_fine,
                without_color=options.finds_edges,
            )
            found += [CpuPass(f"rays/{ray.name}", twin, bind), *ordered(ray), *traverse_passes(ray)]
        return found

    def shade_passes() -> list[CpuPass]:
        found = []
        for ray in reflection_types(options):
            is_sorted = sorts_hits(options, ray)
            name, hits = f"shade/{ray.name}", sorted_names(hits_of(ray))
            twin = partial(
                shade,
                count=options.count,
                fine_table=is_fine,
                is_sorted=is_sorted,
                bounce=ray.bounce,
                without_color=options.finds_edges,
                **chosen,
            )
            bind = {"queue": ray.queue, "results": ray.results}
            if is_sorted:
                keys = CpuPass(f"{name}/keys", hit_keys, {**bind, **hits})
                found += [keys, radix(name, hits_of(ray))]
            bind |= {
                "push_queue": NO_QUEUE if by_map else filled(SHADOW),
                "hit_records": hit_records,
                "order": hits["order"] if is_sorted else "texels",
            }
            found.append(CpuPass(name, twin, bind))
        return found

    reflection_rays = [
        CpuPass(
            "rays/reflection",
            partial(reflection, reflection_block=options.reflection_block, slots=slots),
            {"push_queue": filled(REFLECTION)},
        ),
        *ordered(REFLECTION),
    ]
    shadow_rays = CpuPass("rays/shadow", partial(shadow, **chosen), {"push_queue": filled(SHADOW)})
    occlusion_rays = CpuPass("rays/occlusion", occlusion, {"push_queue": filled(OCCLUSION)})

    def own() -> list[CpuPass]:
        found = []
        if by_rays:
            found += [*reflection_rays, *traverse_passes(REFLECTION), *bounces()]
        found += map_shadows(slots) if by_map else [shadow_rays]
        found += shade_passes()
        if by_map:
            found += map_reflected_shadows(options, slots)
        else:
            found += [*ordered(SHADOW), *traverse_passes(SHADOW)]
        if not by_rays:
            found += [screen_reflection_pass(options, slots)]
        if options.occlusion:
            found += [occlusion_rays, *ordered(OCCLUSION), *traverse_passes(OCCLUSION)]
        return found

    def mixed() -> list[CpuPass]:
        sorts = [ray for ray in (SHADOW, OCCLUSION) if sorts_rays(options, ray)]
        again = "/rest" if SHADOW in sorts else ""
        found = [*reflection_rays, shadow_rays, *(ordered(SHADOW) if SHADOW in sorts else ())]
        found += [*mixed_passes(0, REFLECTION, SHADOW), *bounces(), *shade_passes()]
        if not options.occlusion:
            return [*found, *ordered(SHADOW, again), *traverse_passes(SHADOW)]
        found += [occlusion_rays]
        for ray in sorts:
            found += ordered(ray, again if ray is SHADOW else "")
        return [*found, *mixed_passes(1, OCCLUSION, SHADOW)]

    def lights() -> list[CpuPass]:
        queue = REFLECTION.queue if by_rays else NO_REFLECTION_QUEUE
        shown = partial(
            light_reflection,
            reflection_block=options.reflection_block,
            edges=options.finds_edges,
            fallback=options.rough_fallback,
            slots=slots,
        )
        return [
            CpuPass("light/reflection", shown, {"reflection_queue": queue, **rough}),
            CpuPass("light/direct", partial(light_direct, slots=slots)),
        ]

    def filters() -> list[CpuPass]:
        kinds: dict[str, Any] = {"history": history, "denoise": denoise}
        found = []
        for stage in filter_stages(options):
            settings = {name.lower(): value for name, value in stage.constants.items()}
            twin = partial(kinds[stage.shader], **settings)
            found.append(CpuPass(stage.name, twin, stage.bind))
        return found

    rough = {"probe": probe_texture(options)}
    moved: Any = motion_depth if options.history else motion
    primary: dict[str, Any] = {"mask": options.mask(PRIMARY), "flags": options.ray_flags}
    resolved = {name: name.removesuffix("_out") for name in _RESOLVED}
    return [
        CpuPass("gbuffer/rays", partial(gbuffer_rays, **primary), {"ids_out": "ids"}),
        CpuPass("gbuffer/resolve", resolve, resolved),
        *((CpuPass("motion", moved),) if options.finds_motion else ()),
        *shadow_map_depths(options),
        *probe_passes(options),
        *(mixed() if mixes(options, asks) else own()),
        *(lights() if options.lights_apart else ()),
        *(filters() if options.filtered else ()),
        CpuPass(
            "composite",
            partial(
                composite,
                occluded=options.occlusion,
                lights_apart=options.lights_apart,
                filtered=options.filtered,
                slots=slots,
                fallback=options.rough_fallback,
            ),
            {
                **rough,
                "occlusion_results": (OCCLUSION if options.occlusion else SHADOW).results,
                **composite_lights(options),
            },
        ),
    ]


_RESOLVED = ("visibility_out", "surface_out", "depth_out")


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


def run_cpu(
    prepared: PreparedScene,
    options: FrameOptions,
    inputs: FrameInputs | None = None,
    *,
    until: str | None = None,
    arrays: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """One frame; every resource by name after the pass whose name is `until` or begins with
    `until/` (first of those; None: after the last). ValueError for a name that no pass has.
    `arrays` are the scene's where it has moved (`passes.gpu_scene.GpuScene.read_arrays`): there is
    no pose here."""
    inputs = inputs or frame_inputs(prepared, options)
    resources = make_resources(prepared, options, inputs, arrays)
    passes = cpu_passes(options, prepared.asks)
    for item in passes:
        item.run(resources)
        if until is not None and f"{item.name}/".startswith(f"{until}/"):
            return resources
    if until is not None:
        names = ", ".join(item.name for item in passes)
        raise ValueError(f"no pass is named {until}, there are {names}")
    return resources
