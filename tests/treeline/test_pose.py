"""`--time` and `--clip` of commands, and captures of a scene that moves."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bvh.build import BuildOptions
from engine.scene.load import load_scene
from passes.hybrid import FrameOptions, HybridFrame
from passes.prepare import prepare
from treeline.capture import capture_frame, load, save
from treeline.replay import replay_queue

Run = Callable[..., Any]
OneLine = Callable[[Any, int], str]
QUICK = ("--optimize", 0, "--builder", "lbvh", "--no-cache")


def _render(run: Run, scene: Path, out: Path, *words: object) -> Any:
    size = ("--size", "64x36", "--samples", 1, "--json", "-", "-q")
    return run("render", "--scene", scene, "--out", out, *size, *QUICK, *words)


def test_render_at_a_time(run: Run, shared_scenes: Path, tmp_path: Path) -> None:
    fox, out = shared_scenes / "Fox.glb", tmp_path / "fox.png"
    poses: list[tuple[object, ...]] = [(), ("--time", 0.4), ("--clip", "Run")]
    found = [json.loads(_render(run, fox, out, *words).stdout) for words in poses]
    said = [(x.get("clip"), x.get("time")) for x in found]
    assert said == [(None, None), ("Survey", 0.4), ("Run", 0.0)]
    assert len({x["result_hash"] for x in found}) == 3


def test_an_independent_rasteriser_sees_the_pose(
    run: Run, shared_scenes: Path, tmp_path: Path
) -> None:
    for name in ("Fox.glb", "CesiumMilkTruck.glb"):
        words = ("--time", 0.4, "--oracle", "pyrender")
        result = _render(run, shared_scenes / name, tmp_path / "a.png", *words)
        oracle = json.loads(result.stdout)["oracle"]
        assert oracle["compared"] == 64 * 36
        assert max(oracle[key] for key in ("silhouette", "depth", "object")) <= 8, oracle


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--time", 1), "--time: nothing moves in box"),
        (("--clip", "walk"), "--clip: nothing moves in box"),
    ],
)
def test_still_scenes_refuse(
    run: Run, box: Path, tmp_path: Path, one_line: OneLine, words: Any, message: str
) -> None:
    out = tmp_path / "out"
    assert message in one_line(run("render", "--scene", box, "--out", f"{out}.png", *words), 2)
    assert message in one_line(run("report", "--scene", box, "--out", out, *words), 2)
    assert list(tmp_path.iterdir()) == [box]


def test_bad_times_and_clips(
    run: Run, shared_scenes: Path, tmp_path: Path, one_line: OneLine
) -> None:
    given = ("render", "--scene", shared_scenes / "Fox.glb", "--out", tmp_path / "a.png")
    assert "'Survey', 'Walk', 'Run'" in one_line(run(*given, "--clip", "Fly"), 2)
    assert "finite" in one_line(run(*given, "--time", "inf"), 2)


@pytest.mark.parametrize(("update", "how"), [("refit", "refit"), ("rebuild", "build")])
def test_report_at_a_time(
    run: Run, shared_scenes: Path, tmp_path: Path, update: str, how: str
) -> None:
    size = ("--size", "64x36", "--frames", 2, "--warmup", 1)
    given = ("report", "--scene", shared_scenes / "Fox.glb", "--out", tmp_path / "out", *QUICK)
    result = run(*given, *size, "--time", 0.4, "--clip", "Run", "--update", update, "-q")
    assert result.exit_code == 0, result.output
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    context = report["context"]
    assert (context["clip"], context["time"], context["valid"]) == ("Run", 0.4, True)
    rows = {row["name"]: row for row in report["benchmarks"]}
    updates = [f"pass/update/{name}" for name in ("skin", how, "tlas")]
    assert context["update"] == update
    assert [name for name in rows if name.startswith("pass/update/")] == updates
    assert all(rows[name]["real_time"] > 0 for name in updates)
    spent = rows["model/frame"]["build_update_cost"]
    assert spent == pytest.approx(sum(rows[name]["real_time"] for name in updates), rel=0.5)


def test_a_capture_holds_the_structure_that_was_traced(
    device: Any, shared_scenes: Path, tmp_path: Path
) -> None:
    prepared = prepare(
        load_scene(shared_scenes / "Fox.glb"), BuildOptions(builder="lbvh", reinsertion=0)
    )
    for update in ("refit", "rebuild"):
        frame = HybridFrame(device, prepared, FrameOptions(64, 36, update=update))
        assert frame.run(0, inputs=replace(frame.inputs, clip="Run", time=0.4)).valid
        taken = capture_frame(frame, frame.data.rays, scene_name="fox", scene_sha256="00")
        save(tmp_path / "fox.npz", taken)
        loaded = load(tmp_path / "fox.npz")
        assert loaded.identity["pose"] == {"clip": "Run", "time": 0.4}
        assert (loaded.buffers["bvh"] == frame.bvh().words).all()
        versions = [blas["content_version"] for blas in loaded.identity["guest"]["blas"]]
        assert versions == [int(update == "rebuild")]
        for queue in loaded.queues:
            result = replay_queue(device, loaded, queue)
            assert result.rays == len(queue.records) and len(result.different) == 0
