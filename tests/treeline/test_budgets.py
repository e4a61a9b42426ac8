"""Budgets: what they say, what they hold a frame against, and where it is over."""

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from engine.gpu.errors import UserError
from passes.frame_options import FrameOptions
from treeline.budgets import (
    Budget,
    budget_rows,
    check_budgets,
    median_spent,
    over_sentence,
    parse_budgets,
    plot_lines,
)
from treeline.measure import measure
from treeline.report_csv import report_csv
from treeline.report_html import report_html
from treeline.report_row import Row
from treeline.report_table import report_tables


def test_budgets_in_ms_and_in_rays() -> None:
    assert parse_budgets("reflection=2.1, shadow=1ms,update=.5") == (
        Budget("reflection", 2.1),
        Budget("shadow", 1.0),
        Budget("update", 0.5),
    )
    assert parse_budgets("a=300krays,b=1.5Mrays,c=7rays") == (
        Budget("a", 300_000, "rays"),
        Budget("b", 1_500_000, "rays"),
        Budget("c", 7, "rays"),
    )


@pytest.mark.parametrize(
    "text",
    ["", "reflection", "reflection=", "=2", "a=-1", "a=0", "a=2 s", "a=nan", "a=1,", "a=kms"],
)
def test_what_is_no_budget(text: str) -> None:
    with pytest.raises(UserError, match="a budget is NAME=MS or TYPE=RAYS"):
        parse_budgets(text)
    with pytest.raises(UserError, match="two budgets for a"):
        parse_budgets("a=1,a=2")


def test_names_that_a_frame_does_not_have() -> None:
    options = FrameOptions(8, 8)
    known = (
        "frame=9,update=1,reflection=1,shadow=100rays,traverse=2,traverse/shadow/0=1,composite=1"
    )
    check_budgets(parse_budgets(known), options)
    with pytest.raises(UserError, match="'reflexion'; there are frame, update, gbuffer, .*shadow"):
        check_budgets(parse_budgets("reflexion=1"), options)
    with pytest.raises(UserError, match="no part of the frame is named 'occlusion'"):
        check_budgets(parse_budgets("occlusion=1"), options)
    check_budgets(parse_budgets("occlusion=1"), FrameOptions(8, 8, occlusion=True))
    with pytest.raises(UserError, match="no rays are named 'composite'; there are reflection, sh"):
        check_budgets(parse_budgets("composite=1krays"), options)
    mixed = FrameOptions(8, 8, passes="mixed")
    check_budgets(parse_budgets("shadow=1krays,traverse=1"), mixed)
    with pytest.raises(UserError, match="no time of their own with --passes mixed"):
        check_budgets(parse_budgets("shadow=1"), mixed)


def rows_of(text: str, fake_frame: Any, silent: Any) -> list[Row]:
    return budget_rows(parse_budgets(text), measure(fake_frame, 50, 20, 3, 0, silent).main)


def test_lines_are_sums_of_passes(fake_frame: Any, silent: Any) -> None:
    text = "frame=11,reflection=5.9,traverse=5,update=1,gbuffer=2.5,shadow=999rays"
    rows = {row["name"]: row for row in rows_of(text, fake_frame, silent)}
    assert rows["budget/frame"]["spent"] == 11.0 and not rows["budget/frame"]["over"]
    assert rows["budget/reflection"]["spent"] == 6.0 and rows["budget/reflection"]["over"]
    assert rows["budget/traverse"]["spent"] == 5.0 and not rows["budget/traverse"]["over"]
    assert rows["budget/update"]["spent"] == 0.0 and rows["budget/update"]["used"] == 0.0
    assert rows["budget/gbuffer"]["used"] == pytest.approx(0.8)
    assert rows["budget/shadow"]["spent"] == 1000 and rows["budget/shadow"]["over"]
    sentence = over_sentence(list(rows.values()))
    assert sentence == "over budget: reflection 6 of 5.9 ms, shadow 1,000 of 999 rays"
    assert over_sentence(rows_of("frame=11", fake_frame, silent)) is None


def test_an_adapter_without_a_timer_is_neither_over_nor_under(make_stats: Any) -> None:
    stats = make_stats(50, 20)
    untimed = stats.passes | dict.fromkeys(stats.passes, float("nan"))
    stats.passes.update(untimed)
    assert median_spent(Budget("shadow", 1.0), [stats]) is None
    assert median_spent(Budget("shadow", 1.0), []) is None
    assert median_spent(Budget("shadow", 1.0, "rays"), [stats]) == 1000
    assert (
        median_spent(Budget("occlusion", 1.0, "rays"), [stats]) == 0
    )  # switched off in the viewer


def test_every_writer_says_over_or_under(document: Any, fake_frame: Any, silent: Any) -> None:
    report, measurement = document
    report["benchmarks"] += rows_of("reflection=5.9,shadow=1.5", fake_frame, silent)
    page = report_html(report, measurement.main.image, measurement.main.nodes)
    assert "<h2>Budgets</h2>" in page and "OVER" in page and "under" in page
    console = Console(width=120, record=True, file=io.StringIO())
    console.print(report_tables(report))
    text = console.export_text()
    assert "Budgets" in text and "OVER" in text and "under" in text
    assert "budget/reflection,limit,5.9,,timed" in report_csv(report)


def test_plots_have_lines_at_milliseconds() -> None:
    lines = plot_lines(parse_budgets("reflection=2.1,shadow=1krays"))
    assert lines == {"reflection 2.1 ms": 2.1}


def test_report_ends_with_1_where_it_is_over(
    run: Callable[..., Any], box: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("treeline.measure.MODEL_SCALES", ())
    words = ("report", "--scene", box, "--size", "16x16", "--frames", 1, "--warmup", 0, "--quiet")
    result = run(*words, "--out", tmp_path / "r", "--budget", "frame=0.001,shadow=1krays")
    assert result.exit_code == 1
    assert "treeline: error: over budget: frame" in result.stderr and "shadow" not in result.stderr
    rows = json.loads((tmp_path / "r" / "report.json").read_text())["benchmarks"]
    assert {r["name"]: r["over"] for r in rows if r["name"].startswith("budget/")} == {
        "budget/frame": True,
        "budget/shadow": False,
    }
    result = run(*words, "--out", tmp_path / "no", "--budget", "shadwo=1")
    assert result.exit_code == 2 and "no part of the frame is named 'shadwo'" in result.stderr
    assert not (tmp_path / "no").exists()
