"""`--camera-path` and `--fps`: a command that follows the scene's camera path."""

from typing import TYPE_CHECKING, Annotated

import typer

from engine.gpu.errors import UserError
from treeline.cli.pose import POSE, ClipTime

if TYPE_CHECKING:
    from engine.scene.scene import Scene
    from treeline.playback import Playback

DEFAULT_FPS = 24.0

CameraPathOption = Annotated[
    bool,
    typer.Option(
        "--camera-path",
        help="Along the scene's camera path, its animation running from --time on.",
        rich_help_panel=POSE,
    ),
]
FpsOption = Annotated[
    float | None,
    typer.Option(
        min=0.01,
        max=1000.0,
        help=f"Frames a second of --camera-path. Default {DEFAULT_FPS:g}.",
        rich_help_panel=POSE,
    ),
]


def check_fps(camera_path: bool, fps: float | None) -> float:
    """UserError for `--fps` without a path to play."""
    if fps is not None and not camera_path:
        raise UserError("--fps is of --camera-path")
    return DEFAULT_FPS if fps is None else fps


def choose_playback(
    scene: "Scene", pose: ClipTime | None, *, fps: float = 0.0, count: int = 0
) -> "Playback":
    """The scene's path, its animation beginning at the pose that was asked for, if any. UserError
    for a scene without a path."""
    from treeline.playback import play

    clip, time = (None, 0.0) if pose is None else (pose.clip, pose.time)
    return play(scene, clip, time, fps=fps, count=count)
