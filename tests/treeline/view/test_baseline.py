"""What a comparison with the pinned baseline says, and when it refuses to say anything."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from passes.frame_stats import FrameStats, RayStats
from passes.option_list import ViewSettings, find_option
from treeline.view.baseline import Baseline, Change, compare, difference
from treeline.view.session import ViewSession

Open = Callable[..., ViewSession]
Until = Callable[..., int]


def rays_of(rays: int, nodes: int | None) -> RayStats:
    return RayStats(
        rays=rays,
        dropped=0,
        payload_bytes=32,
        replaced=0,
        lost=0,
        failed=0,
        nodes=nodes,
        triangle_tests=nodes and 10,
        any_hits=nodes and 0,
    )


def stats_of(ms: float, rays: int = 1000, nodes: int | None = None) -> FrameStats:
    """A frame of two passes of equal length and one ray type."""
    return FrameStats(
        passes={"gbuffer/raster": ms / 2, "traverse/reflection/0": ms / 2},
        frame_total_ms=ms,
        frame_gaps_ms=0.0,
        cpu_ms=0.1,
        rays={"reflection": rays_of(rays, nodes)},
        objects={},
        dropped=0,
        valid=True,
        counted=nodes is not None,
        upload_bytes=0,
        readback_bytes=0,
        forced_waits=0,
        timing_source="timestamp-query",
    )


@pytest.fixture
def make_baseline(open_session: Open) -> Callable[..., Baseline]:
    point = open_session().point

    def maker(label: str, times: Any, nodes: int | None, rays: int = 1000, **more: Any) -> Baseline:
        counted = None if nodes is None else stats_of(1.0, rays, nodes)
        timed = tuple(stats_of(ms, rays) for ms in times)
        made = Baseline(label, ViewSettings(), point, (40, 30), timed, counted, 5.0, 4096)
        return replace(made, **more)

    return maker


def texts(before: Baseline, now: Baseline) -> list[str]:
    comparison = compare(before, now)
    assert not comparison.problem
    return [effect.text for effect in comparison.effects]


def test_effects_are_shares_of_the_baseline(make_baseline: Any) -> None:
    before = make_baseline("A", [10.0, 10.1, 9.9], 20_000)
    now = make_baseline("B", [8.8, 8.8, 8.8], 13_800)
    assert texts(before, now) == [
        "frame: -12% ms",
        "reflection: -31% nodes, -12% ms",
        "gbuffer/raster: -12% ms",
        "traverse/reflection/0: -12% ms",
    ]
    assert texts(now, before)[1] == "reflection: +45% nodes, +14% ms"


def test_times_whose_intervals_overlap_are_noise(make_baseline: Any) -> None:
    before = make_baseline("A", [9.0, 10.0, 11.0, 12.0], 20_000)
    now = make_baseline("B", [8.0, 9.0, 10.0, 11.0], 20_000)
    assert texts(before, now)[:2] == [
        "frame: -10% ms (within noise)",
        "reflection: same nodes, -10% ms (within noise)",
    ]
    few = make_baseline("B", [8.0, 8.0], 20_000)
    assert texts(before, few)[0].endswith("(few frames)")


def test_without_counters_rays_are_compared_and_nodes_are_not(make_baseline: Any) -> None:
    before = make_baseline("A", [10.0] * 3, None, rays=1000)
    now = make_baseline("B", [5.0] * 3, None, rays=250)
    assert texts(before, now)[1] == "reflection: -75% rays, -50% ms"


def test_what_was_nothing_before_is_new(make_baseline: Any) -> None:
    assert Change("any-hit calls", 0, 7).text == "new any-hit calls"
    assert Change("any-hit calls", 7, 0).text == "-100% any-hit calls"


def test_a_structure_row_stands_where_the_build_differs(make_baseline: Any) -> None:
    before = make_baseline("A", [10.0] * 3, 20_000)
    settings = find_option("nodes").set(before.settings, "fp32")
    now = make_baseline("B", [10.0] * 3, 20_000, settings=settings, build_ms=10.0, bytes=8192)
    assert texts(before, now)[-1] == "structure: +100% build ms (few frames), +100% bytes"
    assert difference(before, settings) == "node kind auto -> fp32"


def test_other_sizes_and_cameras_are_refused(make_baseline: Any, open_session: Open) -> None:
    before = make_baseline("A", [10.0] * 3, 20_000)
    turned = replace(before.point, camera=replace(before.point.camera, y_fov=1.0))
    later = replace(before.point, clip="walk", time=1.5)
    cases = {
        "A was measured at 40x30, this is 41x30": replace(before, label="B", size=(41, 30)),
        "A was measured from another camera": replace(before, label="B", point=turned),
        "A was measured at another time": replace(before, label="B", point=later),
        "B has not been measured": replace(before, label="B", timed=()),
    }
    for problem, now in cases.items():
        assert compare(before, now).problem == problem
        assert compare(before, now).effects == ()
    assert open_session().effects().problem == "no baseline is pinned"


def test_pin_change_and_swap(open_session: Open, until: Until) -> None:
    session = open_session(continuous=True)
    until(session, lambda: session.ready)
    a = session.settings
    session.pin()
    b = find_option("mask/shadow").set(find_option("gbuffer").set(a, "rays"), 0)
    session.change(b)
    assert session.effects().problem == "B has not been measured"
    until(session, lambda: session.ready)
    shadow = next(e for e in session.effects().effects if e.subject == "shadow")
    tests = next(change for change in shadow.changes if change.what == "triangle tests")
    assert tests.after == 0 < tests.before
    subjects = [effect.subject for effect in session.effects().effects]
    assert "gbuffer/resolve" in subjects and "gbuffer/raster" not in subjects

    session.swap()
    assert session.settings == a and session.label == "A"
    assert session.baseline is not None
    assert (session.baseline.label, session.baseline.settings) == ("B", b)
    assert session.baseline.counted is not None
    until(session, lambda: session.ready)
    shadow = next(e for e in session.effects().effects if e.subject == "shadow")
    back = next(change for change in shadow.changes if change.what == "triangle tests")
    assert (back.before, back.after) == (tests.after, tests.before)
    session.swap()
    assert (session.settings, session.label, session.baseline.label) == (b, "B", "A")
    session.unpin()
    assert session.effects().problem
