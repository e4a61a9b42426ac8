"""What of shadow maps and probes has to be drawn in a frame: only what would come out other than in
the frame before.

    shadow_map/still/k, probe/still/k   what no clip ever moves: drawn again when its view changes
    shadow_map/depth/k, probe/ids/k     over it what some clip moves: when it sees any of that in
                                        another pose, too
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
from passes.moving import Pose
from passes.prepare import PreparedScene
from passes.raster_targets import PROBE_STAGES, RasterTargets, Target
from passes.raster_views import view_key
from passes.view_culling import Bools, Frusta, ObjectBoxes, PosedBoxes, frusta


@dataclass(frozen=True, slots=True)
class _Views:
    """Of a target's layers that are views: each as `view_key` has it, and what it may see of what
    never moves, [n] as a mask and as bytes."""

    frusta: Frusta
    keys: list[bytes]
    still: Bools
    still_bytes: list[bytes]


class RasterRedraw:
    """Of one frame's `targets`."""

    def __init__(self, targets: RasterTargets, prepared: PreparedScene) -> None:
        self.targets = targets
        self._drawn = [target for target in targets.targets if target.drawn]
        self._moves = any(target.is_still for target in self._drawn)
        self._boxes = ObjectBoxes(prepared)
        self._views: dict[str, _Views] = {}  # of each target, by its base
        self._views_of: dict[str, tuple[tuple[Any, ...], bytes]] = {}  # what these were made for
        self._told: tuple[Hashable, Hashable] | None = None
        self._uploaded: dict[str, bytes] = {}

    def write(
        self,
        inputs: FrameInputs,
        picture: NDArray[np.void],
        pose: Pose | None = None,
        hidden: Hashable = None,
    ) -> None:
        """Before a frame is encoded: the views' uniforms, what they see and whether that is there
        already. `picture` is its FRAME_UNIFORMS; `pose` and `hidden` say where objects are, and
        which are out."""
        # A new pose makes no view anew, nor does a camera that leaves its probe behind.
        looked = [self._look(target, inputs, picture) for target in self._drawn]
        told = pose and pose.key, hidden
        if not any(looked) and self._told == told:
            return
        self._told = told
        movers = self._boxes.posed(pose.worlds if pose and pose.clip else None)
        shown: list[Hashable] = list(self._uploaded.values())  # lights and all
        for target in self._drawn:
            shown += self._want(target, movers, pose and pose.key, hidden)
        for name in PROBE_STAGES:
            if f"{name}/kept" in self.targets.resources:
                self.targets.resources[f"{name}/kept"].wanted = tuple(shown)

    def _want(
        self, target: Target, movers: PosedBoxes, pose: Hashable, hidden: Hashable
    ) -> list[Hashable]:
        """Tells each of the target's layers what it is to show; what it told those that are looked
        up."""
        resources, views = self.targets.resources, self._views[target.base]
        moving = None if target.is_still else movers.seen(views.frusta)
        wants: list[Hashable] = []
        for index in range(target.layers):
            wanted: Hashable = None, hidden  # of a light that is out: nothing
            seen = np.zeros(len(self._boxes.move), bool)
            if index < len(views.keys):
                seen = views.still[index]
                wanted = views.keys[index], views.still_bytes[index], hidden
                if moving is not None:
                    seen = moving[index] if self._moves else moving[index] | seen
                    # Where none of them is seen their pose is no matter.
                    any_seen = moving[index].any()
                    wanted = *wanted, (moving[index].tobytes(), pose) if any_seen else None
            resources[target.seen(index)].mask = seen
            resources[target.kept(index)].wanted = wanted
            wants.append(wanted)
        return [] if target.is_still else wants

    def _look(self, target: Target, inputs: FrameInputs, picture: NDArray[np.void]) -> bool:
        """What the target's views are and see, where that may have changed; whether it may."""
        if target.is_still:
            return False  # its views are those of the target without
        origin = inputs.probe_origin.tobytes() if target.base == "probe_ids" else b""
        # Objects that are the same: nobody changes one, they are frozen.
        scene = (inputs.light, inputs.more_lights, inputs.environment, inputs.bounds)
        before = self._views_of.get(target.base)
        if (
            before is not None
            and before[1] == origin
            and all(a is b for a, b in zip(before[0], scene, strict=True))
        ):
            return False
        self._views_of[target.base] = scene, origin
        views, keys = target.views(inputs), []
        for index, view in enumerate(views):
            record = view.record(picture, target.size)
            self._upload(target.view(index), record)
            keys.append(view_key(record))
        bounds = frusta(views)
        still = self._boxes.still(bounds)
        self._views[target.base] = _Views(bounds, keys, still, [seen.tobytes() for seen in still])
        return True

    def _upload(self, name: str, record: NDArray[np.void]) -> None:
        data = record.tobytes()
        if self._uploaded.get(name) != data:
            self.targets.device.write(self.targets.resources[name], record)
            self._uploaded[name] = data
