"""A report's trace by Perfetto's rules (benchmarks/trace_rules.py), and that these see mistakes."""

from dataclasses import replace
from typing import Any

import pytest

from benchmarks.trace_rules import Imported, read_trace
from treeline.chrome_trace import ADAPTER
from treeline.json_text import json_text


def imported(trace: Any) -> Imported:
    return read_trace(json_text(trace))


def test_perfettos_rules_find_every_frame_pass_and_counter(traced: Any) -> None:
    def overlap(stats: Any) -> Any:
        return replace(stats, begins=tuple(0.4 * b for b in stats.begins))

    for change in (lambda stats: stats, overlap):
        run, trace = traced(change)
        found = imported(trace)
        assert found.errors == [] and {depth for *_, depth in found.slices} == {0}
        passes = [s for s in found.slices if s[1].startswith("passes")]
        assert len(passes) == sum(len(stats.passes) for stats in run.frames)
        for name, ms in run.frames[0].passes.items():
            lengths = [length for _, _, title, _, length, _ in passes if title == name]
            assert lengths == pytest.approx([1e6 * ms] * len(run.frames), abs=1)
        frames = [s for s in found.slices if s[1] == "frames"]
        assert [s[2] for s in frames] == ["frame 0", "frame 1", "frame 2"]
        assert {s[0] for s in frames} == {"GPU: made up (timestamp-query)"}
        assert {s[1] for s in found.slices if s[0] == "host"} == {"phases", "encoding"}
        for name, stats in run.counted.rays.items():
            values = found.counters[ADAPTER, "nodes (counted run)", name]
            assert [value for _, value in values] == [stats.nodes]
            sent = found.counters[ADAPTER, "rays", name]
            begins = [begin for *_, begin, _, _ in frames]
            assert [at for at, _ in sent] == begins and sent[0][1] == stats.rays


@pytest.mark.parametrize(
    "change, error",
    [
        ({"ts": "soon"}, "has no time"),
        ({"ts": None}, "has no time"),
        ({"dur": -1.0}, "has no length"),
        ({"tid": 0}, "thread without a name"),
        ({"pid": 7}, "thread without a name"),
        ({"ph": "B"}, "a phase that nobody wrote"),
        ({"ph": "C", "args": {"a": "1"}}, "is no number"),
        ({"ph": "C", "args": {}}, "counts nothing"),
        ({"pid": "2"}, "has no pid and tid"),
    ],
)
def test_perfettos_rules_see_what_is_wrong(change: dict[str, Any], error: str, traced: Any) -> None:
    _, trace = traced()
    event = next(e for e in trace["traceEvents"] if e["ph"] == "X" and e["pid"] == ADAPTER)
    event.update(change)
    assert any(error in one for one in imported(trace).errors)


def test_a_slice_that_ends_in_the_next_one_is_seen(traced: Any) -> None:
    _, trace = traced()
    events = [e for e in trace["traceEvents"] if e["ph"] == "X" and e["pid"] == ADAPTER]
    first, second = [e for e in events if e["args"].get("frame") == 0][:2]
    first["dur"] = round(second["ts"] + second["dur"] / 2 - first["ts"], 3)
    (error,) = imported(trace).errors
    assert error == f"slice_drop_overlapping_complete_event: {second['name']}"


def test_a_trace_is_json_without_doubles() -> None:
    with pytest.raises(ValueError, match="a key is there twice"):
        read_trace('{"traceEvents": [], "traceEvents": []}')
    with pytest.raises(ValueError, match="NaN is no JSON"):
        read_trace('{"traceEvents": [NaN]}')
