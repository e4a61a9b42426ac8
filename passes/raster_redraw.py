"""What of shadow maps and probes has to be drawn in a frame: only what would come out other than in
the frame before.

    shadow_map/still/k, probe/still/k   what no clip ever moves: drawn again when its view changes
    shadow_map/depth/k, probe/ids/k     over it what some clip moves: when the pose does, too
    probe/light, probe/blur             when any of these or a light does

Where a scene has no clip there are no `still` layers. A view is that of a light's face or of the
probe, so that a camera that moves changes no shadow map, and a probe only where that goes along
(`passes.probe_place`). What is hidden is told by the scene. Passes that are left out are named in
`FrameStats.reused`.
"""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from passes.frame_uniforms import FrameInputs
from passes.prepare import PreparedScene
from passes.raster_targets import PROBE_STAGES, RasterTargets, Target
from passes.raster_views import view_key
from passes.view_culling import object_boxes


@dataclass(slots=True)
class _Layer:
    """A layer's view as `view_key` has it, and what it may see of what never moves and of the
    rest, as bytes."""

    view: bytes
    still: bytes
    movers: bytes


class RasterRedraw:
    """Of one frame's `targets`."""

    def __init__(self, targets: RasterTargets, prepared: PreparedScene) -> None:
        self.targets = targets
        self._drawn = [target for target in targets.targets if target.drawn]
        self._boxes = object_boxes(prepared)
        self._moves = any(target.is_still for target in self._drawn)
        self._layers: dict[str, list[_Layer]] = {}  # of each target
        self._seen_by: dict[str, tuple[tuple[Any, ...], bytes]] = {}  # what these are of
        self._told: tuple[Hashable, Hashable] | None = None
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
        # A new pose makes no view anew, nor does a camera that takes its probe along.
        looked = [self._look(target, inputs, picture) for target in self._drawn]
        if not any(looked) and self._told == (pose, hidden):
            return
        self._told = (pose, hidden)
        resources = self.targets.resources
        for target in self._drawn:
            for index, layer in enumerate(self._layers[target.name]):
                wanted: tuple[Hashable, ...] = (layer.view, layer.still, hidden)
                if not target.is_still:
                    wanted = (*wanted, layer.movers, pose)
                resources[target.kept(index)].wanted = wanted
        for name in PROBE_STAGES:
            if f"{name}/kept" in resources:
                resources[f"{name}/kept"].wanted = (*self._uploaded.values(), pose, hidden)

    def _look(self, target: Target, inputs: FrameInputs, picture: NDArray[np.void]) -> bool:
        """What the target's views are and see, where that may have changed; whether it may."""
        origin = inputs.probe_origin.tobytes() if target.base == "probe_ids" else b""
        # Objects that are the same: nobody changes one, they are frozen.
        scene = (inputs.light, inputs.more_lights, inputs.environment, inputs.bounds)
        before = self._seen_by.get(target.name)
        if (
            before is not None
            and before[1] == origin
            and all(a is b for a, b in zip(before[0], scene, strict=True))
        ):
            return False
        self._seen_by[target.name] = scene, origin
        views, layers = target.views(inputs), []
        still = ~self._boxes.move
        for index in range(target.layers):
            seen, key = np.zeros(len(self._boxes.move), bool), b""
            if index < len(views):
                record = views[index].record(picture, target.size)
                seen, key = self._boxes.seen(views[index]), view_key(record)
                if not target.is_still:
                    self._upload(target.view(index), record)
            layers.append(_Layer(key, (seen & still).tobytes(), (seen & ~still).tobytes()))
            if self._moves:
                seen = seen & (still if target.is_still else ~still)
            self.targets.resources[target.seen(index)].mask = seen
        self._layers[target.name] = layers
        return True

    def _upload(self, name: str, record: NDArray[np.void]) -> None:
        data = record.tobytes()
        if self._uploaded.get(name) != data:
            self.targets.device.write(self.targets.resources[name], record)
            self._uploaded[name] = data
