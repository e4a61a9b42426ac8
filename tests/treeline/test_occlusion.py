"""The command line's two options of ambient occlusion, and what they write."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]
OneLine = Callable[[Any, int], str]


def test_a_frame_with_occlusion(run: Run, box: Path, tmp_path: Path) -> None:
    def render(name: str, *more: Any) -> dict[str, Any]:
        made = run(
            "render", "--scene", box, "--size", "32x20", "--samples", 1, "--json", "-",
            "--out", tmp_path / name, *more,
        )  # fmt: skip
        assert made.exit_code == 0, made.stderr
        data: dict[str, Any] = json.loads(made.stdout)
        return data

    plain, occluded = render("a.png"), render("b.png", "--occlusion")
    assert set(occluded["rays"]) - set(plain["rays"]) == {"occlusion"}
    assert occluded["rays"]["occlusion"] > 20
    assert occluded["result_hash"] != plain["result_hash"]
    counted = render("c.png", "--occlusion", "--occlusion-radius", 0.5, "--aov", "nodes/occlusion")
    assert counted["rays"] == occluded["rays"]


def test_a_report_and_a_capture_of_it(run: Run, box: Path, tmp_path: Path) -> None:
    made = run(
        "report", "--scene", box, "--size", "32x20", "--frames", 1, "--warmup", 0,
        "--occlusion", "--occlusion-radius", 0.5, "--out", tmp_path / "report", "--quiet",
    )  # fmt: skip
    assert made.exit_code == 0, made.stderr
    assert "occlusion" in made.stdout
    document = json.loads((tmp_path / "report" / "report.json").read_text())
    rows = {row["name"]: row for row in document["benchmarks"]}
    assert document["context"]["occlusion_radius"] == 0.5
    assert rows["ray/occlusion"]["rays"] > 20 and rows["ray/occlusion"]["nodes_per_ray"] >= 1
    assert rows["pass/traverse/occlusion/0"]["real_time"] > 0
    assert rows["model/frame"]["occlusion_ns_per_ray"] > 0
    assert any(n.startswith("object/") and n.endswith("/occlusion") for n in rows)
    taken = tmp_path / "frame.npz"
    made = run(
        "capture", "--scene", box, "--size", "32x20", "--occlusion", "--out", taken, "--json", "-"
    )
    assert json.loads(made.stdout)["rays"]["occlusion"] == rows["ray/occlusion"]["rays"]
    made = run("replay", taken)
    assert made.exit_code == 0 and "occlusion" in made.stdout


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--occlusion-radius", 2], "--occlusion-radius needs --occlusion"),
        (["--occlusion", "--occlusion-radius", 0], "--occlusion-radius is more than 0 metres, not"),
        (["--aov", "nodes/occlusion"], "no output is named 'nodes/occlusion'"),
    ],
)
def test_what_cannot_be_is_refused(
    run: Run, one_line: OneLine, box: Path, tmp_path: Path, options: list[Any], told: str
) -> None:
    made = run("render", "--scene", box, "--out", tmp_path / "a.png", *options)
    assert told in one_line(made, 2)


def test_a_queue_that_the_frame_has_not(
    run: Run, one_line: OneLine, box: Path, tmp_path: Path
) -> None:
    made = run("capture", "--scene", box, "--queue", "occlusion", "--out", tmp_path / "a.npz")
    assert "no ray queue is named 'occlusion'" in one_line(made, 2)
