"""`treeline build`: what it measures, where it builds, what it keeps, what it refuses."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bvh.container import load
from engine.gpu.device import Device
from engine.gpu.errors import LimitError
from treeline.scene_build import SUMS, total_row

Run = Callable[..., Any]
OneLine = Callable[[Any, int], str]
QUICK = ("--optimize", 1, "--samples", 500)
NEAR = ("--pairing", "near")


def _json(run: Run, *words: object) -> dict[str, Any]:
    result = run("build", *words, "--json", "-")
    assert result.exit_code == 0, result.output
    data: dict[str, Any] = json.loads(result.stdout, parse_constant=pytest.fail)
    return data


def test_every_number_of_a_build_on_the_cpu(run: Run, box: Path, tmp_path: Path) -> None:
    out = tmp_path / "box.npz"
    words = ("--scene", box, *QUICK, "--builder", "ploc", "--pairing", "best")
    data = _json(run, *words, "--out", out)
    context = data["context"]
    assert (context["builder"], context["optimize"], context["leaf"]) == ("ploc", 1, 2)
    assert (context["pairing"], context["on"], context["scene"]) == ("best", "cpu", "box.obj")
    assert context["timing_source"] == "wall-clock, CPU" and context["adapter"] is None
    (row,) = data["blas"]
    assert row["triangles"] == 12 and row["blocks"] == row["pairs"] == 6 and row["fans"] == 0
    assert row["triangles_per_block"] == 2.0 and row["duplication"] == 1.0
    assert row["dropped_degenerate"] == row["dropped_nonfinite"] == 0
    assert set(row["phases_ms"]) == {"blocks", "tree", "reinsertion", "collapse", "encode"}
    assert 0 < sum(row["phases_ms"].values()) <= row["build_ms"]
    assert row["sah"] > 1 and row["epo"] >= 0 and row["epo_standard_error"] >= 0
    assert 0 <= row["sibling_overlap"] < 1 and 1 < row["fill"] <= 4 and row["depth"] >= 1
    assert not row["cached"] and row["compaction"] is None
    links = row["bytes"] // 64 * 4
    assert row["bytes_with_links"] == row["bytes"] + links
    assert row["bytes_per_triangle"] == pytest.approx((row["bytes"] + links) / 12)
    saved = load(out)
    assert data["bytes"] == saved.words.nbytes and data["parent_bytes"] == saved.parents.nbytes
    assert data["tlas_bytes"] + row["bytes"] <= data["bytes"] and data["instances"] == 1


def test_totals_are_sums(run: Run, shared_scenes: Path) -> None:
    scene = shared_scenes / "CesiumMilkTruck.glb"
    words = ("--scene", scene, "--builder", "lbvh", "--optimize", 0, "--samples", 0)
    data = _json(run, *words, "--group", "object")
    rows, total = data["blas"], data["total"]
    assert len(rows) > 1 and "epo" not in rows[0] and "reinsertion" not in rows[0]["phases_ms"]
    for name in ("triangles", "blocks", "pairs", "nodes_fp16", "nodes_fp32", "bytes", "build_ms"):
        assert total[name] == pytest.approx(sum(row[name] for row in rows))
    for name, ms in total["phases_ms"].items():
        assert ms == pytest.approx(sum(row["phases_ms"][name] for row in rows))
    text = run("build", *words, "--group", "object").stdout
    for word in ("Phases", "SAH", "EPO", "fill", "overlap", "pairs", "fans", "dropped", "all"):
        assert word in text


def test_the_gpu_makes_the_same_file_and_compacts(run: Run, box: Path, tmp_path: Path) -> None:
    words = ("--scene", box, *QUICK, *NEAR, "--leaf", 4)
    files = [tmp_path / "cpu.npz", tmp_path / "gpu.npz", tmp_path / "auto.npz"]
    on_cpu = _json(run, *words, "--on", "cpu", "--out", files[0])
    on_gpu = _json(run, *words, "--on", "gpu", "--out", files[1], "--compact")
    chosen = _json(run, *words, "--out", files[2])
    places = [data["context"]["on"] for data in (on_cpu, on_gpu, chosen)]
    assert places == ["cpu", "gpu", "gpu"]
    one, other, third = (load(file) for file in files)
    assert one.words.tobytes() == other.words.tobytes() == third.words.tobytes()
    (row,) = on_gpu["blas"]
    assert row["fans"] > 0 and {"set-up", "reinsertion", "encode"} <= set(row["phases_ms"])
    assert row["build_ms"] == pytest.approx(sum(row["phases_ms"].values()))
    tight = row["compaction"]
    assert tight["before_bytes"] > tight["after_bytes"] == row["bytes_with_links"]
    assert tight["peak_bytes"] == tight["before_bytes"] + tight["after_bytes"]
    assert on_gpu["total"]["compaction"] == tight and tight["ms"] > 0
    text = run("build", *words, "--on", "gpu", "--compact").stdout
    assert "compaction:" in text and "at the peak" in text


def test_the_output_buffer_is_at_the_peak_once() -> None:
    rows = []
    for before, after in ((1000, 300), (4000, 2000), (1000, 100)):
        tight = {"before_bytes": before, "after_bytes": after, "peak_bytes": 0, "ms": 0.5}
        row = {**dict.fromkeys(SUMS, 1), "build_ms": 2.0, "cached": False, "phases_ms": {"a": 1.0}}
        rows.append({**row, "compaction": tight})
    total = total_row([*rows, {**rows[0], "cached": True, "phases_ms": {}, "compaction": None}])
    expected = {"before_bytes": 6000, "after_bytes": 2400, "peak_bytes": 6400, "ms": 1.5}
    assert total["compaction"] == expected
    assert total["build_ms"] == 6.0 and total["phases_ms"] == {"a": 3.0} and total["blocks"] == 4
    assert total_row([])["bytes_per_triangle"] == 0 and total_row([])["compaction"] is None


def test_compaction_notices_a_changed_byte(
    run: Run, box: Path, monkeypatch: pytest.MonkeyPatch, one_line: OneLine
) -> None:
    from bvh.gpu.compaction import GpuCompaction

    encode = GpuCompaction.encode

    def damaged(self: Any, scope: Any, buffers: Any, instances: int) -> None:
        self.units -= 64 // 4
        encode(self, scope, buffers, instances)

    monkeypatch.setattr(GpuCompaction, "encode", damaged)
    words = ("build", "--scene", box, *QUICK, *NEAR, "--on", "gpu", "--compact")
    assert "compaction" in one_line(run(*words), 1)


def test_wrong_values_are_one_line(run: Run, box: Path, one_line: OneLine) -> None:
    for words, expected in (
        (("--builder", "magic"), "unknown builder 'magic'; known: sah"),
        (("--nodes", "fp8"), "unknown node format 'fp8'; known: auto"),
        (("--leaf", 3), "1, 2 or 4"),
        (("--collapse", "flat"), "unknown collapse 'flat'; known: best, greedy"),
        (("--pairing", "far"), "unknown pairing 'far'; known: best, near"),
        (("--optimize", -1), "0 to 1000 rounds, not -1"),
        (("--on", "moon"), "unknown place to build 'moon'; known: cpu, gpu, auto"),
        (("--on", "gpu", "--pairing", "best"), "add --pairing near"),
        (("--on", "gpu", *NEAR, "--builder", "spatial", "--leaf", 4), "not 4"),
        (("--compact", "--pairing", "best"), "add --on gpu --pairing near"),
    ):
        error = one_line(run("build", "--scene", box, *words), 2)
        assert expected in error
        if "--compact" not in words:
            assert error == one_line(run("inspect", "--scene", box, *words), 2)


def test_auto_builds_on_the_cpu_what_has_no_room(
    run: Run, box: Path, monkeypatch: pytest.MonkeyPatch, one_line: OneLine
) -> None:
    check = Device.check_binding

    def small(self: Any, name: str, size: int) -> None:
        if name.startswith("a mesh"):
            raise LimitError("it is too large")
        check(self, name, size)

    monkeypatch.setattr(Device, "check_binding", small)
    words = ("--scene", box, *QUICK, *NEAR)
    assert _json(run, *words)["context"]["on"] == "cpu"
    assert run("inspect", "--scene", box, "--optimize", 1, *NEAR, "--no-cache").exit_code == 0
    error = one_line(run("build", *words, "--on", "gpu"), 2)
    assert "static, 12 triangles: it is too large" in error


def test_what_cannot_be_built_on_a_gpu_is_not_by_auto(run: Run, box: Path) -> None:
    words = ("--scene", box, *QUICK, "--builder", "spatial", "--leaf", 4)
    assert _json(run, *words, *NEAR)["context"]["on"] == "cpu"


def test_the_users_cache(
    run: Run, box: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "cache"
    monkeypatch.setenv("TREELINE_CACHE", str(folder))
    for words in (("build", *QUICK), ("validate",), ("inspect", "--no-cache")):
        assert run(words[0], "--scene", box, *words[1:]).exit_code == 0
        assert not folder.exists()
    assert run("inspect", "--scene", box, "--optimize", 1).exit_code == 0
    assert len(list(folder.iterdir())) == 1
    data = _json(run, "--scene", box, *QUICK, "--cache")
    assert data["blas"][0]["cached"] and data["blas"][0]["phases_ms"] == {}
    assert data["total"]["build_ms"] == 0
    # Other options are another structure.
    assert not _json(run, "--scene", box, *QUICK, "--cache", "--leaf", 1)["blas"][0]["cached"]


def test_a_report_builds_on_its_device_and_says_so(
    run: Run, box: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TREELINE_CACHE", str(tmp_path / "cache"))
    words = ("--scene", box, "--size", "16x16", *NEAR, "--optimize", 1)
    made = run("render", *words, "--samples", 1, "--out", tmp_path / "f.png")
    assert made.exit_code == 0 and "building 1 BLAS on the CPU" not in made.stderr
    short = ("--frames", 1, "--warmup", 0, "--out", tmp_path / "out")
    context = json.loads(run("report", *words, *short, "--json", "-").stdout)["context"]
    assert (context["on"], context["pairing"], context["optimize"]) == ("gpu", "near", 1)
    assert (context["leaf"], context["collapse"], context["nodes"]) == (2, "best", "auto")
    assert (context["blas_built"], context["blas_cached"]) == (0, 1)
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "pairing near, opacity triangle (" in page
    assert "; 0 BLAS built on the GPU, 1 from the cache" in page


def test_tests_keep_out_of_the_users_cache() -> None:
    assert "treeline-cache-" in os.environ["TREELINE_CACHE"]
