"""One scene on one device, as it is being looked at: the viewer's model, without a window.

The application calls `step` once a UI frame. It takes up what has changed, draws a part (see
`treeline.view.drawing`) and never waits for a build: those run in a process of their own while
the old picture stays. Numbers are read from frames, not computed here.
"""

import time
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from engine.gpu.device import Device
from engine.gpu.errors import UserError
from engine.scene.camera import Camera
from passes.frame_stats import FrameStats
from passes.frame_uniforms import FrameInputs, frame_inputs
from passes.gpu_scene import GpuScene
from passes.hybrid import HybridFrame
from passes.option_list import ViewSettings
from passes.prepare import PreparedScene
from treeline.structures import Structure
from treeline.view.active import Active
from treeline.view.baseline import Baseline, Comparison, compare, take_baseline
from treeline.view.build_worker import StructureKey
from treeline.view.drawing import Drawing
from treeline.view.frame_set import FrameSet
from treeline.view.shown_report import shown_report
from treeline.view.structure_store import StructureStore
from treeline.view.view_error import ViewError, expected_errors, view_error

HISTORY = 240  # timed frames that plots show
SETTLE_S = 0.25  # without a new camera: it has stopped, whatever the caller says
RESIZE_S = 0.15  # that a size has to last before frames are made for it

__all__ = ["Active", "ViewError", "ViewSession", "ViewSettings", "structure_key"]


def structure_key(settings: ViewSettings) -> StructureKey:
    return StructureKey(settings.build, settings.group)


class ViewSession:
    """`scene` is as loaded, `size` the picture's in pixels. `structure` is what the settings ask
    for, if it has been built already; `cached` uses the user's cache of BLASes for others.
    `new_device` opens another device after this one was lost. `continuous` draws in every step, as
    on a GPU.

    `frame` is the frame whose buffers are to be shown, None before the first. `history` has the
    timed frames of all views. After an error there is no picture of a lost device and no
    statistics, until `retry` or a change."""

    def __init__(
        self,
        device: Device,
        scene: Any,
        scene_name: str,
        settings: ViewSettings,
        size: tuple[int, int],
        *,
        structure: Structure | None = None,
        new_device: Callable[[], Device] | None = None,
        cached: bool = True,
        continuous: bool | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.device = device
        self.scene = scene
        self.scene_name = scene_name
        self.settings = settings
        self.camera: Camera = scene.camera
        self.clip: str | None = None  # as the file stands
        self.time = 0.0  # seconds into the clip
        self.frame: HybridFrame | None = None
        self.history: deque[FrameStats] = deque(maxlen=HISTORY)
        self.error: ViewError | None = None
        self.continuous = not device.info.is_cpu if continuous is None else continuous
        self.baseline: Baseline | None = None
        self.label = "B"  # of what is shown now, beside a baseline
        self.active: Active | None = None  # behind `settings` while something is built for them
        self._store = StructureStore(device, scene, cached=cached)
        if structure is not None:
            self._store.add(structure_key(settings), structure)
        self._new_device = new_device
        self._clock = clock
        self._size = self._wanted_size = size
        self._resized_at = self._moved_at = float("-inf")
        self._moving = False

    # What is shown.

    @property
    def drawing(self) -> Drawing | None:
        """The measurements of what is shown; None before there are any, and after an error."""
        return None if self.active is None or self.error is not None else self.active.drawing

    @property
    def timed(self) -> FrameStats | None:
        """The newest timed frame of this camera and these settings."""
        return None if self.drawing is None else self.drawing.timed

    @property
    def counted(self) -> FrameStats | None:
        """The same, counted; of frame 0."""
        return None if self.drawing is None else self.drawing.counted

    @property
    def samples(self) -> int:
        """In the mean that the picture is."""
        return 0 if self.drawing is None else self.drawing.samples

    @property
    def prepared(self) -> PreparedScene | None:
        """What the frame that is shown has drawn."""
        return None if self.frame is None else self.frame.scene.prepared

    @property
    def size(self) -> tuple[int, int]:
        """Of the picture, in pixels, as asked for."""
        return self._wanted_size

    @property
    def moving(self) -> bool:
        return self._moving and self._clock() - self._moved_at < SETTLE_S

    @property
    def busy(self) -> str | None:
        """What is being made while an older picture is shown."""
        if self._store.busy is not None:
            return self._store.busy
        if self.error is None and (self.active is None or self.active.drawing.frame is None):
            return "drawing the first frame"
        return None

    @property
    def version(self) -> tuple[Drawing | None, int]:
        """Changes whenever the buffers of a frame that may be shown have been drawn anew."""
        return self.drawing, 0 if self.drawing is None else self.drawing.drawn

    @property
    def ready(self) -> bool:
        """Whether what is shown is what was asked for, and all of it has been measured."""
        return (
            self.drawing is not None
            and self.active is not None
            and (self.active.settings, self.active.size) == (self.settings, self._wanted_size)
            and self.drawing.measured
        )

    @property
    def idle(self) -> bool:
        """Whether steps have nothing to do until something changes."""
        return self.ready and self.drawing is not None and self.drawing.finished

    def frame_for(self, counts: bool) -> HybridFrame | None:
        """The frame to show an output of. Counts are only in the counted frame: None where that
        has not drawn this view."""
        if not counts:
            return self.frame
        drawing = self.drawing
        return None if drawing is None or drawing.counted is None else drawing.frames.counted

    # What is asked for.

    def change(self, settings: ViewSettings) -> None:
        """Draws with these settings from now on; what has to be made anew is found out by
        comparing. An error of the old settings is over, unless the device is gone."""
        self.settings = settings
        if self.error is not None and self.error.kind != "device":
            self.error = None

    def set_camera(self, camera: Camera, moving: bool) -> None:
        """`moving`: another one is about to follow."""
        if moving or camera is not self.camera:
            self._moving, self._moved_at = moving, self._clock()
        if camera is not self.camera:
            self.camera = camera
            self._look()

    def _look(self) -> None:
        if self.active is not None:
            self.active.drawing.look(self._inputs(self.active.scene, self.active.settings))

    def set_pose(self, clip: str | None, time: float, moving: bool) -> None:
        """The scene as `clip` has it at `time` seconds; without one as its file stands. `moving`:
        another time is about to follow."""
        if moving or (clip, time) != (self.clip, self.time):
            self._moving, self._moved_at = moving, self._clock()
        if (clip, time) != (self.clip, self.time):
            self.clip, self.time = clip, time
            self._look()

    def resize(self, width: int, height: int) -> None:
        """The picture's size in pixels, from when it has not changed for a moment."""
        if (width, height) != self._wanted_size:
            self._wanted_size, self._resized_at = (width, height), self._clock()

    def set_hidden(self, instances: frozenset[int]) -> None:
        """TLAS instances of what is shown that no ray sees and that are not rasterised; all others
        are. UserError for one that cannot be hidden."""
        active = self.active
        if active is None or instances == active.scene.hidden:
            return
        active.scene.set_hidden(instances)
        active.drawing.look(self._inputs(active.scene, active.settings))

    def retry(self) -> None:
        """Tries again after an error, on a new device if the old one was lost."""
        if self.error is None:
            return
        lost, self.error = self.error.kind == "device", None
        self.active = None
        if lost and self._new_device is not None:
            try:
                self.device = self._new_device()
            except expected_errors() as error:
                self._fail(view_error(error))
            else:
                self._store.replace_device(self.device)

    # Comparing and saving.

    def pin(self) -> None:
        """What is shown becomes A, the baseline; what follows is B."""
        self.baseline, self.label = self._measured("A"), "B"

    def unpin(self) -> None:
        self.baseline = None

    def swap(self) -> None:
        """Switches between A and B: each keeps its settings and what was measured."""
        if self.baseline is not None:
            pinned = self.baseline
            self.baseline = self._measured(self.label)
            self.label = pinned.label
            self.change(pinned.settings)

    def effects(self) -> Comparison:
        """What has changed against the baseline."""
        if self.baseline is None:
            return Comparison("no baseline is pinned")
        return compare(self.baseline, self._measured(self.label))

    def document(self) -> dict[str, Any]:
        """What is shown in the format of report.json. UserError before anything is measured."""
        if self.active is None or self.error is not None:
            raise UserError("nothing has been measured of this view yet")
        return shown_report(self.active, self.scene, self.scene_name, self.camera, self.device)

    def _measured(self, label: str) -> Baseline:
        """The settings with what is known of them."""
        active = self.active if self.error is None else None
        if active is not None and (active.settings, active.size) != (self.settings, self.size):
            active = None  # what is shown is older
        return take_baseline(label, self.settings, self.camera, self.size, active)

    def close(self) -> None:
        """Ends the process that builds, if there is one."""
        self._store.close()

    # What a step does.

    def step(self) -> None:
        """A part of the work; what a user can mend ends in `error`."""
        if self.error is not None:
            return
        try:
            self._take_up_changes()
            if self.active is not None and self.error is None:
                drawing = self.active.drawing
                drawing.step(self.moving)
                self.frame = drawing.frame or self.frame
        except expected_errors() as error:
            self._fail(view_error(error))

    def _fail(self, error: ViewError) -> None:
        self.error = error
        if error.kind == "device":
            self.frame = self.active = None

    def _take_up_changes(self) -> None:
        if self._clock() - self._resized_at >= RESIZE_S:
            self._size = self._wanted_size
        active, key = self.active, structure_key(self.settings)
        built = self._store.poll()
        structure = self._store.get(key)
        if structure is None:
            built = built if built is not None and built.key == key else self._store.request(key)
            if built is not None and built.error is not None:
                self._fail(built.error)
                return
            structure = None if built is None else built.structure
        elif self._store.busy is not None:
            self._store.cancel()  # it was for settings that are no longer wanted
        if structure is not None:
            if active is None or (active.settings, active.size) != (self.settings, self._size):
                self._activate(self.settings, structure, self._store.on_gpu(key))
        elif active is not None and active.size != self._size:
            self._activate(active.settings, active.structure, active.scene)

    def _activate(self, settings: ViewSettings, structure: Structure, scene: GpuScene) -> None:
        """Begins to draw with these; frames stay where they would come out the same."""
        width, height = self._size
        options = replace(settings.frame, width=width, height=height)
        frames = None if self.active is None else self.active.drawing.frames
        if frames is None or not frames.fits(scene, options):
            frames = FrameSet(self.device, scene, options)
        if not options.count:
            frames.drop_counted()
        drawing = Drawing(
            frames,
            self._inputs(scene, settings),
            self.history,
            count=options.count,
            continuous=self.continuous,
        )
        self.active = Active(settings, self._size, structure, drawing)

    def _inputs(self, scene: GpuScene, settings: ViewSettings) -> FrameInputs:
        """What changes from frame to frame: camera and pose, and the settings that no frame is made
        anew for."""
        return replace(
            frame_inputs(scene.prepared.scene, settings.frame),
            camera=self.camera,
            clip=self.clip,
            time=self.time,
        )
