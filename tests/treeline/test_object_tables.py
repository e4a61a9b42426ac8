"""The report's rows and tables about objects and what became of those that deform."""

import io
import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from bvh.counters import OBJECT_COUNTERS
from passes.hit_table import HitClass, HitTable, Touched
from passes.update_records import UpdateRecord, own_update_ms
from treeline.object_tables import (
    PAGE_FIELDS,
    TERMINAL_FIELDS,
    hit_lines,
    object_lines,
    touched_sentence,
    update_lines,
    why,
)
from treeline.report_context import plain
from treeline.report_csv import report_csv
from treeline.report_html import report_html
from treeline.report_objects import hit_table_rows, object_rows, update_rows
from treeline.report_row import Row
from treeline.report_table import ROWS_SHOWN, report_tables

Document = tuple[dict[str, Any], Any]

FOX = UpdateRecord(
    "fox", "deforming", "refit", "SAH over the build's", 1.12, 1.3, 1, 7, 20.0, 22.4, 11.0, 13.2,
    20, tuple(f"frame {i}: fox (deforming): refit, SAH over the build's 1.1" for i in range(20)),
)  # fmt: skip


def some_objects(count: int) -> list[Row]:
    counts = {field: 10 * i for i, field in enumerate(OBJECT_COUNTERS)}
    return [
        {**counts, "name": f"object/o/{i}/shadow", "nodes": 1 + i, "nodes_share": 0.1}
        | {"real_time": 2.0}
        for i in range(count)
    ]


def test_a_row_has_every_counter_of_an_object(document: Document) -> None:
    report, measurement = document
    rows = object_rows(measurement)
    assert {row["name"] for row in rows} >= {"object/columns/reflection", "object/floor/reflection"}
    for row in rows:
        assert set(OBJECT_COUNTERS) <= set(row["run"])
        assert {row["run"][field] for field in OBJECT_COUNTERS} == {"counted"}
    assert set(PAGE_FIELDS) == set(OBJECT_COUNTERS) >= set(TERMINAL_FIELDS)
    built = next(r for r in report["benchmarks"] if r["name"] == "build/static")
    assert (built["instances"], built["run"]["instances"]) == (3, "build")


def test_what_does_not_fit_is_summed_and_said() -> None:
    rows = some_objects(40)
    lines = object_lines(rows, ("nodes", "hits", "rejected"), 10)
    assert len(lines) == 11 and [line[3] for line in lines[:3]] == [40, 39, 38]
    assert lines[0][:2] == ("o/39", "shadow")
    name, ray_type, share, nodes, hits, rejected, ms = lines[-1]
    assert name == "30 more, summed" and ray_type == "all"
    assert nodes == sum(range(1, 31)) and share == pytest.approx(100 * nodes / sum(range(1, 41)))
    assert hits == 30 * rows[0]["hits"] and rejected == 30 * rows[0]["rejected"] and ms == 60.0
    assert sum(line[3] for line in lines) == sum(row["nodes"] for row in rows)
    assert len(object_lines(rows[:11], ("nodes",), 10)) == 11  # a line of one is no use


def test_updates_say_what_decided_and_whose_the_time_is(document: Document) -> None:
    _, measurement = document
    timed = measurement.main.frames[-1]
    frame = replace(timed, passes={**timed.passes, "update/refit": 0.25, "update/build": 1.5})

    def rows_of(*records: UpdateRecord) -> list[Row]:
        main = replace(measurement.main, frames=(frame,), updates=records)
        return [plain(row) for row in update_rows(replace(measurement, main=main))]

    (row,) = rows_of(FOX)
    assert row["name"] == "update/fox" and row["real_time"] == 0.25
    assert (row["action"], row["refits_since_build"], row["builds"]) == ("refit", 7, 1)
    assert row["sah_growth"] == pytest.approx(1.12) and row["visits_growth"] == pytest.approx(1.2)
    assert (row["run"]["sah"], row["run"]["visits"]) == ("timed", "counted")
    assert len(row["decisions"]) == 16 and row["decisions_left_out"] == 4
    assert why(row) == "SAH over the build's 1.12, limit 1.3"
    both = rows_of(FOX, replace(FOX, name="man"))
    assert [r["real_time"] for r in both] == [None, None]
    assert [line[3] for line in update_lines(both)] == ["not separate"] * 2
    other = replace(FOX, name="man", action="rebuild", sah=float("nan"))
    assert [r["real_time"] for r in rows_of(FOX, other)] == [0.25, 1.5]
    still = replace(FOX, action="keep", value=float("nan"), limit=float("nan"))
    assert own_update_ms((still,), still, frame.passes) == 0.0
    assert why(rows_of(still)[0]) == "SAH over the build's"


def test_every_table_shows_objects_and_updates(document: Document) -> None:
    report, measurement = document
    main = replace(measurement.main, updates=(FOX, replace(FOX, name="<man>")))
    report["benchmarks"] += [plain(row) for row in update_rows(replace(measurement, main=main))]
    report["benchmarks"] += [plain({**row, "run": {}}) for row in some_objects(500)]
    json.dumps(report, allow_nan=False)
    assert "update/fox,refits_since_build,7,,timed" in report_csv(report)
    console = Console(width=150, record=True, file=io.StringIO())
    console.print(report_tables(report))
    text = console.export_text()
    assert "more, summed" in text and "fox" in text and "not separate" in text
    assert text.count("o/4") <= ROWS_SHOWN
    page = report_html(report, measurement.main.image, measurement.main.nodes)
    assert "&lt;man&gt;" in page and "40 decisions" not in page and "32 decisions" in page
    assert "more, summed" in page and "o/499" in page and "o/3<" not in page


def test_a_scene_that_stands_still_has_no_updates(document: Document) -> None:
    report, measurement = document
    assert update_rows(measurement) == []
    assert "Updates" not in report_html(report, np.zeros((2, 2, 3), np.uint8), {})


def a_table() -> HitTable:
    mirror = HitClass("reflection", "static", "mirror", 3, 1, 1, 76, 3, 192, 40)
    leaves = HitClass("reflection", "vegetation", "mask", 5, 2, 1, 148, 5, 320, 60)
    shadows = HitClass("shadow", "vegetation", "mask", 5, 2, 5, 340, 5, 340)
    nothing = HitClass("shadow", "static", "mirror", 3, 1, 0, 0, 0, 0)
    touched = (Touched("reflection", 32, 1.5, 2.0, 4.0), Touched("reflection", 64, 2.5, 3.0, 6.0))
    return HitTable("fine", (mirror, leaves, nothing, shadows), touched)


def test_hits_have_rows_sums_and_a_sentence(document: Document) -> None:
    report, measurement = document
    assert hit_table_rows(measurement) == []
    main = replace(measurement.main, hit_table=a_table())
    rows = [plain(row) for row in hit_table_rows(replace(measurement, main=main))]
    names = [row["name"] for row in rows]
    assert names[0] == "hit_table/reflection/static/mirror" and "hit_table/reflection" in names
    assert rows[0]["run"]["hits"] == "counted" and rows[0]["run"]["fine_bytes"] == "build"
    lines = hit_lines(rows)
    assert ("reflection", "all", "", 8, 2, 224, 8, 512, 100) in lines
    assert lines[-2:] == [
        ("shadow", "vegetation", "mask", 5, 5, 340, 5, 340, None),
        ("shadow", "all", "", 8, 5, 340, 5, 340, None),
    ]
    said = touched_sentence(rows)
    assert "workgroup touch 2.5 classes and 3.0 materials (coarse) or 6.0 records" in said
    report["benchmarks"] += rows
    report["context"]["hit_table"] = "fine"
    console = Console(width=150, record=True, file=io.StringIO())
    console.print(report_tables(report))
    text = console.export_text()
    assert "fine in this frame" in text and "vegetation mask" in text
    page = report_html(report, measurement.main.image, measurement.main.nodes)
    assert "Hit table" in page and "frame's is fine" in page
    assert "hit_table/shadow/vegetation/mask,fine_bytes,340,bytes,build" in report_csv(report)
