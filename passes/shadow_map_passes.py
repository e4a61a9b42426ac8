"""Shadows of the lights by maps of depths, in place of shadow rays.

    shadow_map/still/0..n   where a scene moves: what of it never does, for each layer of the map
    shadow_map/depth/0..n   five faces of half a cube about each light's centre, by the rasteriser
    shadow_map/direct       direct light of visible surfaces, not yet shadowed, by the point of the
                            light that a shadow ray would test, which is kept in its result's place
    shadow_map/visible      what they see of that light, where shadow rays would leave their results
    shadow_map/reflection   what hits of reflection rays see of it, where there are such rays

A perspective view sees less than half a turn, a light shines over a whole half: hence the faces,
the first along the light's normal; light i's begin at layer 5 i. They are drawn as the G-buffer is,
with alpha tests, spheres and whatever has moved, of the objects that shadow rays see, and only
where what they show has changed (`passes.raster_redraw`). Every light has a map; which light a
surface asks for is chosen as its shadow rays would choose.
"""

from typing import Any

from engine.frame.render_pass import Pass, Resources
from passes.frame_options import FrameOptions
from passes.gbuffer import depth_target, draw_pass
from passes.gpu_scene import GpuScene
from passes.layer_copy import LayerCopy
from passes.raster_targets import STILL, Target, frame_targets
from passes.rays import SHADOW, reflection_types
from passes.stage_passes import SHADERS, StagePasses

KEEP_LIGHT = f"{SHADERS}keep_light.wgsl"


def shadow_map_depths(make: StagePasses) -> list[Pass]:
    """The map; none where the frame has none."""
    targets = frame_targets(make.options, make.scene.moving is not None)
    mask = make.options.mask(SHADOW.name)
    found = [target for target in targets if target.base == "shadow_map"]
    return [
        depth_pass(make.scene, target, index, mask)
        for target in sorted(found, key=lambda target: not target.is_still)
        for index in range(target.layers)
    ]


def depth_pass(scene: GpuScene, target: Target, index: int, mask: int) -> Pass:
    layer = target.layer(index)
    name = f"shadow_map/{'still' if target.is_still else 'depth'}/{index}"
    below = None
    if scene.moving and not target.is_still:
        below = LayerCopy(scene.device, name, f"{target.base}{STILL}/{index}")

    def attachments(resources: Resources) -> dict[str, Any]:
        return {
            "color_attachments": [],
            "depth_stencil_attachment": depth_target(resources[layer], "store"),
        }

    return draw_pass(
        name,
        scene,
        mask,
        attachments,
        # Layers are written one by one, the texture is read as a whole.
        writes=(target.name, layer),
        also_reads=(target.name,) if index else (),
        frame=target.view(index),
        seen=target.seen(index),
        ids=False,
        below=below,
        kept=target.kept(index),
    )


def map_shadows(make: StagePasses) -> list[Pass]:
    """Direct light and what is seen of the lights, by the map."""
    keep = {"push": KEEP_LIGHT}
    return [
        make.over_tiles("shadow_map/direct", "shadow", slots=keep, push_queue=SHADOW.results),
        make.over_tiles(
            "shadow_map/visible", "shadow_map_visible", constants=map_constants(make.options)
        ),
    ]


def map_reflected_shadows(make: StagePasses) -> list[Pass]:
    """What hits of reflection rays see of the lights, after they are shaded."""
    return [
        make.over_queue(
            f"shadow_map/{ray.name}",
            "shadow_map_reflection",
            ray.name,
            constants={
                **map_constants(make.options),
                "RECORD_WORDS": ray.record.size // 4,
                "BOUNCE": ray.bounce,
            },
            queue=ray.queue,
            results=ray.results,
        )
        for ray in reflection_types(make.options)
    ]


def map_constants(options: FrameOptions) -> dict[str, float]:
    """Of every stage that looks a shadow map up."""
    return {"SHADOW_MAP_SIZE": options.shadow_map_size}
