"""Shadows of the area light by a map of depths, in place of shadow rays.

    shadow_map/depth/0..4   five faces of half a cube about the light's centre, by the rasteriser
    shadow_map/direct       direct light of visible surfaces, not yet shadowed, by the point of the
                            light that a shadow ray would test
    shadow_map/visible      what they see of the light, where shadow rays would leave their results
    shadow_map/reflection   what hits of reflection rays see of it, where there are such rays

A perspective view sees less than half a turn, the light shines over a whole half: hence the faces,
the first along the light's normal. They are drawn as the G-buffer is, with alpha tests, spheres and
whatever has moved, of the objects that shadow rays see.
"""

from typing import Any

from engine.frame.render_pass import Pass, Resources
from passes.gbuffer import depth_target, draw_pass
from passes.gpu_scene import GpuScene
from passes.raster_targets import NO_QUEUE, Target, frame_targets
from passes.rays import SHADOW, reflection_types
from passes.stage_passes import SHADERS, StagePasses

NO_PUSH = f"{SHADERS}no_push.wgsl"


def shadow_map_depths(make: StagePasses) -> list[Pass]:
    """The map; none where the frame has none."""
    targets = frame_targets(make.options)
    mask = make.options.mask(SHADOW.name)
    return [
        depth_pass(make.scene, target, index, mask)
        for target in targets
        if target.name == "shadow_map"
        for index in range(target.layers)
    ]


def depth_pass(scene: GpuScene, target: Target, index: int, mask: int) -> Pass:
    layer = target.layer(index)

    def attachments(resources: Resources) -> dict[str, Any]:
        return {
            "color_attachments": [],
            "depth_stencil_attachment": depth_target(resources[layer], "store"),
        }

    return draw_pass(
        f"shadow_map/depth/{index}",
        scene,
        mask,
        attachments,
        # Layers are written one by one, the texture is read as a whole.
        writes=(target.name,),
        also_reads=(target.name,) if index else (),
        frame=target.view(index),
        seen=target.seen(index),
        ids=False,
    )


def map_shadows(make: StagePasses) -> list[Pass]:
    """Direct light and what is seen of the light, by the map."""
    return [
        make.over_tiles(
            "shadow_map/direct", "shadow", slots={"push": NO_PUSH}, push_queue=NO_QUEUE
        ),
        make.over_tiles("shadow_map/visible", "shadow_map_visible", constants=map_constants(make)),
    ]


def map_reflected_shadows(make: StagePasses) -> list[Pass]:
    """What hits of reflection rays see of the light, after they are shaded."""
    return [
        make.over_queue(
            f"shadow_map/{ray.name}",
            "shadow_map_reflection",
            ray.name,
            constants={
                **map_constants(make),
                "RECORD_WORDS": ray.record.size // 4,
                "BOUNCE": ray.bounce,
            },
            queue=ray.queue,
            results=ray.results,
        )
        for ray in reflection_types(make.options)
    ]


def map_constants(make: StagePasses) -> dict[str, float]:
    """Of every stage that looks a shadow map up."""
    return {"SHADOW_MAP_SIZE": make.options.shadow_map_size}
