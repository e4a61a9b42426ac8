"""The viewer's document has the numbers of `treeline report` for the same frame."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bvh.blas import BuildOptions
from bvh.blas_cache import BlasCache
from engine.gpu.errors import UserError
from passes.hit_table import SUBGROUP
from passes.option_list import ViewSettings
from treeline import structures
from treeline.report_csv import report_csv
from treeline.report_html import report_html
from treeline.report_table import report_tables
from treeline.scenes import load
from treeline.view.session import ViewSession

Open = Callable[..., ViewSession]
Until = Callable[..., int]


def counted_fields(document: dict[str, Any]) -> dict[tuple[str, str], Any]:
    """Every number that is no time, by row and field."""
    fields = {}
    for row in document["benchmarks"]:
        if row["name"].startswith(("ray/", "object/")):
            for field, run in row["run"].items():
                if run == "counted" or field in ("rays", "payload_bytes", "dropped"):
                    fields[row["name"], field] = row[field]
        if row["name"].startswith("build/"):
            fields |= {(row["name"], f): row[f] for f in ("triangles", "bytes", "sah", "fill")}
    return fields


def test_numbers_equal_a_report_of_the_same_frame(
    run: Callable[..., Any],
    open_session: Open,
    until: Until,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("treeline.measure.MODEL_SCALES", (0.1, 0.2))  # not what is compared
    words = ("--size", "160x90", "--frames", 1, "--warmup", 0, "--quiet", "--out", tmp_path / "r")
    assert run("report", *words, "--builder", "lbvh", "--optimize", 0).exit_code == 0
    report = json.loads((tmp_path / "r" / "report.json").read_text())

    scene, build = load(None), BuildOptions(builder="lbvh", reinsertion=0)
    structure = structures.build(scene, build, "static", cache=BlasCache())
    frame = replace(ViewSettings().frame, count_lanes=True)  # as reports do
    settings = ViewSettings(frame=frame, build=build)
    session = open_session((160, 90), settings, scene, structure=structure)
    until(session, lambda: session.samples >= 3)
    document = session.document()

    fields, shown = counted_fields(report), counted_fields(document)
    assert len(fields) > 300
    # Which rays share a subgroup depends on the order in which workgroups got their places.
    by_order = ("active_lane_ratio", "nodes_per_subgroup_step", f"materials_per_{SUBGROUP}_rays")
    for key in [key for key, value in fields.items() if key[1] in by_order and value]:
        assert shown.pop(key) == pytest.approx(fields.pop(key), rel=0.1)
    assert shown == fields
    for name in ("result_hash", "width", "height", "triangles", "camera", "light", "scene_sha256"):
        assert document["context"][name] == report["context"][name]
    assert document["context"]["frames"] == session.samples
    names = [row["name"] for row in report["benchmarks"] if row["name"] != "model/frame"]
    assert [row["name"] for row in document["benchmarks"]] == names


def test_every_writer_of_reports_takes_the_document(open_session: Open, until: Until) -> None:
    session = open_session()
    with pytest.raises(UserError, match="nothing has been measured"):
        session.document()
    until(session, lambda: session.ready)
    document = session.document()
    json.dumps(document, allow_nan=False)
    assert report_csv(document) and report_tables(document)
    assert session.frame is not None
    assert "Not fitted" in report_html(document, session.frame.image(), {})


def test_without_counters_counts_are_null_and_times_are_not(
    open_session: Open, until: Until, no_counts: ViewSettings
) -> None:
    session = open_session(settings=no_counts)
    until(session, lambda: session.ready)
    document = session.document()
    ray = next(row for row in document["benchmarks"] if row["name"] == "ray/reflection")
    assert ray["nodes_per_ray"] is None and ray["hits"] is None and ray["rays"] > 0
    assert ray["real_time"] > 0 and document["context"]["result_hash"] is None
    assert not [row for row in document["benchmarks"] if row["name"].startswith("object/")]


def test_the_camera_and_the_settings_are_those_that_are_shown(
    open_session: Open, until: Until
) -> None:
    session = open_session()
    transform = session.camera.transform.copy()
    transform[0, 3] += 0.5
    session.set_camera(replace(session.camera, transform=transform), moving=False)
    until(session, lambda: session.ready)
    context = session.document()["context"]
    assert context["camera"] == {"source": "viewer", "transform": transform.tolist()}
    assert context["settings"]["builder"] == "ploc" and context["settings"]["mask/shadow"] == 255
