"""From where and when a scene is looked at."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from engine.scene.camera import Camera
from passes.frame_uniforms import FrameInputs


@dataclass(frozen=True, slots=True)
class ViewPoint:
    """A camera, and the clip's time in seconds where the scene moves (None: as its file stands)."""

    camera: Camera
    clip: str | None = None
    time: float = 0.0
    loop: bool = True

    def same_as(self, other: "ViewPoint") -> bool:
        return self.camera.same_as(other.camera) and self.same_time_as(other)

    def same_time_as(self, other: "ViewPoint") -> bool:
        mine = (self.clip, self.time, self.loop)
        return mine == (other.clip, other.time, other.loop)

    def inputs(self, still: Mapping[str, Any]) -> FrameInputs:
        """Of a frame from here; `still` are the fields that do not come of a view. The camera is a
        new object each time: see `Drawing.look`."""
        seen = self.camera
        camera = Camera(seen.transform, seen.y_fov, seen.near)
        view = {"camera": camera, "clip": self.clip, "time": self.time, "loop": self.loop}
        return FrameInputs(**{**still, **view})
