"""Tables about objects: what rays did inside of them, and what became of those that deform."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from engine.view.panels.table import Column
from passes.frame_stats import FrameStats
from passes.hit_table import HitClass
from passes.rays import family_of
from passes.update_records import UPDATE_PASSES, UpdateRecord, own_update_ms
from treeline.cost_model import traversal_ms
from treeline.object_tables import PAGE_FIELDS
from treeline.view.ray_rows import COUNTED

OBJECT_COLUMNS = (
    Column("object", text=True, tooltip="instances of one mesh are one object"),
    Column("ray type", text=True),
    Column("share", "%", ".1f", tooltip="of the ray type's nodes"),
    *(Column(label, format=",d", tooltip=COUNTED) for label in PAGE_FIELDS.values()),
    Column("about", "ms", ".3f", tooltip="the traversal's median by share of nodes: an estimate"),
)


def object_rows(
    timed: Iterable[FrameStats], counted: FrameStats | None, only: str | None = None
) -> list[tuple[Any, ...]]:
    """What each object took of each ray type (or `only` of that, all bounces), most nodes first."""
    if counted is None:
        return []
    frames = list(timed)
    sums: dict[str, int] = {}
    for (_, ray_type), spent in counted.objects.items():
        sums[ray_type] = sums.get(ray_type, 0) + spent["nodes"]
    times = {t: [traversal_ms(f.passes, t) for f in frames] or [np.nan] for t in sums}
    took = {t: float(np.median(values)) for t, values in times.items()}
    rows = []
    for (name, ray_type), spent in counted.objects.items():
        if only not in (None, family_of(ray_type)):
            continue
        part = spent["nodes"] / sums[ray_type] if sums[ray_type] else 0.0
        counts = (spent[field] for field in PAGE_FIELDS)
        rows.append((spent["nodes"], (name, ray_type, 100 * part, *counts, part * took[ray_type])))
    return [row for _, row in sorted(rows, key=lambda item: -item[0])]


UPDATE_COLUMNS = (
    Column("deforming", text=True),
    Column("last update", text=True),
    Column("why", text=True, tooltip="with the number that decided it, and its limit"),
    Column("took", text=True, tooltip="ms; objects that share a pass have no time of their own"),
    Column("builds", format=",d", tooltip="on the GPU, since the scene was prepared"),
    Column("refits", format=",d", tooltip="since the last build"),
    Column("SAH built", format=".2f"),
    Column("SAH", format=".2f", tooltip="as last measured, by frames that decide by it"),
    Column("visits built", format=".2f", tooltip="first known after the build"),
    Column("visits", format=".2f", tooltip="nodes each time that a ray enters, counted frames"),
    Column("decisions", format=",d", tooltip="of the policy so far, those that keep left out"),
)


def update_rows(
    records: Sequence[UpdateRecord], passes: Mapping[str, float]
) -> list[tuple[Any, ...]]:
    """One row an object that deforms; `passes` are a timed frame's."""
    return [
        (
            record.name,
            record.action,
            _why(record),
            _took(tuple(records), record, passes),
            record.builds,
            record.refits_since_build,
            record.sah_built,
            record.sah,
            record.visits_built,
            record.visits,
            record.decided,
        )
        for record in records
    ]


HIT_COLUMNS = (
    Column("hits of", text=True),
    Column("geometry", text=True, tooltip="the objects' lifetime"),
    Column("material", text=True),
    Column("objects", format=",d"),
    Column("materials", format=",d"),
    Column("coarse records", format=",d", tooltip="one a class; parameters once a material"),
    Column("coarse bytes", "B", ",d"),
    Column("fine records", format=",d", tooltip="one an object, with its material's parameters"),
    Column("fine bytes", "B", ",d"),
)


def hit_rows(classes: Sequence[HitClass]) -> list[tuple[Any, ...]]:
    """One row a class of the hit table that has records."""
    return [
        (
            item.ray_type,
            item.geometry,
            item.material,
            item.objects,
            item.materials,
            item.coarse_records,
            item.coarse_bytes,
            item.fine_records,
            item.fine_bytes,
        )
        for item in classes
        if item.fine_records
    ]


def _why(record: UpdateRecord) -> str:
    numbers = [f"{n:.4g}" for n in (record.value, record.limit) if not np.isnan(n)]
    return f"{record.reason} {', limit '.join(numbers)}".rstrip()


def _took(
    records: tuple[UpdateRecord, ...], record: UpdateRecord, passes: Mapping[str, float]
) -> str:
    if record.action in UPDATE_PASSES and sum(r.action == record.action for r in records) > 1:
        return "not separate"
    took = own_update_ms(records, record, passes)
    return "-" if np.isnan(took) else f"{took:.3f}"
