"""READ FIRST: the hybrid frame as one list of passes.

raster G-buffer -> reflection rays -> traverse -> shade -> shadow rays -> traverse -> occlusion
rays, if wanted -> traverse -> composite, as one submission; before it, where the scene moves, its
update (`passes.moving`).
"""

from dataclasses import replace

from engine.frame.render_pass import Pass
from engine.gpu.device import Device
from passes.frame_options import PRIMARY, FrameOptions
from passes.gbuffer import raster_pass
from passes.gpu_scene import GpuScene
from passes.motion import PreviousPicture
from passes.rays import OCCLUSION, REFLECTION, SHADOW
from passes.stage_passes import StagePasses
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
    return [
        *(scene.moving.passes(options.update) if scene.moving else ()),
        _visible(make),
        make.over_tiles(
            "gbuffer/resolve",
            "resolve",
            visibility_out="visibility",
            surface_out="surface",
            depth_out="depth",
        ),
        *(_motion(make, previous) if options.motion else ()),
        make.over_tiles("rays/reflection", "reflection", push_queue=REFLECTION.queue),
        make.arguments("reflection", REFLECTION.queue),
        *traverse_passes(make, REFLECTION),
        make.over_tiles("rays/shadow", "shadow", push_queue=SHADOW.queue),
        make.over_queue(
            "shade/reflection",
            "shade",
            "reflection",
            constants={"COUNT": options.count, "FINE_TABLE": options.hit_table == "fine"},
            push_queue=SHADOW.queue,
            # Where nobody reads it some texture has to be bound all the same.
            hit_records="hit_records" if options.hit_table == "fine" else "surface",
        ),
        make.arguments("shadow", SHADOW.queue),
        *traverse_passes(make, SHADOW),
        *(_occlusion(make) if options.occlusion else ()),
        make.over_tiles(
            "composite",
            "composite",
            constants={"OCCLUDED": options.occlusion},
            # Where nobody reads it some buffer has to be bound all the same.
            occlusion_results=(OCCLUSION if options.occlusion else SHADOW).results,
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
    return [*posed, make.over_tiles("motion", "motion")]


def _occlusion(make: StagePasses) -> list[Pass]:
    return [
        make.over_tiles("rays/occlusion", "occlusion", push_queue=OCCLUSION.queue),
        make.arguments("occlusion", OCCLUSION.queue),
        *traverse_passes(make, OCCLUSION),
    ]
