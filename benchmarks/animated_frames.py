"""Does a scene that moves stay as fast and as small as it began?

`python -m benchmarks.animated_frames [--scene F] [--assets D] [--frames 1000] [--size WxH]`

One process draws `--frames` frames, time running on in equal steps, `--phases` of them to the
clip's end, so that every pose comes back again and again. Nothing is waited for: frames are
submitted three deep and their statistics polled, as the viewer does. After a warm-up of 50 frames:

* memory: the resident set and the device's buffers, textures and bind groups, sampled every ten
  frames; the slope of the resident set is Theil and Sen's, the median over all pairs of samples,
  which a single step (the allocator's) does not move;
* frame time at the same phase: neighbouring phases are put into bins, and in each bin the median of
  the last third of the frames is compared with that of the first;
* the host's time of a frame, from its pose to its submission and for taking its statistics up: by
  the wall clock, and as this thread's time on its core, where a CPU driver draws inside `submit`;
* GPU times by pass, from timestamps; what is left without the G-buffer, updates included.

The first pose is drawn before and after, and both have to hit the same. The command ends with exit
code 1 where a limit is passed; those of time hold on GPUs only, as a CPU driver's clock belongs to
other programs, too.
"""

import gc
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from benchmarks.record import make_context, put_out
from benchmarks.view_soak import device_objects, resident_mib
from bvh.build import BuildOptions
from engine.gpu.device import open_device
from engine.scene.pose import timeline
from passes.frame_options import FrameOptions
from passes.frame_stats import FrameStats
from passes.hybrid import HybridFrame
from treeline import structures
from treeline.report_context import plain
from treeline.scenes import load

F64 = NDArray[np.float64]

WARM_UP = 50  # frames
SAMPLE_EVERY = 10  # frames
BINS = 10
WAIT_S = 2e-4  # between looks at whether a frame has come back
GROWTH_LIMIT_MIB = 1.0  # of the resident set, in 1,000 frames
PHASE_LIMIT = 0.05
HOST_LIMIT_MS = 4.0


@dataclass(slots=True)
class Recorder:
    """Numbers of each frame; NaN for one whose statistics were passed over, as those of a newer one
    had arrived. Made whole at the start: what is measured must not grow by being measured."""

    total: F64  # [frames] GPU, ms
    passes: F64  # [frames, passes] ms
    wall: F64  # [frames] host, ms
    thread: F64  # [frames] host, ms of this thread's CPU time
    encode: F64  # [frames] host, ms of it to encode and submit
    resident: F64  # [samples] MiB
    objects: NDArray[np.int64]  # [samples, kinds]
    invalid: int = 0

    @classmethod
    def of(cls, frames: int, passes: int) -> "Recorder":
        samples = -(-frames // SAMPLE_EVERY)
        return cls(
            np.full(frames, np.nan),
            np.full((frames, passes), np.nan),
            np.zeros(frames),
            np.zeros(frames),
            np.full(frames, np.nan),
            np.zeros(samples),
            np.zeros((samples, len(device_objects())), np.int64),
        )

    def note(self, number: int, stats: FrameStats) -> None:
        self.total[number] = stats.frame_total_ms
        self.passes[number] = list(stats.passes.values())
        self.encode[number] = stats.cpu_ms
        self.invalid += not stats.valid

    def sample(self, number: int) -> None:
        self.resident[number // SAMPLE_EVERY] = resident_mib()
        self.objects[number // SAMPLE_EVERY] = list(device_objects().values())


def draw(frame: HybridFrame, clip: str, step: float, phases: int, recorder: Recorder) -> None:
    """All frames of the recorder, `step` seconds of the clip apart. The sampling's seed follows
    the phase, so that every frame of a phase sends the same rays."""
    frames = len(recorder.total)
    number, arrived = 0, -1
    while arrived < frames - 1:
        wall, thread = time.perf_counter(), time.thread_time()
        drawn = number < frames and frame.submit(
            number % phases, inputs=replace(frame.inputs, clip=clip, time=number * step)
        )
        stats = frame.poll()
        if not drawn and stats is None:
            time.sleep(WAIT_S)  # what looking took is no part of a frame
            continue
        at = min(number, frames - 1)
        recorder.wall[at] += 1e3 * (time.perf_counter() - wall)
        recorder.thread[at] += 1e3 * (time.thread_time() - thread)
        if stats is not None and stats.inputs is not None:
            arrived = round(stats.inputs.time / step)
            recorder.note(arrived, stats)
        if drawn:
            if number % SAMPLE_EVERY == 0:
                recorder.sample(number)
            number += 1


def slope(values: F64) -> float:
    """Theil and Sen's, a step from one value to the next."""
    first, second = np.triu_indices(len(values), 1)
    if not len(first):
        return 0.0
    return float(np.median((values[second] - values[first]) / (second - first)))


def phase_ratios(total: F64, phases: int) -> list[dict[str, float]]:
    """Of each bin of phases: the median of the frames' first third and of the last, and their
    ratio; bins without a time in both are left out."""
    numbers = np.arange(len(total))
    bins = numbers % phases * min(BINS, phases) // phases
    third = len(total) // 3
    rows = []
    for number in range(min(BINS, phases)):
        timed = (bins == number) & np.isfinite(total)
        early, late = (
            total[timed & (numbers < third)],
            total[timed & (numbers >= len(total) - third)],
        )
        if len(early) and len(late):
            first, last = float(np.median(early)), float(np.median(late))
            rows.append({"bin": number, "early_ms": first, "late_ms": last, "ratio": last / first})
    return rows


def percentiles(values: F64) -> dict[str, float] | None:
    """Of what is finite; None where nothing is."""
    values = values[np.isfinite(values)]
    if not len(values):
        return None
    p50, p95 = np.percentile(values, (50, 95)).tolist()
    return {"median": p50, "p95": p95, "most": float(values.max())}


def summary(recorder: Recorder, names: Sequence[str], phases: int) -> dict[str, Any]:
    """What the record says of the frames after the warm-up, and `faults`."""
    warm = -(-WARM_UP // SAMPLE_EVERY)
    resident = recorder.resident[warm:]
    growth = slope(resident) * 1000 / SAMPLE_EVERY
    objects = dict(zip(device_objects(), recorder.objects[warm:].T.tolist(), strict=True))
    total, passes = recorder.total[WARM_UP:], recorder.passes[WARM_UP:]
    visible = [i for i, name in enumerate(names) if name.startswith("gbuffer/")]
    drawn = passes[:, visible].sum(axis=1)
    return {
        "resident_mib_per_1000_frames": growth,
        "resident_mib": {"first": resident[0], "last": resident[-1], "most": resident.max()},
        "device_objects": {
            name: {"first": row[0], "last": row[-1], "most": max(row)}
            for name, row in objects.items()
        },
        "invalid_frames": recorder.invalid,
        "host_wall_ms": percentiles(recorder.wall[WARM_UP:]),
        "host_thread_ms": percentiles(recorder.thread[WARM_UP:]),
        "host_encode_ms": percentiles(recorder.encode[WARM_UP:]),
        "frame_ms": percentiles(total),
        "gbuffer_ms": percentiles(drawn),
        "without_gbuffer_ms": percentiles(total - drawn),
        "pass_ms": {name: percentiles(passes[:, i]) for i, name in enumerate(names)},
        "phases": phase_ratios(total, phases),
        "resident_mib_samples": recorder.resident.tolist(),
    }


def faults(found: dict[str, Any], on_cpu: bool) -> list[str]:
    """One line a limit that was passed."""
    lines = []
    if found["resident_mib_per_1000_frames"] >= GROWTH_LIMIT_MIB:
        lines.append(f"memory grows by {found['resident_mib_per_1000_frames']:.2f} MiB")
    for name, row in found["device_objects"].items():
        if row["last"] > row["first"]:
            lines.append(f"{name.replace('_', ' ')} grew from {row['first']} to {row['last']}")
    if found["invalid_frames"]:
        lines.append(f"{found['invalid_frames']} frames were not whole")
    if not found["same_hits"]:
        lines.append("the first pose hits something else than at first")
    if not on_cpu:
        worst = max((abs(row["ratio"] - 1) for row in found["phases"]), default=0.0)
        if worst > PHASE_LIMIT:
            lines.append(f"frames of one phase differ by {100 * worst:.1f}%")
        if found["host_wall_ms"]["p95"] >= HOST_LIMIT_MS:
            lines.append(f"the host takes {found['host_wall_ms']['p95']:.2f} ms of a frame (p95)")
    return lines


def main(
    scene: Annotated[Path | None, typer.Option(help="Default: the embedded hall")] = None,
    assets: Annotated[list[str] | None, typer.Option(help="where a .toml's files are")] = None,
    frames: Annotated[int, typer.Option(min=WARM_UP + 3 * SAMPLE_EVERY)] = 1000,
    size: Annotated[str, typer.Option(metavar="WxH")] = "1920x1080",
    phases: Annotated[int, typer.Option(min=1, help="frames to the clip's end")] = 50,
    gbuffer: Annotated[str, typer.Option(help="raster or rays")] = "raster",
    update: Annotated[str, typer.Option(help="refit, rebuild or policy")] = "refit",
    any_hit_mode: Annotated[str, typer.Option(help="inline or queue")] = "inline",
    adapter: Annotated[str | None, typer.Option(help="index or part of the name")] = None,
    out: Annotated[Path | None, typer.Option(help="record to write")] = None,
) -> None:
    """Prints what was found and writes the record."""
    width, height = (int(side) for side in size.split("x"))
    device = open_device(adapter)
    loaded = load(scene, assets or ())
    clips = timeline(loaded)
    if not clips:
        raise SystemExit(f"nothing moves in {loaded.name}")
    clip, step = clips[0].name, clips[0].duration / phases
    options = BuildOptions()
    prepared = structures.build(loaded, options, "static", device=device, or_cpu=True).prepared
    settings = FrameOptions(
        width, height, gbuffer=gbuffer, update=update, any_hit_mode=any_hit_mode
    )
    frame = HybridFrame(device, prepared, settings)

    def first_pose() -> str:
        frame.run(0, inputs=replace(frame.inputs, clip=clip, time=0.0))
        return frame.result_hash()

    first_pose()  # whose queues grow to what it needs
    before = first_pose()
    gc.collect()
    recorder = Recorder.of(frames, len(frame.passes))
    made = device.pipelines.made
    began = time.monotonic()
    draw(frame, clip, step, phases, recorder)
    seconds = time.monotonic() - began
    names = [item.name for item in frame.passes]
    found = summary(recorder, names, phases) | {
        "pipelines_made": device.pipelines.made - made,
        "same_hits": first_pose() == before or update != "refit",
    }
    lines = faults(found, device.info.is_cpu)
    record = {
        "context": make_context(device),
        "scene": "hall" if scene is None else scene.name,
        "scene_sha256": loaded.sha256,
        "triangles": loaded.triangle_count,
        "instances": len(prepared.bvh.instances),
        "size": [width, height],
        "gbuffer": gbuffer,
        "update": update,
        "any_hit_mode": any_hit_mode,
        "clip": clip,
        "step_s": step,
        "phases_to_the_end": phases,
        "frames": frames,
        "warm_up": WARM_UP,
        "seconds": seconds,
        **found,
        "faults": lines,
    }
    put_out(plain(record), out)
    host = found["host_wall_ms" if not device.info.is_cpu else "host_thread_ms"]
    print(f"{found['resident_mib_per_1000_frames']:+.2f} MiB in 1,000 frames")
    print(f"host {host['median']:.2f} ms, p95 {host['p95']:.2f} ms")
    if found["frame_ms"]:
        parts = (found[name]["median"] for name in ("frame_ms", "gbuffer_ms", "without_gbuffer_ms"))
        print("frame {:.2f} ms, its G-buffer {:.2f} ms, the rest {:.2f} ms".format(*parts))
    print("; ".join(lines) or "no growth, no slow-down")
    raise SystemExit(1 if lines else 0)


if __name__ == "__main__":
    typer.run(main)
