"""One scene on one device, as it is being looked at: the viewer's model, without a window.

The application calls `step` once a UI frame. It takes up what has changed, draws a part (see
`treeline.view.drawing`) and waits neither for builds, which run in a process of their own, nor for
kernels, which compile in a thread; the old picture stays meanwhile. Numbers are read from frames,
not computed here.
"""

import time
from collections import deque
from collections.abc import Callable
from dataclasses import fields, replace
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
from treeline.view.drawing import Drawing
from treeline.view.frame_supply import FrameSupply, structure_key
from treeline.view.settling import Settling
from treeline.view.shown_report import shown_report
from treeline.view.view_error import ViewError, expected_errors, view_error
from treeline.view.view_point import ViewPoint

HISTORY = 240  # timed frames that plots show


class ViewSession:
    """`scene` is as loaded, `size` the picture's in pixels. `structure` is what the settings ask
    for, if it has been built already; `cached` uses the user's cache of BLASes for others.
    `new_device` opens another device after this one was lost. `continuous` draws in every step, as
    on a GPU with timestamps; `in_background` False compiles in `step`.

    `frame` is the frame whose buffers are to be shown, None before the first; `version` counts the
    changes of what it and the counted frame hold. `history` has the timed frames of all views.
    After an error there is no picture of a lost device and no statistics, until `retry` or a
    change."""

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
        in_background: bool = True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.device = device
        self.scene = scene
        self.scene_name = scene_name
        self.settings = settings
        self.point = ViewPoint(scene.camera)
        self.hidden: frozenset[int] = frozenset()  # TLAS instances of this group
        self.frame: HybridFrame | None = None
        self.version = 0
        self.history: deque[FrameStats] = deque(maxlen=HISTORY)
        self.error: ViewError | None = None
        timestamps = device.timing_source == "timestamp-query"
        self.continuous = timestamps if continuous is None else continuous
        self.baseline: Baseline | None = None
        self.label = "B"  # of what is shown now, beside a baseline
        self.active: Active | None = None  # behind `settings` while something is made for them
        self._supply = FrameSupply(device, scene, cached=cached, in_background=in_background)
        if structure is not None:
            self._supply.store.add(structure_key(settings), structure)
        self._new_device = new_device
        self._settling = Settling(size, clock)
        self._lost = False  # the device, and there is no other one yet
        # The fields of frames' inputs that do not come of the view, and what they do come of.
        self._still: tuple[Any, Any, dict[str, Any]] = (None, None, {})

    # ---- what is shown ----------------------------------------------------------------------

    @property
    def camera(self) -> Camera:
        return self.point.camera

    @property
    def clip(self) -> str | None:
        return self.point.clip

    @property
    def time(self) -> float:
        """Seconds into the clip."""
        return self.point.time

    @property
    def drawing(self) -> Drawing | None:
        """The measurements of what is shown; None before there are any, and after an error."""
        return None if self.active is None or self.error is not None else self.active.drawing

    @property
    def timed(self) -> FrameStats | None:
        """The newest timed frame of this view and these settings."""
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
        return self._settling.wanted_size

    @property
    def moving(self) -> bool:
        return self._settling.moving

    @property
    def busy(self) -> str | None:
        """What is being made while an older picture is shown."""
        if self._supply.busy is not None:
            return self._supply.busy
        if self.error is None and (self.active is None or self.active.drawing.frame is None):
            return "drawing the first frame"
        return None

    @property
    def ready(self) -> bool:
        """Whether what is shown is what was asked for, and all of it has been measured."""
        return self._is_current() and self.drawing is not None and self.drawing.measured

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

    # ---- what is asked for ------------------------------------------------------------------

    def change(self, settings: ViewSettings) -> None:
        """Draws with these settings from now on; what has to be made anew is found out by
        comparing. An error of the old settings is over, unless the device is gone."""
        if settings.group != self.settings.group:
            self.hidden = frozenset()  # other groups have other instances
        self.settings = settings
        if self.error is not None and self.error.kind != "device":
            self.error = None

    def set_camera(self, camera: Camera, moving: bool) -> None:
        """`moving`: another one is about to follow."""
        if camera is self.point.camera:
            self._settling.look(moving, False)
            return
        point = self.point
        self._look(ViewPoint(camera, point.clip, point.time, point.loop), moving)

    def set_pose(self, clip: str | None, time: float, moving: bool, *, loop: bool = True) -> None:
        """The scene as the clip has it at a time in seconds; None: as its file stands."""
        if (clip, time, loop) == (self.point.clip, self.point.time, self.point.loop):
            self._settling.look(moving, False)
            return
        self._look(replace(self.point, clip=clip, time=time, loop=loop), moving)

    def set_hidden(self, instances: frozenset[int]) -> None:
        """TLAS instances that no ray and no pixel sees. UserError for one that cannot be hidden."""
        if self.active is not None:
            self.active.scene.set_hidden(instances)
        if instances != self.hidden:
            self.hidden = instances
            self._restart()

    def resize(self, width: int, height: int) -> None:
        """The picture's size in pixels, from when it has not changed for a moment."""
        self._settling.resize((width, height))

    def fail(self, error: BaseException) -> None:
        """Takes an error that was met outside of `step` for one of its own."""
        self._fail(view_error(error))

    def reopen(self) -> None:
        """After the device was lost: opens another one, which shows the error until `retry`."""
        if self._new_device is not None:
            self.device = self._new_device()
            self._supply.replace_device(self.device)
            self._lost = False

    def retry(self) -> None:
        """Tries again after an error, on a new device if the old one was lost."""
        if self.error is None:
            return
        self.error = self.active = None
        if self._lost:
            try:
                self.reopen()
            except expected_errors() as error:
                self._fail(view_error(error))

    # ---- comparing and saving ---------------------------------------------------------------

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
        return shown_report(self.active, self.scene, self.scene_name, self.point, self.device)

    def close(self) -> None:
        """Ends the process that builds and the thread that compiles, if there are any."""
        self._supply.close()

    # ---- a step -----------------------------------------------------------------------------

    def step(self) -> None:
        """A part of the work; what a user can mend ends in `error`."""
        if self.error is not None:
            return
        try:
            self._take_up_changes()
            if self.active is not None and self.error is None:
                self._draw(self.active.drawing)
        except expected_errors() as error:
            self._fail(view_error(error))

    def _draw(self, drawing: Drawing) -> None:
        if self._supply.store.busy and not self.continuous and not self.moving and drawing.measured:
            return  # a CPU driver draws on the cores that the build is to have
        drawn = drawing.drawn
        drawing.step(self.moving)
        if drawing.frame is not None and (drawing.drawn != drawn or self.frame is None):
            self.frame = drawing.frame
            self.version += 1

    def _fail(self, error: ViewError) -> None:
        self.error = error
        self._supply.drop()
        if error.kind == "device":
            self.frame = self.active = None
            self._lost = True

    def _is_current(self) -> bool:
        """Whether what is drawn is what was asked for."""
        active = self.active
        wanted = (self.settings, self.size)
        return active is not None and (active.settings, active.size) == wanted

    def _measured(self, label: str) -> Baseline:
        """The settings with what is known of them."""
        active = self.active if self._is_current() and self.error is None else None
        return take_baseline(label, self.settings, self.point, self.size, active)

    def _look(self, point: ViewPoint, moving: bool) -> None:
        changed = not point.same_as(self.point)
        self._settling.look(moving, changed)
        if changed:
            self.point = point
            self._restart()

    def _restart(self) -> None:
        """Measures anew what is being drawn."""
        if self.active is not None:
            inputs = self._inputs(self.active.scene, self.active.settings)
            self.active.drawing.look(inputs, self.moving)

    def _take_up_changes(self) -> None:
        active = self.active
        last = None if active is None else active.supplied
        found = self._supply.get(self.settings, self._settling.size, last)
        if found is None or found is last:
            return
        if not found.settings.frame.count:
            found.frames.drop_counted()
        found.frames.scene.set_hidden(self.hidden)
        inputs = self._inputs(found.frames.scene, found.settings)
        counts = found.settings.frame.count
        if active and last and (found.frames, counts) == (last.frames, last.settings.frame.count):
            self._settling.adjust()  # a slider may be moving
            drawing = active.drawing
            drawing.look(inputs, moving=True)
        else:
            drawing = Drawing(
                found.frames,
                inputs,
                self.history,
                continuous=self.continuous,
                new_numbers=found.settings.frame.history > 0,
            )
        self.active = Active(found, drawing)

    def _inputs(self, scene: GpuScene, settings: ViewSettings) -> FrameInputs:
        """What changes from frame to frame: the view, and the settings that no frame is made anew
        for."""
        if self._still[0] is not scene or self._still[1] is not settings:
            inputs = frame_inputs(scene.prepared, settings.frame)
            still = {field.name: getattr(inputs, field.name) for field in fields(inputs)}
            self._still = (scene, settings, still)
        return self.point.inputs(self._still[2])
