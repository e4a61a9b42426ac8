"""A report's timed frames as a Chrome trace, which ui.perfetto.dev and chrome://tracing open.

Format: "Trace Event Format" (Google), JSON object form: complete events (X) in microseconds,
counters (C), names of processes and threads (M). The adapter's passes are one process, the host's
phases another. Their clocks are not the same: a frame's passes are laid so that the last one ends
when the host had read the frame back, so that distances within a frame are measured and those
between the two processes are not.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from treeline.measure import SizeRun
from treeline.phase_log import Phase

Event = dict[str, Any]
HOST, ADAPTER = 1, 2  # pid
PHASES, ENCODING = 1, 2  # tid of the host
FRAMES, PASSES = 1, 2  # tid of the adapter; passes that overlap are on further ones
# Counters of the counted run that are worth a track, by FrameStats' names of a ray type.
COUNTED = ("nodes", "triangle_tests", "any_hits")


def chrome_trace(
    run: SizeRun, phases: Sequence[Phase], context: Mapping[str, Any]
) -> dict[str, Any]:
    """The trace of `run`, whose phase is the one named after its size, in JSON's types. Frames
    whose passes have no times are left out."""
    timing = find_phase(phases, f"timing {run.width}x{run.height}")
    ends = timing.advances_s[-len(run.frames) :]
    events = [*_names(context), *_host_events(phases)]
    lanes: list[float] = []
    for index, (frame, end_s) in enumerate(zip(run.frames, ends, strict=True)):
        events += _frame_events(index, frame, end_s, lanes)
    events += [
        _name("thread_name", ADAPTER, PASSES + lane, "passes" if not lane else "passes beside them")
        for lane in range(len(lanes))
    ]
    if run.counted is not None:
        counting = find_phase(phases, f"counting {run.width}x{run.height}")
        events += _counted_events(run.counted, counting.begin_s)
    return {
        "displayTimeUnit": "ms",
        "otherData": {key: str(value) for key, value in context.items()},
        "traceEvents": events,
    }


def find_phase(phases: Sequence[Phase], name: str) -> Phase:
    for phase in phases:
        if phase.name == name:
            return phase
    raise ValueError(f"no phase is named '{name}'")


def _names(context: Mapping[str, Any]) -> Iterator[Event]:
    kind = "adapter" if context["adapter_type"] == "CPU" else "GPU"
    adapter = f"{kind}: {context['adapter']} ({context['timing_source']})"
    yield _name("process_name", HOST, 0, "host")
    yield _name("process_name", ADAPTER, 0, adapter)
    yield _name("thread_name", HOST, PHASES, "phases")
    yield _name("thread_name", HOST, ENCODING, "encoding")
    yield _name("thread_name", ADAPTER, FRAMES, "frames")


def _name(kind: str, pid: int, tid: int, name: str) -> Event:
    return {"ph": "M", "name": kind, "pid": pid, "tid": tid, "args": {"name": name}}


def _complete(name: str, pid: int, tid: int, begin_s: float, seconds: float, **args: Any) -> Event:
    """Its end is rounded, not its length: Perfetto counts nanoseconds, and drops an event that ends
    one of them after the next one of its thread begins."""
    begin, end = _microseconds(begin_s), _microseconds(begin_s + seconds)
    return {
        **{"ph": "X", "name": name, "cat": name.split("/")[0].split(" ")[0]},
        **{"pid": pid, "tid": tid, "ts": begin, "dur": round(end - begin, 3)},
        "args": args,
    }


def _counter(name: str, at_s: float, values: Mapping[str, float]) -> Event:
    event = {"ph": "C", "name": name, "pid": ADAPTER, "tid": 0, "ts": _microseconds(at_s)}
    return {**event, "args": dict(values)}


def _microseconds(seconds: float) -> float:
    return round(1e6 * seconds, 3)


def _host_events(phases: Sequence[Phase]) -> Iterator[Event]:
    for phase in phases:
        end_s = phase.begin_s if phase.end_s is None else phase.end_s
        yield _complete(phase.name, HOST, PHASES, phase.begin_s, end_s - phase.begin_s)


def _frame_events(index: int, frame: Any, end_s: float, lanes: list[float]) -> Iterator[Event]:
    """A frame and its passes. `lanes` holds the end of each pass track, in seconds: viewers want
    the events of one thread nested or apart, and passes of a GPU may overlap."""
    spans = [
        (name, begin / 1e3, ms / 1e3)
        for (name, ms), begin in zip(frame.passes.items(), frame.begins, strict=True)
    ]
    if not spans or not all(math.isfinite(begin + length) for _, begin, length in spans):
        return
    whole = max(begin + length for _, begin, length in spans)
    first_s = max(0.0, end_s - whole)
    encode_s = frame.cpu_ms / 1e3
    yield _complete(f"encode {index}", HOST, ENCODING, max(0.0, first_s - encode_s), encode_s)
    yield _complete(f"frame {index}", ADAPTER, FRAMES, first_s, whole, gaps_ms=frame.frame_gaps_ms)
    yield _counter("frame, ms", first_s, {"total": frame.frame_total_ms})
    yield _counter("rays", first_s, {name: rays.rays for name, rays in frame.rays.items()})
    for name, begin, length in spans:
        begin_s = first_s + begin
        free = (lane for lane, end in enumerate(lanes) if end <= begin_s + 1e-9)
        lane = next(free, len(lanes))
        lanes[lane : lane + 1] = [begin_s + length]
        yield _complete(name, ADAPTER, PASSES + lane, begin_s, length, frame=index)


def _counted_events(counted: Any, at_s: float) -> Iterator[Event]:
    for field in COUNTED:
        values = {name: getattr(rays, field) for name, rays in counted.rays.items()}
        known = {name: value for name, value in values.items() if value is not None}
        if known:
            yield _counter(f"{field} (counted run)", at_s, known)
