"""The record that the motion pass reads of the picture before, shared by host and shader."""

import numpy as np
from numpy.typing import NDArray

from engine.gpu.structs import Field, Struct
from engine.scene.camera import Camera

PREVIOUS_VIEW = Struct(
    "PreviousView",
    Field("view_projection", "vec4f", 4),  # rows
    Field("still", "u32"),  # 1: the scene is in the pose that it was in
    Field("pad", "u32"),
    Field("pad_2", "vec2u"),
)
MOTION_BYTES = 8  # a pixel


def pack_previous(camera: Camera, aspect: float, still: bool) -> NDArray[np.void]:
    """One PREVIOUS_VIEW record, for width / height `aspect`."""
    record = np.zeros((), PREVIOUS_VIEW.dtype)
    record["view_projection"] = camera.projection(aspect) @ camera.view_matrix()
    record["still"] = still
    return record


def wgsl() -> str:
    return PREVIOUS_VIEW.wgsl()
