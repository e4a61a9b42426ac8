"""Tables about rays in RRA's vocabulary, from what frames counted and timed.

Tests are hits and misses: where a table says misses, they are what the counted tests leave.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np

from engine.view.panels.table import Column
from passes.frame_stats import FrameStats, RayStats
from treeline.cost_model import traversal_ms

# What a number of the table is divided by.
PER = ("frame", "ray", "hit")

COUNTED = "from the counted frame 0"


def ray_columns(per: str) -> tuple[Column, ...]:
    """The columns of a table whose counts are `per` frame, ray or hit."""
    number = ",d" if per == "frame" else ",.2f"
    unit = "" if per == "frame" else f"a {per}"

    def count(name: str, tooltip: str = COUNTED) -> Column:
        return Column(name, unit, number, tooltip=tooltip)

    return (
        Column("ray type", text=True),
        Column("rays", format=",d", tooltip="sent in the frame"),
        Column("hits", format=",d", tooltip=COUNTED),
        Column("misses", format=",d", tooltip=COUNTED),
        count("nodes", "box nodes fetched, those of the TLAS included"),
        count("box tests"),
        count("box hits"),
        count("box misses"),
        count("triangle tests"),
        count("triangle hits"),
        count("triangle misses"),
        count("instance hits", "instances entered"),
        count("any-hit calls", "alpha tests of candidates"),
        count("texture fetches"),
        Column("nodes p50", format=",.0f", tooltip="of a ray's nodes"),
        Column("nodes p95", format=",.0f", tooltip="of a ray's nodes"),
        Column("nodes max", format=",d", tooltip="of a ray's nodes"),
        Column("stack max", "entries", ",d", tooltip="the deepest stack of any ray"),
        Column("traverse", "ms", ".3f", tooltip="median of the recent timed frames"),
        Column("rate", "Mrays/s", ",.2f", tooltip="rays by the traversal's median"),
        Column("payload", "B a ray", ",d"),
        Column("dropped", format=",d", tooltip="by full queues; the frame is invalid then"),
    )


def ray_rows(
    timed: Iterable[FrameStats], counted: FrameStats | None, per: str
) -> list[tuple[Any, ...]]:
    """One row a ray type of the frames, in the frame's order. Counts are None before they are
    counted; `timed` are frames of one view."""
    frames = list(timed)
    if not frames:
        return []
    rows = []
    for name, sent in frames[-1].rays.items():
        stats = sent if counted is None else counted.rays[name]
        times = [traversal_ms(frame.passes, name) for frame in frames]
        times = [ms for ms in times if np.isfinite(ms)]
        took = float(np.median(times)) if times else None
        rate = sent.rays / took / 1e3 if took else None
        rows.append(
            (
                name,
                stats.rays,
                stats.hits,
                stats.misses,
                *(share(value, stats, per) for value in _counts(stats)),
                stats.nodes_p50,
                stats.nodes_p95,
                stats.nodes_max,
                stats.stack_max,
                took,
                rate,
                sent.payload_bytes,
                sent.dropped,
            )
        )
    return rows


def _counts(stats: RayStats) -> tuple[int | None, ...]:
    """In the order of the columns."""
    return (
        stats.nodes,
        stats.box_tests,
        stats.box_hits,
        rest(stats.box_tests, stats.box_hits),
        stats.triangle_tests,
        stats.triangle_hits,
        rest(stats.triangle_tests, stats.triangle_hits),
        stats.instance_hits,
        stats.any_hits,
        stats.texture_fetches,
    )


def rest(tests: int | None, hits: int | None) -> int | None:
    return None if tests is None or hits is None else tests - hits


def share(value: int | None, stats: RayStats, per: str) -> float | int | None:
    """The count as the table shows it; None where there is nothing to divide by."""
    if value is None or per == "frame":
        return value
    of = stats.rays if per == "ray" else stats.hits
    return value / of if of else None


BUILD_COLUMNS = (
    Column("object", text=True),
    Column("triangles", format=",d"),
    Column("builder", text=True),
    Column("build", "ms", ",.2f", tooltip="when it was built; a cached one tells of then"),
    Column("bytes", "B", ",d"),
    Column("update", text=True, tooltip="what the last frame did to it"),
)


def build_rows(bvh: Any, decisions: Iterable[Any]) -> list[tuple[Any, ...]]:
    """One row a BLAS; `decisions` are those of the last frame about what moves."""
    updates = {decision.name: decision.action for decision in decisions}
    return [
        (name, stats.triangles, stats.builder, stats.build_ms, stats.bytes, updates.get(name, "-"))
        for name, stats in zip(bvh.blas_names, bvh.blas_stats, strict=True)
    ]
