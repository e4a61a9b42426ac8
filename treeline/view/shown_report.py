"""What the viewer shows, as a report: the document that `treeline report` writes, with null for
what a session does not measure and without the cost model, which takes frames of other sizes.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from engine.gpu.device import Device
from engine.gpu.errors import UserError
from passes.option_list import OPTIONS
from passes.update_records import update_records
from treeline.measure import Measurement, SizeRun
from treeline.report import make_report
from treeline.report_context import Setting
from treeline.view.active import Active
from treeline.view.view_point import ViewPoint


def shown_report(
    active: Active, scene: Any, scene_name: str, point: ViewPoint, device: Device
) -> dict[str, Any]:
    """Times over the recent frames, counts of frame 0. `scene` is as loaded. UserError before
    anything is measured."""
    drawing = active.drawing
    if drawing.first is None:
        raise UserError("nothing has been measured of this view yet")
    width, height = active.size
    counted, counting = drawing.counted, drawing.frames.counted
    first = drawing.first
    # The last one says how many rays there were, as frame 0 does in a report.
    others = [stats for stats in drawing.recent if stats is not first]
    run = SizeRun(
        width=width,
        height=height,
        warmup=0,
        frames=(*others, first),
        counted=counted,
        result_hash=counting.result_hash() if counted and counting else None,
        compile_ms=drawing.frames.timed.compile_ms,
        image=np.zeros((0, 0, 3), np.uint8),
        nodes={},
        updates=update_records(drawing.frames.timed.moving),
        hit_table=counting.hit_table() if counted and counting else None,
        spreads=counting.ray_spreads() if counted and counting else {},
    )
    settings = active.settings
    if not scene.camera.same_as(point.camera):
        scene = replace(scene, camera=point.camera, camera_source="viewer")
    setting = Setting(
        scene=scene,
        scene_path=scene_name,
        device=device,
        options=settings.build,
        group=settings.group,
        frame=settings.frame,
        built={
            **active.structure.context(),
            "samples": drawing.samples,
            "clip": point.clip,
            "time": point.time if point.clip else None,
            "settings": {option.name: option.get(settings) for option in OPTIONS},
        },
    )
    return make_report(setting, active.structure.bvh, Measurement(run, (), None))
