"""The report's schema, and that every number comes from the run that it names."""

import csv
import io
import json
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from passes.slot_counts import SLOT_COUNTS
from treeline.ray_measures import SUMS, labels
from treeline.report_context import plain
from treeline.report_csv import COLUMNS, report_csv
from treeline.report_html import report_html
from treeline.report_row import ratio
from treeline.report_spreads import histogram
from treeline.report_table import model_sentence, report_tables, timing_label

Document = tuple[dict[str, Any], Any]

CONTEXT = {
    *("schema", "date", "version", "commit", "adapter", "adapter_type", "backend", "driver"),
    *("timing_source", "scene", "scene_sha256", "triangles", "width", "height", "seed"),
    *("builder", "nodes", "leaf", "group", "light", "loops"),
}
ROW = {"name", "run_name", "run_type", "iterations", "real_time", "cpu_time", "time_unit"}
RAY = {
    *("rays", "hits", "misses", "mrays_per_s", "nodes_per_ray", "nodes_per_hit_ray"),
    *("nodes_per_miss_ray", "nodes_p50", "nodes_p95", "nodes_max", "box_tests_per_ray"),
    *("box_hits_per_ray", "triangle_tests_per_ray", "triangle_hits_per_ray"),
    *("instance_hits_per_ray", "any_hit_per_ray", "texture_fetches_per_hit", "payload_bytes"),
    *("stack_max", "overflows", "dropped"),
}
BUILD = {"triangles", "builder", "bytes", "nodes_fp16", "nodes_fp32", "fill", "depth", "sah"}


def row(report: dict[str, Any], name: str) -> dict[str, Any]:
    return next(r for r in report["benchmarks"] if r["name"] == name)


def test_context_and_rows_have_the_agreed_fields(document: Document) -> None:
    report, _ = document
    assert set(report) == {"context", "benchmarks"}
    assert set(report["context"]) >= CONTEXT
    for r in report["benchmarks"]:
        assert set(r) >= ROW, r["name"]
        assert r["time_unit"] == "ms"
        assert isinstance(r["real_time"], float | int), r["name"]
    names = {r["name"] for r in report["benchmarks"]}
    assert names >= {"frame/total", "frame/gaps", "model/frame", "build/static"}
    assert names >= {f"pass/{p}" for p in ("gbuffer", "traverse/reflection/0", "composite")}
    assert names >= {"host/compile", "host/cpu", "host/upload", "host/readback", "host/waits"}
    assert set(row(report, "ray/reflection")) >= RAY
    assert set(row(report, "ray/shadow")) >= RAY
    assert set(row(report, "build/static")) >= BUILD
    assert set(row(report, "model/frame")) >= {"predicted", "measured", "residual", "fit"}


def test_names_are_unique(document: Document) -> None:
    names = [r["name"] for r in document[0]["benchmarks"]]
    assert len(names) == len(set(names))


def test_it_is_json_without_nan(document: Document) -> None:
    text = json.dumps(document[0], allow_nan=False)
    assert json.loads(text) == document[0]
    assert plain({"a": np.float32("nan"), "b": (np.int64(3), np.inf)}) == {
        "a": None,
        "b": [3, None],
    }


def test_every_number_says_its_run(document: Document) -> None:
    for r in document[0]["benchmarks"]:
        numbers = {
            k
            for k, v in r.items()
            if isinstance(v, int | float) and k != "iterations" and v is not None
        }
        told = set(r["run"])
        # A time that was not measured is 0 and says no run.
        untold = {k for k in numbers - told if not (k in ("real_time", "cpu_time") and r[k] == 0)}
        assert untold == set(), r["name"]
        assert set(r["run"].values()) <= {
            *("timed", "counted", "computed", "build", "host", "model")
        }


def test_times_are_timed_and_counts_are_counted(document: Document) -> None:
    reflection = row(document[0], "ray/reflection")
    assert reflection["run"]["real_time"] == "timed"
    assert reflection["run"]["mrays_per_s"] == "timed"
    assert reflection["run"]["nodes_per_ray"] == "counted"
    assert reflection["real_time"] == pytest.approx(4.0)
    assert reflection["rays"] == 1000
    assert reflection["mrays_per_s"] == pytest.approx(1000 / 4.0e3)
    assert reflection["nodes_per_ray"] == pytest.approx(20.0)
    assert reflection["nodes_per_hit_ray"] == pytest.approx(15_750 / 750)
    assert reflection["nodes_per_miss_ray"] == pytest.approx(17.0)
    assert reflection["texture_fetches_per_hit"] == pytest.approx(2.0)


def test_a_ratio_to_nothing_is_null(document: Document) -> None:
    shadow = row(document[0], "ray/shadow")
    assert shadow["hits"] == 0
    assert shadow["nodes_per_hit_ray"] is None
    assert ratio(1, 0) is None
    assert ratio(None, 2) is None


def test_object_times_are_estimates_that_add_up(document: Document) -> None:
    columns = row(document[0], "object/columns/reflection")
    floor = row(document[0], "object/floor/reflection")
    assert columns["run"]["real_time"] == "model"
    assert columns["nodes"] == 15_000
    assert columns["real_time"] == pytest.approx(3.0)
    assert columns["real_time"] + floor["real_time"] == pytest.approx(4.0)


def test_sums_are_told_by_ray_and_by_pixel(document: Document) -> None:
    report, measurement = document
    for ray in (r for r in report["benchmarks"] if r["name"].startswith("ray/")):
        assert ray["hits"] + ray["misses"] == ray["rays"]
        for item in SUMS:
            stem = item.stem or item.field
            total = ray[item.field]
            assert (total is None) == (ray[f"{stem}_per_ray"] is None)
            if total is not None:
                assert ray[f"{stem}_per_ray"] == pytest.approx(total / ray["rays"])
                assert ray[f"{stem}_per_pixel"] == pytest.approx(total / (50 * 20))
        assert set(labels()) <= set(ray["run"])
    reflection = row(report, "ray/reflection")
    assert reflection["active_lane_ratio"] == pytest.approx(20_000 / (1_000 * 32))
    assert reflection["nodes_per_subgroup_step"] == pytest.approx(4.0)
    assert reflection["run"]["bytes_read"] == "computed" and reflection["bytes_read"] > 1e6
    assert reflection["share_of_frame"] == pytest.approx(6 / 11)
    text = report_html(report, measurement.main.image, measurement.main.nodes)
    for label in (*labels().values(), "How counts are spread", "0 of bounce 2"):
        assert label in text


def test_spreads_have_every_ray(document: Document) -> None:
    rows = [r for r in document[0]["benchmarks"] if r["name"].startswith("spread/")]
    assert len(rows) == 2 * (len(SLOT_COUNTS) + 1)
    assert all(sum(histogram(r).values()) == 10 for r in rows if "/shadow/" in r["name"])
    nodes = row(document[0], "spread/shadow/nodes")
    assert (nodes["p50"], nodes["p99"], nodes["max"]) == (20.0, 20.0, 20)
    assert histogram(nodes)[16] == 10 and nodes["run"]["rays_16"] == "counted"
    assert "spread/shadow/nodes,rays_16,10,,counted" in report_csv(document[0])


def test_csv_has_every_number_with_its_run(document: Document) -> None:
    report, _ = document
    lines = list(csv.DictReader(io.StringIO(report_csv(report))))
    assert tuple(lines[0]) == COLUMNS
    assert len(lines) == sum(len(r["run"]) for r in report["benchmarks"])
    found = {(line["benchmark"], line["field"]): line for line in lines}
    nodes = found["ray/reflection", "nodes_per_ray"]
    assert (float(nodes["value"]), nodes["run"]) == (20.0, "counted")
    assert found["ray/shadow", "nodes_per_hit_ray"]["value"] == ""
    assert found["ray/reflection", "real_time"]["unit"] == "ms"


class Page(HTMLParser):
    """What a page refers to, and whether its tags are balanced."""

    VOID = {"meta", "img", "br", "rect", "link"}

    def __init__(self) -> None:
        super().__init__()
        self.references: list[str] = []
        self.open: list[str] = []
        self.seen: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)
        self.references += [v or "" for k, v in attrs if k in ("src", "href")]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def read_page(document: Document) -> Page:
    report, measurement = document
    page = Page()
    page.feed(report_html(report, measurement.main.image, measurement.main.nodes))
    page.close()
    return page


def test_page_is_self_contained(document: Document) -> None:
    page = read_page(document)
    assert page.open == []
    # The picture, a heat map for each of two ray types, and one of their sum.
    assert len(page.references) == 4
    assert all(r.startswith("data:image/") for r in page.references)
    assert "script" not in page.seen and "link" not in page.seen
    assert "svg" in page.seen


def test_page_escapes_names(document: Document) -> None:
    report, measurement = document
    report["context"]["scene"] = "<b>&.glb"
    report["benchmarks"].append({**row(report, "build/static"), "name": "build/<script>x"})
    page = Page()
    page.feed(report_html(report, measurement.main.image, measurement.main.nodes))
    assert "script" not in page.seen and "<b>&.glb" in page.text


def test_cpu_time_is_never_shown_as_gpu_time(document: Document) -> None:
    report, _ = document
    assert "not with a GPU's" in timing_label(report["context"])
    assert "not with a GPU's" in read_page(document).text
    console = Console(width=140, record=True, file=io.StringIO())
    console.print(report_tables(report))
    text = console.export_text()
    assert "not with a GPU's" in text and "CPU ms" in text
    assert "reflection" in text and "static" in text


def test_a_cost_model_that_is_far_off_says_so() -> None:
    def said(predicted: float | None, measured: float | None) -> str:
        residual = None if predicted is None or measured is None else measured - predicted
        return model_sentence({"predicted": predicted, "measured": measured, "residual": residual})

    assert "treeline fit" in said(83.0, 62.0) and "treeline fit" in said(12.0, 21.0)
    assert "treeline fit" not in said(60.0, 62.0) and "treeline fit" not in said(None, None)


def test_dropped_records_are_shouted_everywhere(document: Document) -> None:
    report, _ = document
    report["context"]["valid"] = False
    assert "INVALID" in read_page(document).text
    console = Console(width=140, record=True, file=io.StringIO())
    console.print(report_tables(report))
    assert "INVALID" in console.export_text()


def test_missing_timestamps_give_nulls_not_zeros(document: Document) -> None:
    report, measurement = document
    for r in report["benchmarks"]:
        if r["name"].startswith(("pass/", "frame/", "ray/")):
            r["real_time"] = r["real_time_p95"] = None
    report["context"]["timing_source"] = "wall-clock"
    report["context"]["adapter_type"] = "DiscreteGPU"
    page = Page()
    page.feed(report_html(report, measurement.main.image, measurement.main.nodes))
    assert "no timestamps" in page.text
    console = Console(width=140, file=io.StringIO())
    console.print(report_tables(report))


def test_long_tables_are_folded_not_cut(document: Document) -> None:
    report, _ = document
    first = row(report, "build/static")
    for index in range(40):
        report["benchmarks"].append({**first, "name": f"build/extra{index}"})
    text = read_page(document).text
    assert all(f"extra{index}" in text for index in range(40))
    console = Console(width=140, record=True, file=io.StringIO())
    console.print(report_tables(report))
    assert "and 31 more" in console.export_text()


def test_an_adapter_without_timestamps(fake_frame: Any, silent: Any, document: Document) -> None:
    from treeline.measure import measure
    from treeline.report import frame_rows, model_rows, ray_rows
    from treeline.report_objects import object_rows

    class Untimed(fake_frame):
        def run(self, frame_index: int = 0) -> Any:
            stats = super().run(frame_index)
            passes = dict.fromkeys(stats.passes, np.nan)
            return replace(stats, passes=passes, frame_total_ms=np.nan, frame_gaps_ms=np.nan)

    measurement = measure(Untimed, 50, 20, 2, 1, silent)
    rows = [*frame_rows(measurement.main), *ray_rows(measurement), *object_rows(measurement)]
    for r in plain([*rows, *model_rows(measurement)]):
        json.dumps(r, allow_nan=False)
        if not r["name"].startswith("model/"):
            assert r["real_time"] is None, r["name"]


def test_types_that_are_traced_mixed_have_no_time_of_their_own(
    fake_frame: Any, silent: Any
) -> None:
    from treeline.measure import measure
    from treeline.report import frame_rows, model_rows, ray_rows

    class Mixed(fake_frame):
        def run(self, frame_index: int = 0) -> Any:
            stats = super().run(frame_index)
            return replace(stats, passes={**stats.passes, "traverse/mixed_0": 1.5})

    measurement = measure(Mixed, 50, 20, 2, 1, silent)
    for row in plain(ray_rows(measurement)):
        assert row["real_time"] is None and row["mrays_per_s"] is None and row["rays"]
    named = {row["name"]: row for row in frame_rows(measurement.main)}
    assert named["pass/traverse/mixed_0"]["real_time"] == 1.5
    assert not model_rows(measurement)
