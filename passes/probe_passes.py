"""A reflection probe: what is seen from one point in all directions.

    probe/still/0..5 where a scene moves: what of it never does, for each face
    probe/ids/0..5   object and triangle in each direction: six faces of a cube, by the rasteriser
    probe/light      lit: emission, ambient light, the area lights through their shadow maps
    probe/blur       levels of blur, for rough surfaces

The point is the camera's, so that nothing near it is missed, or one that a moving camera has left
by less than `probe_distance` (`passes.probe_place`), or the middle of the scene's box (option
`probe_position`); `FrameInputs.probe` names any other. Whoever looks a direction up corrects it by
where it leaves the scene's box at rest, as seen from the probe (`passes/shaders/probe.wgsl`). What
reflection rays see is drawn, and only where that has changed (`passes.raster_redraw`).
"""

from typing import Any

from engine.frame.render_pass import Pass, Resources
from passes.frame_options import FrameOptions
from passes.gbuffer import depth_target, draw_pass, id_target
from passes.gpu_scene import GpuScene
from passes.layer_copy import LayerCopy
from passes.probe_levels import blur_lanes
from passes.raster_targets import STILL, Target, frame_targets
from passes.rays import REFLECTION
from passes.shadow_map_passes import map_constants
from passes.stage_passes import StagePasses


def probe_passes(make: StagePasses) -> list[Pass]:
    """Those of the frame's probe; none where it has none."""
    options = make.options
    if not options.has_probe:
        return []
    targets = frame_targets(options, make.scene.moving is not None)
    found = [target for target in targets if target.base == "probe_ids"]
    mask, size = options.mask(REFLECTION.name), options.probe_size
    constants = probe_constants(options)
    return [
        *(
            face_pass(make.scene, target, index, mask)
            for target in sorted(found, key=lambda target: not target.is_still)
            for index in range(target.layers)
        ),
        make.over_items(
            "probe/light",
            "probe_light",
            size * size,
            constants=constants | map_constants(options),
            kept="probe/light/kept",
            frame=found[0].view(0),
        ),
        make.over_items(
            "probe/blur",
            "probe_blur",
            blur_lanes(size),
            constants=constants,
            kept="probe/blur/kept",
            probe_out="probe",
        ),
    ]


def probe_constants(options: FrameOptions) -> dict[str, float]:
    """Of every stage that looks a probe up."""
    return {"PROBE_SIZE": options.probe_size}


def face_pass(scene: GpuScene, target: Target, index: int, mask: int) -> Pass:
    """A face of its target. The still ones keep their depths, the others share one buffer."""
    layer, is_still = target.layer(index), target.is_still
    name = f"probe/{'still' if is_still else 'ids'}/{index}"
    depths = f"probe_depth{STILL}" if is_still else "probe_depth"
    depth = f"{depths}/{index if is_still else 0}"
    below = None
    if scene.moving and not is_still:
        below = LayerCopy(
            scene.device, name, f"probe_depth{STILL}/{index}", f"{target.base}{STILL}/{index}"
        )

    def attachments(resources: Resources) -> dict[str, Any]:
        return {
            "color_attachments": [id_target(resources[layer])],
            "depth_stencil_attachment": depth_target(
                resources[depth], "store" if is_still else "discard"
            ),
        }

    return draw_pass(
        name,
        scene,
        mask,
        attachments,
        writes=(target.name, layer, depths, depth),
        also_reads=(target.name, depths, *(() if is_still else (depth,))) if index else (),
        frame=target.view(index),
        seen=target.seen(index),
        below=below,
        kept=target.kept(index),
    )
