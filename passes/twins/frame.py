"""The hybrid frame on the CPU: the twins in the frame's order over NumPy arrays.

Bisects a wrong picture to one stage: run both, compare what each pass wrote. There is no
rasteriser here; primary rays through the oracle take its place, whatever the options say, and draw
shadow maps and probes.
"""

from collections.abc import Mapping
from functools import partial
from itertools import pairwise
from typing import Any

from passes.filter_stages import composite_lights, filter_stages
from passes.frame_options import PRIMARY, FrameOptions
from passes.frame_uniforms import FrameInputs, frame_inputs
from passes.lights_apart import NO_REFLECTION_QUEUE
from passes.mixed import mixes
from passes.prepare import PreparedScene
from passes.rays import OCCLUSION, REFLECTION, SHADOW, RayType, reflection_types
from passes.rough_fallback import probe_texture
from passes.shadow_slots import shadow_slots
from passes.sorting import filled_queue, hits_of, sorted_names, sorts_hits, sorts_rays
from passes.twins.bounce import bounce
from passes.twins.composite import composite
from passes.twins.cpu_pass import CpuPass
from passes.twins.denoise import denoise
from passes.twins.frame_resources import make_resources
from passes.twins.gbuffer_rays import gbuffer_rays
from passes.twins.history import history
from passes.twins.hit_keys import hit_keys
from passes.twins.light_direct import light_direct
from passes.twins.light_reflection import light_reflection
from passes.twins.motion import motion
from passes.twins.motion_depth import motion_depth
from passes.twins.occlusion import occlusion
from passes.twins.queue_frame import QueuePasses, radix_pass
from passes.twins.raster_frame import (
    map_reflected_shadows,
    map_shadows,
    probe_passes,
    screen_passes,
    shadow_map_depths,
)
from passes.twins.reflection import reflection
from passes.twins.resolve import resolve
from passes.twins.shade import shade
from passes.twins.shadow import shadow


def cpu_passes(options: FrameOptions, asks: bool = True) -> list[CpuPass]:
    """The frame, in order, each pass named as in `passes.frame_passes`. `asks`: whether a
    triangle's alpha is to be tested (`PreparedScene.asks`)."""

    slots = shadow_slots(options)
    by_rays, by_map = options.reflections == "rays", options.shadows == "map"
    chosen: dict[str, Any] = {"slots": slots, "uniform": options.light_choice == "uniform"}
    queues = QueuePasses(options, asks)

    def filled(ray: RayType) -> str:
        return filled_queue(options, ray)

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
            found += [
                CpuPass(f"rays/{ray.name}", twin, bind),
                *queues.ordered(ray),
                *queues.traversed(ray),
            ]
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
                keep_light=by_map,
                **chosen,
            )
            bind = {"queue": ray.queue, "results": ray.results}
            if is_sorted:
                keys = CpuPass(f"{name}/keys", hit_keys, {**bind, **hits})
                found += [keys, radix_pass(name, hits_of(ray))]
            bind |= {
                "push_queue": SHADOW.results if by_map else filled(SHADOW),
                "hit_records": hit_records,
                "order": hits["order"] if is_sorted else "texels",
            }
            found.append(CpuPass(name, twin, bind))
        return found

    reflection_rays = [
        CpuPass(
            "rays/reflection",
            partial(
                reflection,
                reflection_block=options.reflection_block,
                narrow_own=options.sends_narrow,
                slots=slots,
            ),
            {"push_queue": filled(REFLECTION)},
        ),
        *queues.ordered(REFLECTION),
    ]
    shadow_rays = CpuPass("rays/shadow", partial(shadow, **chosen), {"push_queue": filled(SHADOW)})
    occlusion_rays = CpuPass("rays/occlusion", occlusion, {"push_queue": filled(OCCLUSION)})

    def own() -> list[CpuPass]:
        found = []
        if by_rays:
            found += [*reflection_rays, *queues.traversed(REFLECTION), *bounces()]
        found += map_shadows(options, slots) if by_map else [shadow_rays]
        found += shade_passes()
        if by_map:
            found += map_reflected_shadows(options, slots)
        else:
            found += [*queues.ordered(SHADOW), *queues.traversed(SHADOW)]
        if not by_rays:
            found += screen_passes(options, slots)
        if options.occlusion:
            found += [occlusion_rays, *queues.ordered(OCCLUSION), *queues.traversed(OCCLUSION)]
        return found

    def mixed() -> list[CpuPass]:
        sorts = [ray for ray in (SHADOW, OCCLUSION) if sorts_rays(options, ray)]
        again = "/rest" if SHADOW in sorts else ""
        found = [
            *reflection_rays,
            shadow_rays,
            *(queues.ordered(SHADOW) if SHADOW in sorts else ()),
        ]
        found += [*queues.mixed(0, REFLECTION, SHADOW), *bounces(), *shade_passes()]
        if not options.occlusion:
            return [*found, *queues.ordered(SHADOW, again), *queues.traversed(SHADOW)]
        found += [occlusion_rays]
        for ray in sorts:
            found += queues.ordered(ray, again if ray is SHADOW else "")
        return [*found, *queues.mixed(1, OCCLUSION, SHADOW)]

    def lights() -> list[CpuPass]:
        queue = REFLECTION.queue if by_rays else NO_REFLECTION_QUEUE
        shown = partial(
            light_reflection,
            reflection_block=options.reflection_block,
            narrow_own=options.sends_narrow,
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
    options = options.sized(len(prepared.scene.lights))
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
