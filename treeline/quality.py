"""What a millisecond buys: variants of one frame (treeline/quality_variants.py), each with its
time, its rays and its error against one reference.

Variants take turns while they are timed, a few at once, so that what the machine does meanwhile
meets all of those; a time is the median of a frame's, and of a picture of n samples n times that.
Rays and nodes are counted in frames of their own. Errors are means over pictures with different
seeds (treeline/frame_error.py). A moving camera ends where the still one stands, so that one
reference, made at that camera and that moment, holds for all.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.scene.camera import Camera
from passes.frame_options import FrameOptions
from passes.frame_uniforms import FrameInputs
from passes.hybrid import HybridFrame
from treeline.frame_error import HISTORY_FRAMES, FrameError, draw_pictures, error_fields
from treeline.image_error import F32
from treeline.measure import Progress
from treeline.picture_comparer import PictureComparer
from treeline.quality_variants import Variant
from treeline.report_reuse import REUSED, kept_facts
from treeline.time_limit import TimeLimit
from treeline.whole_frame import draw_whole

FRAME_SECONDS = 1 / 30  # between frames of a moving camera
STEP = 0.04  # metres that it walks in one, and what it turns:
TURN = np.radians(0.5)
AT_ONCE = 8  # frames that take turns: each has buffers of its own, hundreds of bytes a pixel

MakeFrame = Callable[[FrameOptions], HybridFrame]
Counts = tuple[dict[str, int], dict[str, int]]  # rays and nodes by ray type
PictureKey = tuple[FrameOptions, int, bool]  # what decides a picture, see `_key`


@dataclass(frozen=True, slots=True)
class Quality:
    """One variant: ms of a picture in each turn, counted rays and nodes by ray type, its error. Of
    one whose frames reuse passes (`FrameStats.reused`) `reused` says so, see `kept_facts`."""

    variant: Variant
    ms: NDArray[np.float64]
    rays: dict[str, int]
    nodes: dict[str, int]
    error: FrameError
    reused: dict[str, Any] = field(default_factory=dict)

    @property
    def median_ms(self) -> float:
        return float(np.median(self.ms))

    def row(self) -> dict[str, Any]:
        """Of a record, JSON types."""
        low, high = np.percentile(self.ms, (5, 95))
        return {
            "curve": self.variant.curve,
            "name": self.variant.name,
            "changes": dict(self.variant.changes),
            "samples": self.variant.samples,
            "moving": self.variant.moving,
            "ms": {"median": self.median_ms, "p5": float(low), "p95": float(high)},
            "rays": self.rays,
            "nodes": self.nodes,
            "pictures": len(self.error.errors),
            **({REUSED: self.reused} if self.reused else {}),
            **error_fields(self.error),
        }


Keep = Callable[[list[Quality]], None]


def measure_quality(
    make_frame: MakeFrame,
    base: FrameOptions,
    reference: F32,
    variants: Sequence[Variant],
    progress: Progress,
    *,
    pictures: int,
    turns: int,
    warmup_ms: float = 0.0,
    limit: TimeLimit | None = None,
    keep: Keep = lambda found: None,
) -> list[Quality]:
    """Each of `variants` of `base` that there was time for, in order. `make_frame` gives frames
    their view and pose; `warmup_ms` is what frames that take turns are drawn for, at least, before
    any is timed. Variants are measured AT_ONCE together, and `keep` is given what is known after
    each such group; the first one is always measured. CheckFailed where a frame was not whole."""
    limit = limit or TimeLimit()
    by_options: dict[FrameOptions, list[Variant]] = {}
    for variant in variants:
        by_options.setdefault(variant.options(base), []).append(variant)
    every = list(by_options)
    done: dict[Variant, Quality] = {}
    longest = 0.0
    with PictureComparer(reference) as comparer:
        for start in range(0, len(every), AT_ONCE):
            if done and limit.left() < longest:
                break
            begun = limit.clock()
            group = {options: by_options[options] for options in every[start : start + AT_ONCE]}
            counts, errors = _look(make_frame, group, comparer, pictures, progress)
            times, redrawn = _take_turns(make_frame, list(group), turns, warmup_ms, progress)
            for options, its_variants in group.items():
                for variant in its_variants:
                    n = variant.samples
                    rays, nodes = ({k: n * c for k, c in of.items()} for of in counts[options])
                    ms = n * np.array(times[options])
                    error, kept = errors[_key(variant, options)], {}
                    if options in redrawn:
                        passes, once = redrawn[options]
                        steady = float(np.median(ms))
                        kept = kept_facts(passes, steady, steady + once - steady / n)
                    done[variant] = Quality(variant, ms, rays, nodes, error, kept)
            longest = max(longest, limit.clock() - begun)
            keep(_in_order(variants, done))
    return _in_order(variants, done)


def _look(
    make_frame: MakeFrame,
    group: Mapping[FrameOptions, Sequence[Variant]],
    comparer: PictureComparer,
    pictures: int,
    progress: Progress,
) -> tuple[dict[FrameOptions, Counts], dict[PictureKey, FrameError]]:
    """What frames count and how far they are off. All comparisons have ended, so that none of them
    runs beside frames that are timed."""
    counts: dict[FrameOptions, Counts] = {}
    begun: dict[PictureKey, Callable[[], FrameError]] = {}
    progress.begin("counting and drawing", sum(map(len, group.values())))
    for options, variants in group.items():
        counts[options] = _count(make_frame(replace(options, count=True)))
        for variant in variants:
            key = _key(variant, options)
            if key not in begun:  # several curves pass through the base
                begun[key] = comparer.begin(_draw(make_frame, options, variant, pictures))
            progress.advance(variant.name)
    progress.begin("comparing", len(begun))
    errors = {}
    for key, result in begun.items():
        errors[key] = result()
        progress.advance()
    return counts, errors


def _in_order(variants: Sequence[Variant], done: Mapping[Variant, Quality]) -> list[Quality]:
    return [done[variant] for variant in variants if variant in done]


def _key(variant: Variant, options: FrameOptions) -> PictureKey:
    """What decides a picture."""
    return options, variant.samples, variant.moving


def _count(frame: HybridFrame) -> Counts:
    """Rays and nodes of one frame, by ray type."""
    stats = draw_whole(frame, name="a counted frame")
    rays = {name: counted.rays for name, counted in stats.rays.items()}
    return rays, {name: counted.nodes or 0 for name, counted in stats.rays.items()}


def _draw(
    make_frame: MakeFrame, options: FrameOptions, variant: Variant, pictures: int
) -> Iterator[tuple[F32, float]]:
    """Pictures of a variant, each with its exposure."""

    def made() -> HybridFrame:
        return make_frame(options)

    inputs = approach(made().inputs) if variant.moving else ()
    return draw_pictures(made, pictures, samples=variant.samples, inputs=inputs)


def first_picture(make_frame: MakeFrame, base: FrameOptions, variant: Variant) -> F32:
    """The first of the pictures of which `measure_quality` says how far they are off."""
    picture, _ = next(_draw(make_frame, variant.options(base), variant, 1))
    return picture


def approach(last: FrameInputs, frames: int = HISTORY_FRAMES) -> list[FrameInputs]:
    """So many frames of a camera that walks forward and turns until it is that of `last`, while the
    scene's clip runs until its time."""
    found = []
    for back in reversed(range(frames)):
        seconds = last.time
        if last.clip is not None:
            seconds = max(0.0, seconds - back * FRAME_SECONDS)
        camera = _camera_before(last.camera, back)
        found.append(replace(last, camera=camera, camera_moves=True, time=seconds))
    return found


def _camera_before(camera: Camera, frames: int) -> Camera:
    """Where the walking camera was so many frames ago."""
    if not frames:
        return camera
    angle, transform = frames * TURN, np.array(camera.transform, np.float64)
    turn = np.array(
        [[np.cos(angle), 0, np.sin(angle)], [0, 1, 0], [-np.sin(angle), 0, np.cos(angle)]]
    )
    transform[:3, 3] -= frames * STEP * camera.forward
    transform[:3, :3] = turn @ transform[:3, :3]
    return replace(camera, transform=transform)


def _take_turns(
    make_frame: MakeFrame,
    group: Sequence[FrameOptions],
    turns: int,
    warmup_ms: float,
    progress: Progress,
) -> tuple[dict[FrameOptions, list[float]], dict[FrameOptions, tuple[int, float]]]:
    """ms of `turns` frames of each, one after the other, forwards and backwards; of those that
    reuse passes how many, and ms of a frame that runs them."""
    progress.begin("timing", (turns + 1) * len(group))
    times: dict[FrameOptions, list[float]] = {options: [] for options in group}
    reused: dict[FrameOptions, int] = {}
    frames = {options: make_frame(options) for options in group}
    begun = time.perf_counter()
    while 1e3 * (time.perf_counter() - begun) < warmup_ms:
        for frame in frames.values():
            frame.run(0)
    for turn in range(turns + 1):  # the first one warms up
        for options, frame in list(frames.items())[:: 1 if turn % 2 else -1]:
            stats = draw_whole(frame, turn, name="a timed frame")
            if turn:
                times[options].append(stats.frame_total_ms)
            if turn == turns and stats.reused:
                reused[options] = len(stats.reused)
            progress.advance(f"{stats.frame_total_ms:.1f} ms")
    redrawn = {}
    for options, passes in reused.items():
        frames[options].forget()
        redrawn[options] = passes, frames[options].run(turns).frame_total_ms
    return times, redrawn


def pareto(points: Sequence[tuple[float, float]]) -> list[int]:
    """Which (ms, error) no other beats in both, from the cheapest on."""
    front: list[int] = []
    for index in sorted(range(len(points)), key=lambda i: points[i]):
        if not front or points[index][1] < points[front[-1]][1]:
            front.append(index)
    return front
