"""`--time` and `--clip`: the pose in which a command takes its scene."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from engine.gpu.errors import UserError

if TYPE_CHECKING:
    from engine.scene.scene import Scene

POSE = "Animation"

TimeOption = Annotated[
    float | None,
    typer.Option(
        metavar="SECONDS",
        help="The scene at this time of a clip, which repeats. Default: as the file stands.",
        rich_help_panel=POSE,
    ),
]
ClipOption = Annotated[
    str | None,
    typer.Option(help="The clip by name. Default: the file's first.", rich_help_panel=POSE),
]


@dataclass(frozen=True, slots=True)
class ClipTime:
    """A clip of a scene, and the time in it in seconds."""

    clip: str
    time: float

    def fields(self) -> dict[str, Any]:
        """Those of `passes.frame_uniforms.FrameInputs`."""
        return {"clip": self.clip, "time": self.time}


def choose_pose(scene: "Scene", time: float | None, clip: str | None) -> ClipTime | None:
    """What the two options mean; None without both. UserError for a scene in which nothing moves,
    a clip that it does not have or a time that is not finite."""
    from engine.scene.pose import check_time, moves

    if time is None and clip is None:
        return None
    if not moves(scene) or scene.animation is None:
        given = "--time" if clip is None else "--clip"
        raise UserError(f"{given}: nothing moves in {scene.name}")
    return ClipTime(scene.animation.clip(clip).name, check_time(time or 0.0))
