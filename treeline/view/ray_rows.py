"""Tables about rays, from what frames counted and timed: `treeline.ray_measures` says of what."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from engine.view.panels.table import Column
from passes.frame_stats import FrameStats
from passes.ray_spread import octave_bounds
from treeline.cost_model import traversal_ms
from treeline.ray_measures import MEASURES, SUMS, Measured, share

# What a sum of the table is divided by, and the count that this is of a ray type.
PER = ("frame", "ray", "pixel", "hit")

COUNTED = "from the counted frame 0"
# Those that are known without reading all rays' counts back.
SHOWN = tuple(item for item in MEASURES if not item.reads_back)


def ray_columns(per: str) -> tuple[Column, ...]:
    """The columns of a table whose sums are `per` frame, ray, pixel or hit."""
    number = ",d" if per == "frame" else ",.2f"
    unit = "" if per == "frame" else f"a {per}"
    return (
        Column("ray type", text=True),
        Column("rays", format=",d", tooltip="sent in the frame"),
        *(Column(item.label, unit, number, tooltip=item.help or COUNTED) for item in SUMS),
        *(
            Column(item.label, item.unit, item.format, tooltip=item.help or COUNTED)
            for item in SHOWN
        ),
        Column("traverse", "ms", ".3f", tooltip="median of the recent timed frames"),
        Column("rate", "Mrays/s", ",.2f", tooltip="rays by the traversal's median"),
        Column("payload", "B a ray", ",d"),
        Column("dropped", format=",d", tooltip="by full queues; the frame is invalid then"),
    )


def ray_rows(
    timed: Iterable[FrameStats], counted: FrameStats | None, per: str, pixels: int
) -> list[tuple[Any, ...]]:
    """One row a ray type of the frames, in the frame's order. Counts are None before they are
    counted; `timed` are frames of one view, of so many pixels."""
    frames = list(timed)
    if not frames:
        return []
    rows = []
    for name, sent in frames[-1].rays.items():
        measured = Measured(name, sent if counted is None else counted.rays[name], pixels)
        times = [traversal_ms(frame.passes, name) for frame in frames]
        times = [ms for ms in times if np.isfinite(ms)]
        took = float(np.median(times)) if times else None
        rate = sent.rays / took / 1e3 if took else None
        of = {"ray": measured.stats.rays, "pixel": pixels, "hit": measured.stats.hits}
        sums = [item.of(measured) for item in SUMS]
        rows.append(
            (
                name,
                measured.stats.rays,
                *(sums if per == "frame" else [share(value, of[per]) for value in sums]),
                *(item.of(measured) for item in SHOWN),
                took,
                rate,
                sent.payload_bytes,
                sent.dropped,
            )
        )
    return rows


# Octaves of nodes a ray that have a column; the last one's holds all above.
FIRST_OCTAVE, LAST_OCTAVE = 1, 10


def spread_columns() -> tuple[Column, ...]:
    """Parts of a type's rays, by how many nodes they visit."""
    columns = [Column("ray type", text=True)]
    for octave in range(FIRST_OCTAVE, LAST_OCTAVE + 1):
        low, high = octave_bounds(octave)
        name = f"{low} to {high}" if low < high else str(low)
        name = f"{low} on" if octave == LAST_OCTAVE else name
        columns.append(Column(name, "%", ".1f", tooltip=f"of the rays, nodes each; {COUNTED}"))
    return tuple(columns)


def spread_rows(counted: FrameStats | None) -> list[tuple[Any, ...]]:
    """One row a ray type that sent rays; none before they are counted."""
    rows = []
    for name, stats in {} if counted is None else counted.rays.items():
        rays = stats.nodes_octaves
        if rays is None or not sum(rays):
            continue
        whole = (*rays, *[0] * LAST_OCTAVE)
        shown = (*whole[FIRST_OCTAVE:LAST_OCTAVE], sum(whole[LAST_OCTAVE:]))
        rows.append((name, *(100 * count / sum(rays) for count in shown)))
    return rows


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
