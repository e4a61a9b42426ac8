"""A report's trace against the Trace Event Format, and against the frames it was made from."""

import json
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.trace_rules import read_trace
from treeline.chrome_trace import ADAPTER, HOST

# The keys that "Trace Event Format" gives each kind of event that is used here.
KEYS = {
    "X": {"ph", "name", "cat", "pid", "tid", "ts", "dur", "args"},
    "C": {"ph", "name", "pid", "tid", "ts", "args"},
    "M": {"ph", "name", "pid", "tid", "args"},
}


def nanoseconds(microseconds: Any) -> int:
    """What Perfetto makes of a time: its importer counts in whole nanoseconds."""
    assert isinstance(microseconds, int | float) and microseconds >= 0
    whole = round(1000 * microseconds)
    assert abs(1000 * microseconds - whole) < 1e-3, microseconds
    return whole


def check_format(trace: Any) -> None:
    """What "Trace Event Format" demands of each kind of event that is used here, and what viewers
    do: within a thread, complete events are nested or apart, to the nanosecond."""
    assert trace["displayTimeUnit"] in ("ms", "ns") and isinstance(trace["traceEvents"], list)
    assert all(isinstance(value, str) for value in trace["otherData"].values())
    threads = defaultdict(list)
    named: dict[tuple[str, int, int], str] = {}
    for event in trace["traceEvents"]:
        assert set(event) == KEYS[event["ph"]], event
        assert isinstance(event["name"], str) and event["name"]
        assert type(event["pid"]) is int and type(event["tid"]) is int
        assert isinstance(event["args"], dict)
        if event["ph"] == "M":
            assert event["name"] in ("process_name", "thread_name")
            place = (event["name"], event["pid"], event["tid"])
            assert isinstance(event["args"]["name"], str) and place not in named
            named[place] = event["args"]["name"]
        elif event["ph"] == "X":
            begin = nanoseconds(event["ts"])
            end = begin + nanoseconds(event["dur"])
            assert isinstance(event["cat"], str)
            threads[event["pid"], event["tid"]].append((begin, -end, event["name"]))
        else:
            nanoseconds(event["ts"])
            assert event["args"] and ("process_name", event["pid"], 0) in named
            assert all(type(v) in (int, float) for v in event["args"].values())
    for (pid, tid), spans in threads.items():
        assert ("process_name", pid, 0) in named and ("thread_name", pid, tid) in named
        open_until: list[int] = []
        for begin, minus_end, name in sorted(spans):
            while open_until and open_until[-1] <= begin:
                open_until.pop()
            assert not open_until or -minus_end <= open_until[-1], (pid, tid, name)
            open_until.append(-minus_end)


def of(trace: Any, phase: str, pid: int, name: str = "") -> list[Any]:
    found = [e for e in trace["traceEvents"] if e["ph"] == phase and e["pid"] == pid]
    return [e for e in found if e["name"].startswith(name)]


def test_every_frame_and_pass_is_in_it(traced: Any) -> None:
    run, trace = traced()
    check_format(trace)
    frames = of(trace, "X", ADAPTER, "frame ")
    assert [f["name"] for f in frames] == ["frame 0", "frame 1", "frame 2"]
    for stats, frame in zip(run.frames, frames, strict=True):
        index = int(frame["name"].split()[1])
        passes = [e for e in of(trace, "X", ADAPTER) if e["args"].get("frame") == index]
        assert {e["name"]: e["dur"] for e in passes} == pytest.approx(
            {name: 1e3 * ms for name, ms in stats.passes.items()}
        )
        begins = [e["ts"] - frame["ts"] for e in passes]
        assert begins == pytest.approx([1e3 * b for b in stats.begins], abs=0.01)
        assert {e["tid"] for e in passes} == {2}
        # Its end is when the host had it: timing began at 0.3 s, then there were two warm-ups.
        assert frame["ts"] + frame["dur"] == pytest.approx(1e6 * (0.6 + 0.1 * index), abs=0.1)


def test_the_hosts_phases(traced: Any) -> None:
    _, trace = traced()
    phases = [e for e in of(trace, "X", HOST) if e["tid"] == 1]
    names = ["loading the scene", "timing 50x20", "counting 50x20", "writing the report"]
    assert [e["name"] for e in phases] == names
    assert all(e["dur"] > 0 for e in phases)
    assert len(of(trace, "X", HOST, "encode")) == 3


def test_counters(traced: Any) -> None:
    run, trace = traced()
    rays = of(trace, "C", ADAPTER, "rays")
    assert [e["args"] for e in rays] == [{"reflection": 1000, "shadow": 1000}] * 3
    (nodes,) = of(trace, "C", ADAPTER, "nodes")
    assert nodes["args"] == {name: r.nodes for name, r in run.counted.rays.items()}


def test_passes_that_overlap_have_tracks_of_their_own(traced: Any) -> None:
    def overlap(stats: Any) -> Any:
        return replace(stats, begins=tuple(0.4 * b for b in stats.begins))

    _, trace = traced(overlap)
    check_format(trace)
    assert len({e["tid"] for e in of(trace, "X", ADAPTER)}) > 2


def test_rounding_lets_no_pass_end_in_the_next(traced: Any) -> None:
    """Lengths that round up one after the other: Perfetto would drop half of the events."""

    def thirds(stats: Any) -> Any:
        passes = dict.fromkeys(stats.passes, 0.0016667)
        return replace(stats, passes=passes, begins=tuple(0.0016667 * np.arange(len(passes))))

    _, trace = traced(thirds)
    check_format(trace)
    passes = [e for e in of(trace, "X", ADAPTER) if e["args"].get("frame") == 0]
    assert len(passes) > 2 and {e["tid"] for e in passes} == {2}


@pytest.mark.parametrize(
    "change",
    [
        {"ts": -1.0},
        {"dur": None},
        {"pid": "2"},
        {"tid": 99},  # of which nobody said what it is
        {"cat": 3},
        {"ts": 0.12345},  # parts of a nanosecond
        {"extra": 1},
    ],
)
def test_a_wrong_event_is_seen(change: dict[str, Any], traced: Any) -> None:
    _, trace = traced()
    event = next(e for e in of(trace, "X", ADAPTER) if e["args"].get("frame") == 0)
    event.update(change)
    with pytest.raises(AssertionError):
        check_format(trace)


def test_an_event_that_ends_in_another_is_seen(traced: Any) -> None:
    _, trace = traced()
    first, second = [e for e in of(trace, "X", ADAPTER) if e["args"].get("frame") == 0][:2]
    first["dur"] = round(second["ts"] + second["dur"] / 2 - first["ts"], 3)
    with pytest.raises(AssertionError):
        check_format(trace)


def test_frames_without_times_are_left_out(traced: Any) -> None:
    def untimed(stats: Any) -> Any:
        return replace(stats, passes=dict.fromkeys(stats.passes, np.nan), frame_gaps_ms=np.nan)

    _, trace = traced(untimed)
    check_format(trace)
    assert of(trace, "X", ADAPTER) == [] and of(trace, "X", HOST, "timing")


def test_the_command_writes_it(run: Callable[..., Any], box: Path, tmp_path: Path) -> None:
    words = ("--scene", box, "--out", tmp_path / "r", "--size", "16x8", "--frames", 2)
    result = run("report", *words, "--trace", tmp_path / "t.json", "--quiet")
    assert result.exit_code == 0 and result.stdout.splitlines()[-1] == str(tmp_path / "t.json")
    trace = json.loads((tmp_path / "t.json").read_text(), parse_constant=pytest.fail)
    check_format(trace)
    assert read_trace((tmp_path / "t.json").read_text()).errors == []
    report = json.loads((tmp_path / "r" / "report.json").read_text())
    passes = [r["name"] for r in report["benchmarks"] if r["name"].startswith("pass/")]
    first = [e["name"] for e in of(trace, "X", ADAPTER) if e["args"].get("frame") == 0]
    assert [f"pass/{name}" for name in first] == passes
    host = [e["name"] for e in of(trace, "X", HOST)]
    assert {"loading the scene", "timing 16x8", "counting 16x8", "writing the report"} <= set(host)
    processes = [e["args"]["name"] for e in of(trace, "M", ADAPTER) if e["name"] == "process_name"]
    assert "wall-clock" in processes[0] or "timestamp-query" in processes[0]
