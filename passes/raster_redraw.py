"""What of shadow maps and probes has to be drawn in a frame: only what would come out other than in
the frame before.

    shadow_map/still/k, probe/still/k   what no clip ever moves: drawn again when its view changes
    shadow_map/depth/k, probe/ids/k     over it what some clip moves: when the pose does, too
    probe/light, probe/blur             when any of these or a light does

Where a scene has no clip there are no `still` layers. A view is that of a light's face or of the
probe, so that a camera that moves changes no shadow map, and a probe only where that stands at the
camera. What is hidden is told by the scene. Passes that are left out are named in
`FrameStats.reused`.
"""

from collections.abc import Hashable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from passes.frame_uniforms import FrameInputs
from passes.prepare import PreparedScene
from passes.raster_targets import PROBE_STAGES, RasterTargets
from passes.raster_views import view_key
from passes.view_culling import object_boxes


class RasterRedraw:
    """Of one frame's `targets`."""

    def __init__(self, targets: RasterTargets, prepared: PreparedScene) -> None:
        self.targets = targets
        self._drawn = [target for target in targets.targets if target.drawn]
        self._boxes = object_boxes(prepared)
        self._moves = any(target.is_still for target in self._drawn)
        self._told: tuple[Any, ...] = ()
        self._uploaded: dict[str, bytes] = {}

    def write(
        self,
        inputs: FrameInputs,
        picture: NDArray[np.void],
        pose: Hashable = None,
        hidden: Hashable = None,
    ) -> None:
        """Before a frame is encoded: the views' uniforms, what they see and whether that is there
        already. `picture` is its FRAME_UNIFORMS; `pose` and `hidden` say where objects are, and
        which are out."""
        if not self._drawn:
            return
        told = (
            inputs.light,
            inputs.more_lights,
            inputs.environment,
            inputs.bounds,
            tuple(inputs.probe_origin),
            pose,
            hidden,
        )
        # Objects that are the same: nobody changes one, they are frozen.
        same = len(self._told) == len(told) and all(
            a is b for a, b in zip(self._told[:4], told[:4], strict=True)
        )
        if same and self._told[4:] == told[4:]:
            return
        self._told = told
        resources = self.targets.resources
        everything: list[Hashable] = []
        for target in self._drawn:
            views = target.views(inputs)
            for index in range(target.layers):
                seen, key = np.zeros(len(self._boxes.move), bool), b""
                if index < len(views):
                    record = views[index].record(picture, target.size)
                    seen, key = self._boxes.seen(views[index]), view_key(record)
                    if not target.is_still:
                        self._upload(target.view(index), record)
                        everything.append(self._uploaded[target.view(index)])
                still = ~self._boxes.move
                wanted: tuple[Hashable, ...] = (key, (seen & still).tobytes(), hidden)
                if not target.is_still:
                    wanted = (*wanted, (seen & ~still).tobytes(), pose)
                if self._moves:
                    seen = seen & (still if target.is_still else ~still)
                resources[target.seen(index)].mask = seen
                resources[target.kept(index)].wanted = wanted
        for name in PROBE_STAGES:
            if f"{name}/kept" in resources:
                resources[f"{name}/kept"].wanted = (*everything, pose, hidden)

    def _upload(self, name: str, record: NDArray[np.void]) -> None:
        data = record.tobytes()
        if self._uploaded.get(name) != data:
            self.targets.device.write(self.targets.resources[name], record)
            self._uploaded[name] = data
