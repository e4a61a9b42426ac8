"""`HybridFrame`: the passes of `passes.frame_passes` over buffers of their own, and their numbers.

It makes the room that a frame lacked before the next one, and reads back pictures, statistics and
outputs.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from bvh.gpu.trace_rays import STACK_SIZES
from bvh.scene_bvh import SceneBvh
from engine.frame.frame import Frame, FrameTimes
from engine.frame.kept import Kept
from engine.gpu.device import Device
from engine.gpu.errors import UserError
from engine.scene.pose import ClipSpan, timeline
from passes.aov import read_aov
from passes.frame_data import FrameData
from passes.frame_options import GBUFFERS, FrameOptions
from passes.frame_passes import hybrid_passes
from passes.frame_stats import FrameStats
from passes.frame_uniforms import FrameInputs, frame_inputs
from passes.frames_in_flight import FramesInFlight
from passes.gpu_scene import GpuScene
from passes.hit_table import HitTable, read_hit_table
from passes.light_history import OTHER_FRAMES
from passes.moving import MovingScene
from passes.outputs import Output, frame_outputs
from passes.prepare import PreparedScene
from passes.probe_place import ProbePlace
from passes.ray_spread import RaySpread, read_ray_spreads
from passes.read_back import Traffic, collect_stats
from passes.twins.frame import run_cpu
from passes.update_records import UpdateRecord, update_records

REMEMBERED = 8  # frames that `HybridFrame.remember` draws, at most


class HybridFrame:
    """One picture size of one scene on one device. `run` draws a frame and reads its numbers."""

    _in_flight: FramesInFlight

    def __init__(
        self,
        device: Device,
        prepared: PreparedScene,
        options: FrameOptions,
        scene: GpuScene | None = None,
    ) -> None:
        if options.gbuffer not in GBUFFERS:
            raise UserError(f"unknown gbuffer '{options.gbuffer}', there are {', '.join(GBUFFERS)}")
        if not (0 < options.width and 0 < options.height):
            raise UserError(f"size {options.width}x{options.height} has no pixels")
        if options.gbuffer == "raster" and "primitive-index" not in device.features:
            raise UserError(
                f"{device.info.adapter} cannot number triangles in a raster pass (feature "
                "primitive-index): use the ray-traced G-buffer, --gbuffer rays"
            )
        if options.compaction == "subgroup" and "subgroup" not in device.features:
            raise UserError(
                f"{device.info.adapter} has no operations of subgroups (feature subgroup): use "
                "--compaction workgroup"
            )
        options = options.within(prepared.scene.ray_bits).sized(len(prepared.scene.lights))
        self.device = device
        self.options = options
        compiled = device.composer.compile_ms
        self.scene = scene or GpuScene(device, prepared)
        self.data = FrameData(device, self.scene, options)
        self.passes = hybrid_passes(device, self.scene, options, self.data.previous)
        self.compile_ms = device.composer.compile_ms - compiled
        self.inputs = frame_inputs(self.scene.prepared, options)
        self._probe_place = ProbePlace()
        self._overfull: FrameStats | None = None
        self._outputs: tuple[FrameOptions, tuple[Output, ...]] | None = None  # asked every frame
        self._read_before_ms = 0.0  # by what `_make_frame` has replaced
        self.made = 0  # how often its passes were bound to buffers, which are others then
        self.whole = False  # whether the buffers hold one frame, or will when the GPU is done
        self._make_frame()

    def _make_frame(self) -> None:
        self._frame = Frame(
            self.device,
            self.passes,
            self.data.resources,
            given=self.data.given,
            cleared=self.data.cleared,
        )
        if self.made:
            self._read_before_ms += self._in_flight.host_ms
        self._in_flight = FramesInFlight(self.data, self._frame)
        self.made += 1

    def run(
        self,
        frame_index: int = 0,
        sample_count: int = 1,
        inputs: FrameInputs | None = None,
    ) -> FrameStats:
        """Draws frame `frame_index` (it seeds the sampling) and reads its statistics.

        `sample_count` 1 starts a new picture; n adds to the running mean as its nth sample.
        A frame whose traversal stacks overflowed is drawn again with larger ones, if there are.
        One whose queues overflowed comes back invalid, and the next one has larger queues.
        """
        stats = self._run_once(frame_index, sample_count, inputs)
        # A bad sample that is in a mean already is only reported.
        while sample_count == 1 and self._can_grow_stack(stats):
            stats = self._run_once(frame_index, sample_count, inputs)
        return stats

    def submit(
        self,
        frame_index: int = 0,
        sample_count: int = 1,
        inputs: FrameInputs | None = None,
    ) -> bool:
        """As `run`, without waiting: `poll` has the statistics some frames later. False, and
        nothing is drawn, while three frames are on their way.

        What overflowed makes a frame invalid; the first one submitted after `poll` said so has
        more room. On CPU drivers, whose passes are timed by waiting, pass times are NaN."""
        if self._in_flight.full:
            return False
        before = self._begin(frame_index, sample_count, inputs)
        self._in_flight.submit(before, self.inputs)
        self.whole = True
        return True

    @property
    def read_back_ms(self) -> float:
        """The host's time so far for reading submitted frames' statistics back."""
        return self._read_before_ms + self._in_flight.host_ms

    def poll(self) -> FrameStats | None:
        """Statistics of the newest submitted frame that is done, once; never waits."""
        stats = self._in_flight.poll()
        return None if stats is None else self._note(stats, late=True)

    def steps(
        self,
        frame_index: int = 0,
        sample_count: int = 1,
        inputs: FrameInputs | None = None,
        budget_ms: float = 30.0,
    ) -> Iterator[FrameStats | None]:
        """As `submit`, for CPU drivers: each step draws and waits for about `budget_ms`, and yields
        None, the last one the statistics. It may be left at any step; the picture changes in the
        last."""
        before = self._begin(frame_index, sample_count, inputs)
        frame, inputs = self._frame, self.inputs
        steps = frame.steps(budget_ms)
        while True:
            try:
                next(steps)
            except StopIteration as ended:
                times = ended.value
                break
            yield None
            self.data.hold_pose(inputs)
        yield self._collect(times, before)

    def _begin(self, frame_index: int, sample_count: int, inputs: FrameInputs | None) -> Traffic:
        """Makes the room that the last frame lacked and writes the uniforms; the traffic so far."""
        dropped = self._overfull is not None
        again = dropped or not self.whole  # the last one gave no picture
        if self._overfull is not None:
            # Not before: the records of a frame stay readable until the next one.
            larger = self.options.with_larger_stack(STACK_SIZES)
            if self._overfull.stack_overflow and larger is not None:
                self.options = larger
                self.passes = hybrid_passes(
                    self.device, self.scene, self.options, self.data.previous
                )
            self.data.grow_queues(self._overfull)
            self._make_frame()
            self._overfull = None
        self.whole = False
        before = Traffic.so_far(self.device)
        inputs = inputs or self.inputs
        self.inputs = replace(
            inputs,
            frame_index=frame_index,
            sample_count=sample_count,
            kept_probe=self._probe_place.choose(inputs) if self.options.has_probe else None,
        )
        self.data.write_inputs(self.inputs, again=again, dropped=dropped)
        return before

    def _run_once(
        self, frame_index: int, sample_count: int, inputs: FrameInputs | None
    ) -> FrameStats:
        before = self._begin(frame_index, sample_count, inputs)
        return self._collect(self._frame.run(), before)

    def _collect(self, times: FrameTimes, before: Traffic) -> FrameStats:
        self.whole = True
        statistics, facts = self._in_flight.statistics, self._in_flight.facts
        numbers = statistics.read()
        traffic = Traffic.so_far(self.device).since(before)
        unbuilt = statistics.unbuilt(numbers)
        lost = self.data.history_lost
        stats = collect_stats(facts, numbers, times, traffic, self.inputs, unbuilt, lost)
        return self._note(stats)

    def _note(self, stats: FrameStats, *, late: bool = False) -> FrameStats:
        """Remembers what overflowed, for the next frame, and tells the policy of updates what was
        counted."""
        if self.moving and stats.counted and stats.valid:
            self.moving.note_visits(stats.objects, late)
        grows = stats.dropped > 0 or self._can_grow_stack(stats)
        self._overfull = stats if grows else None
        return stats

    def _can_grow_stack(self, stats: FrameStats) -> bool:
        return stats.stack_overflow and self.options.with_larger_stack(STACK_SIZES) is not None

    def render(self, samples: int = 1, first_index: int = 0) -> FrameStats:
        """`samples` frames into one picture; the last frame's statistics (invalid if any was).
        Where queues or stacks overflowed the picture begins again with larger ones."""
        for _ in (*STACK_SIZES, None):  # one more where ray types begin with stacks of their own
            all_stats = [
                self.run(first_index + sample, sample + 1) for sample in range(max(1, samples))
            ]
            if not any(stats.dropped or stats.stack_overflow for stats in all_stats):
                break
        return replace(all_stats[-1], valid=all(stats.valid for stats in all_stats))

    def forget(self) -> None:
        """The next frame runs every pass, also those whose results stand (`FrameStats.reused`)."""
        for kept in self.data.resources.values():
            if isinstance(kept, Kept):
                kept.begin()

    def remember(self) -> None:
        """Draws some frames of the view that `inputs` describe, if the frame remembers light: the
        next one has a past, as it would in a running program. No further sample of a picture has
        their random numbers."""
        for number in range(min(self.options.history, REMEMBERED)):
            self.run(OTHER_FRAMES + number)

    @property
    def history_losses(self) -> dict[str, int]:
        """Why frames so far remembered nothing -> how many of them; empty without history."""
        kept = self.data.light_history
        return dict(kept.losses) if kept else {}

    def image(self) -> Any:
        """uint8 [height, width, 3], sRGB, tone-mapped mean of the samples so far."""
        return self.data.read_picture()

    def radiance(self) -> Any:
        """float32 [height, width, 3], the linear mean of the samples so far, before exposure."""
        return self.data.read_radiance()

    def aov(self, name: str) -> Any:
        """One of depth (metres along the view axis, inf where nothing is), normal, roughness,
        metalness, base_color, material, object, primitive; of frames with motion that (2 numbers,
        pixels to the right and down since the picture before); of counted frames
        <count>/<ray type> and <count>/<sum of types>, a pixel's sum (of stack_max: maximum), the
        counts being passes.slot_counts.SLOT_COUNTS, the sums passes.rays.ray_sum's."""
        return read_aov(self.data, name)

    def outputs(self) -> tuple[Output, ...]:
        """Everything of this frame that can be looked at (passes/display.py shows it)."""
        if self._outputs is None or self._outputs[0] is not self.options:
            self._outputs = (self.options, frame_outputs(self.options))
        return self._outputs[1]

    def run_cpu(self, until: str | None = None) -> dict[str, Any]:
        """The last frame, as a first sample, by the stages' NumPy twins: every resource by name
        after the pass `until` (its name or what precedes a `/` in it; None: the last)."""
        inputs = replace(self.inputs, sample_count=1)
        self.data.hold_pose(inputs)
        return run_cpu(
            self.scene.prepared,
            self.options,
            inputs,
            until=until,
            arrays=self.data.read_arrays(),
        )

    @property
    def moving(self) -> MovingScene | None:
        """What the scene's update passes decided; None where nothing moves."""
        return self.scene.moving

    def updates(self, *, wait: bool = True) -> tuple[UpdateRecord, ...]:
        """What the frames so far did to each object that deforms (`passes.update_records`)."""
        return update_records(self.moving, wait=wait)

    def hit_table(self) -> HitTable:
        """What hits of the last frame were shaded by, in either grouping (`passes.hit_table`);
        waits."""
        return read_hit_table(self.data)

    def ray_spreads(self) -> dict[str, RaySpread]:
        """Ray type -> how the counts of the last frame are spread over its rays
        (`passes.ray_spread`); waits. ValueError where the frame does not count."""
        return read_ray_spreads(self.data, self.data.rays)

    def timeline(self) -> tuple[ClipSpan, ...]:
        """The clips that `FrameInputs.clip` may name; none where nothing moves."""
        return timeline(self.scene.prepared.scene)

    def bvh(self) -> SceneBvh:
        """The structure that the last frame traced, read back where it has moved; where another
        frame has posed the scene since, posed again."""
        self.data.hold_pose(self.inputs)
        return self.scene.bvh()

    def result_hash(self) -> str:
        """sha256 of what every ray of the last frame hit, in pixel order: equal for a timed and
        a counted frame of the same scene, size and seed."""
        return self.data.hash_results()


__all__ = ["FrameOptions", "HybridFrame"]
