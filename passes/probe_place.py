"""Where a frame's probe stands: at the camera, or while that moves where it was drawn last.

What a probe shows is corrected by where it leaves the scene's box, so that it need not stand where
the picture is seen from; near its camera it sees what that sees. A frame of a moving camera
(`FrameInputs.camera_moves`) takes the probe that is drawn already, up to `probe_distance` from
there, and has one drawn at the camera where that is farther: never elsewhere, as other points may
be inside a wall. A camera at rest has its probe where it is, so that a picture at rest depends on
nothing that was drawn before it; a moving one's depend on its way.
"""

import numpy as np

from engine.scene.mesh import F64
from passes.frame_uniforms import FrameInputs


class ProbePlace:
    """Of one frame's probe."""

    def __init__(self) -> None:
        self._place: F64 | None = None  # of the last frame's; None: there was none

    def choose(self, inputs: FrameInputs) -> F64:
        """[3] of the next frame, which draws its probe there or has it."""
        if inputs.probe is not None:
            self._place = inputs.probe
        elif self._place is None or not self._reaches(inputs, self._place):
            self._place = inputs.camera.position
        return self._place

    def _reaches(self, inputs: FrameInputs, place: F64) -> bool:
        away = float(np.linalg.norm(inputs.camera.position - place))
        return inputs.camera_moves and away <= inputs.probe_distance
