"""A reflection probe: what is seen from one point in all directions, captured in each frame.

    probe/ids/0..5   object and triangle in each direction: six faces of a cube, by the rasteriser
    probe/light      lit: emission, ambient light, the first area light through its shadow map
    probe/blur       levels of blur, for rough surfaces

The point is the camera's, so that nothing near it is missed, or the middle of the scene's box
(option `probe_position`); `FrameInputs.probe` names any other. Whoever looks a direction up
corrects it by where it leaves the scene's box at rest (`passes/shaders/probe.wgsl`). What
reflection rays see is drawn. A probe that is captured once and kept would cost nothing here, and
show what has moved since where it was.
"""

from typing import Any

from engine.frame.render_pass import Pass, Resources
from passes.gbuffer import depth_target, draw_pass, id_target
from passes.gpu_scene import GpuScene
from passes.probe_levels import level_sizes
from passes.raster_targets import Target, frame_targets
from passes.rays import REFLECTION
from passes.shadow_map_passes import map_constants
from passes.stage_passes import StagePasses


def probe_passes(make: StagePasses) -> list[Pass]:
    """Those of the frame's probe; none where it has none."""
    if not make.options.has_probe:
        return []
    target = next(t for t in frame_targets(make.options) if t.name == "probe_ids")
    mask, size = make.options.mask(REFLECTION.name), make.options.probe_size
    view = target.view(0)
    constants = probe_constants(make)
    return [
        *(face_pass(make.scene, target, index, mask) for index in range(target.layers)),
        make.over_items(
            "probe/light",
            "probe_light",
            size * size,
            constants=constants | map_constants(make),
            frame=view,
        ),
        make.over_items(
            "probe/blur",
            "probe_blur",
            sum(side * side for side in level_sizes(size)),
            constants=constants,
            probe_out="probe",
        ),
    ]


def probe_constants(make: StagePasses) -> dict[str, float]:
    """Of every stage that looks a probe up."""
    return {"PROBE_SIZE": make.options.probe_size}


def face_pass(scene: GpuScene, target: Target, index: int, mask: int) -> Pass:
    layer = target.layer(index)

    def attachments(resources: Resources) -> dict[str, Any]:
        return {
            "color_attachments": [id_target(resources[layer])],
            "depth_stencil_attachment": depth_target(resources["probe_depth/0"], "discard"),
        }

    return draw_pass(
        f"probe/ids/{index}",
        scene,
        mask,
        attachments,
        writes=(target.name, "probe_depth"),
        also_reads=(target.name, "probe_depth") if index else (),
        frame=target.view(index),
        seen=target.seen(index),
    )
