"""What the viewer shows, as a report: the document that `treeline report` writes, with null for
what a session does not measure and without the cost model, which takes frames of other sizes.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from engine.gpu.device import Device
from engine.gpu.errors import UserError
from engine.scene.camera import Camera
from passes.option_list import OPTIONS
from treeline.measure import Measurement, SizeRun
from treeline.report import make_report
from treeline.report_context import Setting
from treeline.view.active import Active
from treeline.view.baseline import same_view


def shown_report(
    active: Active, scene: Any, scene_name: str, camera: Camera, device: Device
) -> dict[str, Any]:
    """Times over the recent frames, counts of frame 0. `scene` is as loaded. UserError before
    anything is measured."""
    drawing = active.drawing
    if drawing.first is None:
        raise UserError("nothing has been measured of this view yet")
    width, height = active.size
    counted = drawing.counted
    first = drawing.first
    # The last one says how many rays there were, as frame 0 does in a report.
    others = [stats for stats in drawing.recent if stats is not first]
    run = SizeRun(
        width=width,
        height=height,
        warmup=0,
        frames=(*others, first),
        counted=counted,
        result_hash=None if counted is None else drawing.frames.counted.result_hash(),
        compile_ms=drawing.frames.timed.compile_ms,
        image=np.zeros((0, 0, 3), np.uint8),
        nodes={},
    )
    settings = active.settings
    if not same_view(scene.camera, camera):
        scene = replace(scene, camera=camera, camera_source="viewer")
    setting = Setting(
        scene=scene,
        scene_path=scene_name,
        device=device,
        options=settings.build,
        group=settings.group,
        gbuffer=settings.frame.gbuffer,
        seed=settings.frame.seed,
        traversal=settings.frame.traversal,
        built={
            **active.structure.context(),
            "samples": drawing.samples,
            "settings": {option.name: option.get(settings) for option in OPTIONS},
        },
    )
    return make_report(setting, active.structure.bvh, Measurement(run, (), None))
