"""Does the viewer stay as fast and as small as it began?

`python -m benchmarks.view_soak [--scene F] [--minutes 30] [--switches 500] [--warm-switches 200]
[--warm-minutes 15] [--seed 0] [--out F]`

An offscreen viewer is driven by a seeded script for `--minutes` and at least `--switches` changes:
the mouse orbits without rest; options, outputs, panels, picks, pins, box levels and sizes change at
random. `--warm-switches` before that, each until it is drawn and for `--warm-minutes` at most, fill
what is kept by design up to its bounds: pipelines, two structures, the driver's caches. Before and
after all of it, the same reference frames are drawn: same settings, same camera. At every tenth of
the switches everything goes back to the reference and what malloc keeps of freed blocks to the
system; then the resident set is taken (what other settings hold, larger structures or a baseline's,
is no growth), beside what it was before, what malloc has given out, the device's buffers,
textures and bind groups and the pipelines made so far. The resident set, live pipelines and the
panels' time are also sampled once a second. The command ends with exit code 1 where the resident
set at the reference grows by more than its limit, pipelines exceed theirs, or the reference frames
have become slower by more than 5% (on a CPU adapter, whose clock belongs to other programs too,
this is reported and does not count).
"""

import ctypes
import gc
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Annotated, Any
from xml.etree import ElementTree

import numpy as np
import typer

from benchmarks.record import make_context, put_out
from engine.gpu.device import open_device
from engine.gpu.host_memory import give_back_free_blocks
from engine.gpu.pipelines import LIVE_PIPELINES
from engine.view import marks
from engine.view.window import Window
from passes.frame_options import FrameOptions
from passes.option_list import OPTIONS, ViewSettings
from treeline.scenes import load
from treeline.view.app import Viewer
from treeline.view.session import ViewSession
from treeline.view.start import StartOptions, make_viewer

REFERENCE_FRAMES = 50
SLOWER_LIMIT = 1.05
GROWTH_LIMIT_MIB = 64.0  # of the resident set at the reference
CHECKPOINTS = 10
SWITCH_EVERY_S = 0.4  # at most, while there is time; fewer seconds than that end early
WARM_EVERY_S = 0.05  # in the warm-up, after a switch was drawn
WARM_PATIENCE_S = 30.0  # for a switch of the warm-up
PATIENCE_S = 300.0  # for the reference to be drawn
PAGE = os.sysconf("SC_PAGE_SIZE")


def resident_mib() -> float:
    """The process's resident set."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE / 2**20


def allocated_mib() -> float:
    """What glibc's malloc has given out and not got back, in all arenas; NaN elsewhere. The
    resident set less this is what allocators and drivers keep for later."""
    libc = ctypes.CDLL(None)
    if not hasattr(libc, "malloc_info"):
        return float("nan")
    with tempfile.TemporaryFile() as file:
        libc.fdopen.restype = ctypes.c_void_p
        libc.malloc_info.argtypes = [ctypes.c_int, ctypes.c_void_p]
        libc.fclose.argtypes = [ctypes.c_void_p]
        stream = libc.fdopen(os.dup(file.fileno()), b"w")
        libc.malloc_info(0, stream)
        libc.fclose(stream)
        file.seek(0)
        heaps = ElementTree.parse(file).getroot()
    sizes = {
        (row.tag, row.get("type")): int(row.get("size", 0))
        for row in heaps
        if row.tag in ("total", "system")
    }
    free = sizes["total", "fast"] + sizes["total", "rest"]
    return (sizes["system", "current"] - free + sizes["total", "mmap"]) / 2**20


def device_objects() -> dict[str, float]:
    """How many buffers, textures and bind groups are alive on the device, whose memory need not be
    in the resident set, and how large the buffers are."""
    import wgpu  # not before a device has been opened: see engine/gpu/device.py

    counts = wgpu.diagnostics.object_counts.get_dict()
    names = {"buffers": "Buffer", "textures": "Texture", "bind_groups": "BindGroup"}
    alive: dict[str, float] = {name: int(counts[kind]["count"]) for name, kind in names.items()}
    sizes = [item.size for item in gc.get_objects() if isinstance(item, wgpu.GPUBuffer)]
    return {**alive, "buffer_mib": sum(sizes) / 2**20}


class Script:
    """Everything at random that a hand could do, from one seed."""

    def __init__(self, viewer: Viewer, rng: np.random.Generator) -> None:
        self.viewer = viewer
        self.rng = rng
        self.switches = 0
        self.rejected = 0  # settings that a scene cannot have, said in the window
        self._angle = 0.0

    def orbit(self) -> None:
        """One move of a mouse that drags round a circle in the picture."""
        left, top, right, bottom = marks.rectangles.get("picture", (0.0, 0.0, 100.0, 100.0))
        window = self.viewer.window
        x, y = 0.5 * (left + right), 0.5 * (top + bottom)
        if self._angle == 0.0:
            window.send("pointer_down", x=x, y=y, button=1, buttons=(1,))
        self._angle += 0.07
        reach = 0.3 * min(right - left, bottom - top)
        window.send(
            "pointer_move",
            x=x + reach * np.sin(self._angle),
            y=y + 0.3 * reach * np.sin(0.37 * self._angle),
            button=0,
            buttons=(1,),
        )

    def let_go(self) -> None:
        if self._angle:
            self.viewer.window.send("pointer_up", x=0.0, y=0.0, button=1)
        self._angle = 0.0

    def switch(self) -> None:
        """One change: half of them options of the frame or the build."""
        self.switches += 1
        self.let_go()
        if self.rng.random() < 0.5:
            self._switch_option()
            return
        viewer, state = self.viewer, self.viewer.state
        kind = int(self.rng.integers(6))
        if kind == 0:
            names = [output.name for output in viewer.outputs]
            viewer.act(f"show {names[self.rng.integers(len(names))]}")
        elif kind == 1:
            titles = [panel.title for panel in viewer.panels]
            viewer.act(f"panel {titles[self.rng.integers(len(titles))]}")
        elif kind == 2 and viewer.session.frame is not None:
            width, height = viewer.session.size
            viewer.pick_soon(int(self.rng.integers(width)), int(self.rng.integers(height)))
        elif kind == 3:
            viewer.act(str(self.rng.choice(["pin", "swap", "difference", "counters", "unpick"])))
        elif kind == 4:
            state.boxes.shown = bool(self.rng.integers(2))
            state.boxes.high = int(self.rng.integers(9))
        else:
            wide = int(self.rng.integers(600, 1300))
            viewer.window.resize(wide, 9 * wide // 16)

    def _switch_option(self) -> None:
        session = self.viewer.session
        option = OPTIONS[self.rng.integers(len(OPTIONS))]
        if option.kind == "flag":
            value: Any = bool(self.rng.integers(2))
        elif option.kind == "choice":
            value = option.choices[self.rng.integers(len(option.choices))]
        elif option.kind == "bits":
            value = int(self.rng.integers(256))
        else:
            steps = round((option.high - option.low) / option.step)
            value = option.low + option.step * int(self.rng.integers(steps + 1))
            value = int(value) if float(option.step).is_integer() else float(value)
        session.change(option.set(session.settings, value))


def go_back(viewer: Viewer, settings: ViewSettings, size: tuple[int, int]) -> None:
    """The reference: its settings, the scene's camera, nothing picked or pinned; until drawn."""
    session = viewer.session
    viewer.window.resize(*size)
    viewer.act("reset")
    viewer.act("show picture")
    viewer.state.difference = False
    session.unpin()
    viewer.picture.forget_planes()
    session.change(settings)
    deadline = time.monotonic() + PATIENCE_S
    while not session.ready:
        viewer.window.draw_once(viewer.draw, viewer.between)
        viewer.work()
        if session.error is not None:
            raise SystemExit(f"the reference failed: {session.error.message}")
        if time.monotonic() > deadline:
            raise SystemExit("the reference was not drawn in time")


def reference_times(viewer: Viewer, settings: ViewSettings, size: tuple[int, int]) -> list[float]:
    """Times of REFERENCE_FRAMES frames at the reference settings and the scene's camera, ms."""
    session = viewer.session
    go_back(viewer, settings, size)
    times: list[float] = []
    last = None
    deadline = time.monotonic() + PATIENCE_S
    while len(times) < REFERENCE_FRAMES:
        viewer.window.draw_once(viewer.draw, viewer.between)
        viewer.work()
        if session.error is not None:
            raise SystemExit(f"the reference frames failed: {session.error.message}")
        if session.ready and session.timed is not last and session.timed is not None:
            last = session.timed
            times.append(last.frame_total_ms)
        if session.idle:
            # A CPU driver stops once the picture is smooth: the same view again.
            session.change(settings)
            viewer.act("scene camera")
        if time.monotonic() > deadline:
            break
    return times


def sample(viewer: Viewer, started: float, script: Script) -> dict[str, float]:
    device = viewer.session.device
    return {
        "seconds": time.monotonic() - started,
        "switches": script.switches,
        "resident_mib": resident_mib(),
        "allocated_mib": allocated_mib(),
        "pipelines": device.pipelines.live,
        "stack_pipelines": device.pipelines.live_stacks,
        "pipelines_made": device.pipelines.made,
        **device_objects(),
        "panel_ms": viewer.window.mean_panel_ms,
    }


def at_reference(
    viewer: Viewer, settings: ViewSettings, size: tuple[int, int], started: float, script: Script
) -> dict[str, float]:
    """A checkpoint, printed as it comes: a soak takes long."""
    go_back(viewer, settings, size)
    gc.collect()
    before = resident_mib()
    give_back_free_blocks()
    row = {**sample(viewer, started, script), "resident_mib_before_giving_back": before}
    print("  ".join(f"{name} {value:.0f}" for name, value in row.items()), file=sys.stderr)
    return row


def summary(samples: list[dict[str, float]]) -> dict[str, float]:
    """The most of the run, and the second fifth of it (after the warm-up) beside the last."""
    fifth = max(1, len(samples) // 5)

    def middle(rows: list[dict[str, float]], field: str) -> float:
        return float(np.median([row[field] for row in rows]))

    early, late = samples[fifth : 2 * fifth] or samples, samples[-fifth:]
    return {
        "most_resident_mib": max(row["resident_mib"] for row in samples),
        "most_pipelines": max(row["pipelines"] for row in samples),
        "most_stack_pipelines": max(row["stack_pipelines"] for row in samples),
        "panel_ms_early": middle(early, "panel_ms"),
        "panel_ms_late": middle(late, "panel_ms"),
    }


def main(
    scene: Annotated[Path | None, typer.Option(help="Default: the embedded hall")] = None,
    minutes: Annotated[float, typer.Option(min=0.0)] = 30.0,
    switches: Annotated[int, typer.Option(min=0)] = 500,
    warm_switches: Annotated[int, typer.Option(min=0)] = 200,
    warm_minutes: Annotated[float, typer.Option(min=0.0)] = 15.0,
    size: Annotated[str, typer.Option(metavar="WxH")] = "960x540",
    seed: Annotated[int, typer.Option()] = 0,
    adapter: Annotated[str | None, typer.Option(help="index or part of the name")] = None,
    out: Annotated[Path | None, typer.Option(help="record to write")] = None,
) -> None:
    """Prints the summary and writes the record."""
    width, height = (int(side) for side in size.split("x"))
    device = open_device(adapter)
    loaded = load(scene)
    settings = ViewSettings(frame=FrameOptions(0, 0, count=True))
    window = Window(device, (width, height), "soak", offscreen=True)
    name = "hall" if scene is None else scene.name
    session = ViewSession(device, loaded, name, settings, (width, height))
    start = StartOptions(window_size=(width, height), offscreen=True, frames=1)
    viewer = make_viewer(window, session, start)
    rng = np.random.default_rng(seed)
    script = Script(viewer, rng)
    before = reference_times(viewer, settings, (width, height))
    samples: list[dict[str, float]] = []
    latencies: list[float] = []
    errors: dict[str, int] = {}
    checkpoints: list[dict[str, float]] = []
    script.switches = -warm_switches
    started = begun = time.monotonic()
    next_switch = next_sample = started
    while time.monotonic() - started < 60 * minutes or script.switches < switches:
        if script.switches < 0:
            started = time.monotonic()
        now = time.monotonic()
        if script.switches < 0 and now - begun > 60 * warm_minutes:
            warm_switches += script.switches
            script.switches = 0
        if script.switches >= len(checkpoints) * switches / CHECKPOINTS:  # not while warming up
            script.let_go()
            checkpoints.append(at_reference(viewer, settings, (width, height), started, script))
        warming = script.switches < 0
        if warming and not session.ready and now < next_switch + WARM_PATIENCE_S:
            script.let_go()  # what was switched to is made, and drawn once
        elif now >= next_switch:
            script.switch()
            left = max(60 * minutes - (now - started), 0.0)
            pause = left / max(switches - script.switches, 1)
            least = 0.0 if left == 0 else SWITCH_EVERY_S / 8
            next_switch = now + (WARM_EVERY_S if warming else max(pause, least))
        else:
            script.orbit()
        window.draw_once(viewer.draw, viewer.between)
        viewer.work()
        latencies += [window.latency_ms.pop() for _ in range(len(window.latency_ms))]
        if session.error is not None:
            # Some settings cannot be met, and say so; the next ones are tried from there.
            errors[session.error.message] = errors.get(session.error.message, 0) + 1
            if session.error.kind in ("device", "fault"):
                raise SystemExit(f"after {script.switches} switches: {session.error.message}")
            session.change(settings)
        if now >= next_sample and script.switches >= 0:
            samples.append(sample(viewer, started, script))
            next_sample = now + 1.0
    script.let_go()
    checkpoints.append(at_reference(viewer, settings, (width, height), started, script))
    after = reference_times(viewer, settings, (width, height))
    slower = float(np.median(after) / np.median(before))
    measured = summary(samples)
    resident = [row["resident_mib"] for row in checkpoints]
    growth = float(np.median(resident[-3:]) - np.median(resident[:3]))
    result = {
        "context": make_context(device),
        "scene": name,
        "scene_sha256": loaded.sha256,
        "seed": seed,
        "warm_switches": warm_switches,
        "minutes": (time.monotonic() - started) / 60,
        "switches": script.switches,
        "refused": errors,
        "resident_growth_mib": growth,
        "resident_mib_at_reference": resident,
        "at_reference": checkpoints,
        **measured,
        "live_pipelines_limit": LIVE_PIPELINES,
        "kept_pipelines": device.pipelines.limit,
        "reference_ms_before": percentiles(before),
        "reference_ms_after": percentiles(after),
        "reference_ratio": slower,
        "input_to_present_ms": percentiles(latencies),
        "samples": samples[:: max(1, len(samples) // 200)],
    }
    session.close()
    window.close()
    put_out(result, out)
    faults = []
    if growth > GROWTH_LIMIT_MIB:
        faults.append(f"memory grew by {growth:.0f} MiB")
    if measured["most_pipelines"] > LIVE_PIPELINES:
        faults.append(f"{measured['most_pipelines']:.0f} live pipelines")
    if slower > SLOWER_LIMIT and not device.info.is_cpu:
        faults.append(f"reference frames take {slower:.2f} of what they took")
    print("; ".join(faults) or "no growth, no slow-down")
    raise SystemExit(1 if faults else 0)


def percentiles(values: list[float]) -> dict[str, float]:
    """Of a list in ms; empty ones give none."""
    if not values:
        return {}
    p5, p50, p95 = np.percentile(values, (5, 50, 95)).tolist()
    return {"count": len(values), "p5": p5, "median": p50, "p95": p95}


if __name__ == "__main__":
    typer.run(main)
