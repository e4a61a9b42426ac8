"""READ FIRST: the hybrid frame as one list of passes.

raster G-buffer -> reflection rays -> traverse -> shade -> shadow rays -> traverse -> occlusion
rays, if wanted -> traverse -> light, if kept apart -> its filters -> composite, as one submission;
before it, where the scene moves, its update (`passes.moving`). Instead of rays, shadows may come
from a map (`passes.shadow_map_passes`) and reflections from the screen (`passes.screen_passes`).
"""

from dataclasses import replace
from itertools import pairwise
from typing import Any

from engine.frame.render_pass import Pass
from engine.gpu.device import Device
from passes.filter_stages import composite_lights, filter_stages
from passes.frame_options import PRIMARY, FrameOptions
from passes.gbuffer import raster_pass
from passes.gpu_scene import GpuScene
from passes.lights_apart import NO_REFLECTION_QUEUE
from passes.mixed import mixes
from passes.mixed_passes import mixed_passes
from passes.motion import PreviousPicture
from passes.probe_passes import probe_passes
from passes.rays import OCCLUSION, REFLECTION, SHADOW, RayType, reflection_types
from passes.rough_fallback import probe_texture, rough_constants
from passes.screen_passes import screen_passes
from passes.shadow_map_passes import (
    KEEP_LIGHT,
    map_reflected_shadows,
    map_shadows,
    shadow_map_depths,
)
from passes.sort_passes import sort_hits, sort_rays
from passes.sorting import filled_queue, hits_of, sorts_hits, sorts_rays
from passes.stage_passes import StagePasses, path_constants, path_shader
from passes.traverse_passes import traversal, traverse_passes


def hybrid_passes(
    device: Device,
    scene: GpuScene,
    options: FrameOptions,
    previous: PreviousPicture | None = None,
) -> list[Pass]:
    """The frame, in order. `previous` is its picture before, where `options` ask for motion and the
    scene moves."""
    make = StagePasses(device, scene, options)
    lights = composite_lights(options)
    return [
        *(scene.moving.passes(options.update, traced=options.traces) if scene.moving else ()),
        _visible(make),
        make.over_tiles(
            "gbuffer/resolve",
            "resolve",
            visibility_out="visibility",
            surface_out="surface",
            depth_out="depth",
        ),
        *(_motion(make, previous) if options.finds_motion else ()),
        *shadow_map_depths(make),
        *probe_passes(make),
        *(_mixed_rays(make) if mixes(options, scene.rays_ask) else _rays(make)),
        *(_lights(make) if options.lights_apart else ()),
        *(_filters(make) if options.filtered else ()),
        make.over_tiles(
            "composite",
            "composite",
            constants={
                "OCCLUDED": options.occlusion,
                "LIGHTS_APART": options.lights_apart,
                "FILTERED": options.filtered,
                **rough_constants(options),
            },
            probe=probe_texture(options),
            # Where nobody reads it some buffer has to be bound all the same.
            occlusion_results=(OCCLUSION if options.occlusion else SHADOW).results,
            direct=lights["direct"],
            reflected=lights["reflected"],
        ),
    ]


def _visible(make: StagePasses) -> Pass:
    """The triangle that each pixel sees."""
    if make.options.gbuffer == "raster":
        return raster_pass(make.scene, make.options.mask(PRIMARY))
    # Primary rays are in no queue, so that nobody counts them.
    slots, constants = traversal(make.scene, replace(make.options, count=False), None)
    return make.over_tiles(
        "gbuffer/rays", "gbuffer_rays", slots=slots, constants=constants, ids_out="ids"
    )


def _motion(make: StagePasses, previous: PreviousPicture | None) -> list[Pass]:
    posed = previous.passes() if previous else []
    shader = "motion_depth" if make.options.history else "motion"
    return [*posed, make.over_tiles("motion", shader)]


def _rays(make: StagePasses) -> list[Pass]:
    """Every ray type traced by itself, and what stands for those that are not sent."""
    options = make.options
    by_rays, by_map = options.reflections == "rays", options.shadows == "map"
    passes: list[Pass] = []
    if by_rays:
        passes += [*_reflection_rays(make), *traverse_passes(make, REFLECTION), *_bounces(make)]
    passes += map_shadows(make) if by_map else [_shadow_rays(make)]
    passes += _shade(make)
    if by_map:
        passes += map_reflected_shadows(make)
    else:
        passes += [*_ordered(make, SHADOW), *traverse_passes(make, SHADOW)]
    if not by_rays:
        passes += screen_passes(make)
    if options.occlusion:
        passes += [_occlusion_rays(make), *_ordered(make, OCCLUSION)]
        passes += traverse_passes(make, OCCLUSION)
    return passes


def _mixed_rays(make: StagePasses) -> list[Pass]:
    """Types that do not wait for each other traced together (`passes.mixed`)."""
    sorts = [ray for ray in (SHADOW, OCCLUSION) if sorts_rays(make.options, ray)]
    passes = [*_reflection_rays(make), _shadow_rays(make)]
    passes += _ordered(make, SHADOW) if SHADOW in sorts else []
    passes += [*mixed_passes(make, 0, REFLECTION, SHADOW), *_bounces(make), *_shade(make)]
    again = "/rest" if SHADOW in sorts else ""
    if not make.options.occlusion:
        return [*passes, *_ordered(make, SHADOW, again), *traverse_passes(make, SHADOW)]
    passes += [_occlusion_rays(make)]
    for ray in sorts:
        passes += _ordered(make, ray, again if ray is SHADOW else "")
    return [*passes, *mixed_passes(make, 1, OCCLUSION, SHADOW)]


def _ordered(make: StagePasses, ray: RayType, again: str = "") -> list[Pass]:
    """Counts and, if wanted, sorts what is left of a type's queue. `again`: see `sort_rays`."""
    counted = make.arguments(ray.name, filled_queue(make.options, ray), again=again)
    return [counted, *sort_rays(make, ray, again)]


def _reflection_rays(make: StagePasses) -> list[Pass]:
    queue = filled_queue(make.options, REFLECTION)
    block = make.options.reflection_block
    rays = make.over_tiles(
        "rays/reflection",
        "reflection",
        constants={"REFLECTION_BLOCK": block, "NARROW_OWN": make.options.sends_narrow},
        block=block,
        push_queue=queue,
    )
    return [rays, *_ordered(make, REFLECTION)]


def _bounces(make: StagePasses) -> list[Pass]:
    """The further rays of paths of reflections, bounce by bounce: each bounce's start at the hits
    of the one before. Light at all these hits waits for one queue of shadow rays."""
    passes: list[Pass] = []
    is_fine = make.options.hit_table == "fine"
    for before, ray in pairwise(reflection_types(make.options)):
        rays = make.over_queue(
            f"rays/{ray.name}",
            "bounce",
            before.name,
            slots={"path": path_shader(before)},
            constants={
                "BOUNCE": ray.bounce,
                "COUNT": make.options.count,
                "FINE_TABLE": is_fine,
                **path_constants(make.options, before),
            },
            queue=before.queue,
            results=before.results,
            push_queue=filled_queue(make.options, ray),
            # Where nobody reads them something has to be bound all the same.
            hit_records="hit_records" if is_fine else "surface",
        )
        passes += [rays, *_ordered(make, ray), *traverse_passes(make, ray)]
    return passes


def _shadow_rays(make: StagePasses) -> Pass:
    queue = filled_queue(make.options, SHADOW)
    return make.over_tiles("rays/shadow", "shadow", push_queue=queue)


def _shade(make: StagePasses) -> list[Pass]:
    """What reflection rays found, bounce by bounce; more shadow rays start there."""
    is_fine = make.options.hit_table == "fine"
    by_map = make.options.shadows == "map"
    passes: list[Pass] = []
    for ray in reflection_types(make.options):
        is_sorted = sorts_hits(make.options, ray)
        shade = make.over_queue(
            f"shade/{ray.name}",
            "shade",
            ray.name,
            slots={"path": path_shader(ray)} | ({"push": KEEP_LIGHT} if by_map else {}),
            constants={
                "BOUNCE": ray.bounce,
                "COUNT": make.options.count,
                "SORTED": is_sorted,
                "FINE_TABLE": is_fine,
                **path_constants(make.options, ray),
            },
            queue=ray.queue,
            results=ray.results,
            push_queue=SHADOW.results if by_map else filled_queue(make.options, SHADOW),
            # Where nobody reads them something has to be bound all the same.
            hit_records="hit_records" if is_fine else "surface",
            order=f"{hits_of(ray)}_order" if is_sorted else "texels",
        )
        passes += [*sort_hits(make, ray), shade]
    return passes


def _lights(make: StagePasses) -> list[Pass]:
    options = make.options
    constants = {
        "REFLECTION_BLOCK": options.reflection_block,
        "NARROW_OWN": options.sends_narrow,
        "EDGES": options.finds_edges,
        **rough_constants(options),
    }
    sends = REFLECTION.is_sent(options)
    return [
        make.over_tiles(
            "light/reflection",
            "light_reflection",
            constants=constants,
            probe=probe_texture(options),
            reflection_queue=REFLECTION.queue if sends else NO_REFLECTION_QUEUE,
        ),
        make.over_tiles("light/direct", "light_direct"),
    ]


def _filters(make: StagePasses) -> list[Pass]:
    """What of light is remembered, and the denoiser."""
    return [
        make.over_tiles(s.name, s.shader, constants=s.constants, **dict[str, Any](s.bind))
        for s in filter_stages(make.options)
    ]


def _occlusion_rays(make: StagePasses) -> Pass:
    queue = filled_queue(make.options, OCCLUSION)
    return make.over_tiles("rays/occlusion", "occlusion", push_queue=queue)
