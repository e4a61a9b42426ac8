"""A scene's camera path as frames: where the camera is in each, and when the animation is.

Time runs along the path: a frame so many seconds behind the path's beginning shows the scene's clip
so many seconds later. `PathFrame` draws one, for whoever measures a frame at a time.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from engine.gpu.errors import CheckFailed, UserError
from engine.scene.camera_path import CameraPath
from engine.scene.pose import moves, timeline
from engine.scene.scene import Scene
from passes.frame_uniforms import FrameInputs
from treeline.measure import MakeFrame, Progress

MOST_FRAMES = 100_000


@dataclass(frozen=True, slots=True)
class Playback:
    """`offsets` are the frames' seconds behind the path's beginning, where the scene stands at
    `time` of `clip` (None: nothing moves)."""

    path: CameraPath
    offsets: tuple[float, ...]
    clip: str | None = None
    time: float = 0.0

    def inputs(self, inputs: FrameInputs, number: int) -> FrameInputs:
        """Those of frame `number`, from a frame's own."""
        offset = self.offsets[number]
        camera = self.path.at(float(self.path.times[0]) + offset)
        time = self.time + offset if self.clip is not None else inputs.time
        # Whatever was drawn before: pictures of a path depend on nothing but the path.
        moves = number > 0
        return replace(inputs, camera=camera, camera_moves=moves, clip=self.clip, time=time)


def scene_path(scene: Scene) -> CameraPath:
    """UserError for a scene without one."""
    if scene.camera_path is None:
        raise UserError(
            f"--camera-path: {scene.name} has no camera path ([camera_path] in a .toml)"
        )
    return scene.camera_path


def play(
    scene: Scene, clip: str | None = None, time: float = 0.0, *, fps: float = 0.0, count: int = 0
) -> Playback:
    """The scene's path in `fps` frames a second, or in `count` frames, evenly. A path that closes
    does not show its last key, which is its first. Without a `clip` the scene's first one runs.
    UserError for a scene without a path, and for more than MOST_FRAMES frames."""
    path = scene_path(scene)
    if not count:
        count = 1 + int(path.duration * fps + 1e-6)
        if path.loop and count > 1:
            count = max(1, round(path.duration * fps))
        step = 1 / fps
    else:
        step = path.duration / max(1, count if path.loop else count - 1)
    if count > MOST_FRAMES:
        raise UserError(f"the camera path has {count:,} frames, at most {MOST_FRAMES:,} are drawn")
    if clip is None and moves(scene):
        clip = timeline(scene)[0].name
    return Playback(path, tuple(step * i for i in range(count)), clip, time)


@dataclass(frozen=True, slots=True)
class PathFrame:
    """What one frame of a path cost: seconds behind the path's beginning, FrameStats of the timed
    and of the counted run, which hit the same."""

    offset: float
    timed: Any
    counted: Any


def measure_path(
    make_frame: MakeFrame,
    playback: Playback,
    size: tuple[int, int],
    progress: Progress,
    *,
    new_numbers: bool = False,
) -> list[PathFrame]:
    """Draws each frame of the path timed, then each counted. A frame whose queues or stacks
    overflowed is drawn again. With `new_numbers` each has random numbers of its own, as frames that
    remember others need; else all have frame 0's. CheckFailed where a counted frame hit something
    else."""
    timed = _draw_all(make_frame, playback, size, False, progress, new_numbers)
    counted = _draw_all(make_frame, playback, size, True, progress, new_numbers)
    for number, ((_, expected), (_, found)) in enumerate(zip(timed, counted, strict=True)):
        if expected != found:
            raise CheckFailed(
                f"frame {number} of the camera path: the counted run's hits differ from the timed "
                f"run's ({found[:12]} and {expected[:12]})"
            )
    found_stats = zip(playback.offsets, timed, counted, strict=True)
    return [PathFrame(offset, a[0], b[0]) for offset, a, b in found_stats]


def _draw_all(
    make_frame: Callable[[int, int, bool], Any],
    playback: Playback,
    size: tuple[int, int],
    count: bool,
    progress: Progress,
    new_numbers: bool,
) -> Sequence[tuple[Any, str]]:
    """FrameStats and hash of the hits of each frame."""
    total = len(playback.offsets)
    progress.begin(f"{'counting' if count else 'timing'} {total} frames of the camera path", total)
    frame = make_frame(*size, count)
    frame.inputs = playback.inputs(frame.inputs, 0)
    frame.run(0)  # the first pose of a scene makes what updates it
    drawn = []
    for number in range(total):
        frame.inputs = playback.inputs(frame.inputs, number)
        index = number if new_numbers else 0
        stats = frame.run(index)
        if stats.dropped:
            stats = frame.run(index)  # the queues have grown to what the first try needed
        drawn.append((stats, frame.result_hash()))
        progress.advance(f"{stats.frame_total_ms:.1f} ms")
    return drawn
