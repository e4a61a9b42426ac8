"""`treeline bench build`: cases, scenes, rays, the record's fields, and what is refused."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import treeline.bench_build as module
from bvh.blas import BuildOptions
from bvh.raysets import load, save
from engine.gpu.errors import CheckFailed, UserError
from engine.scene.load import load_scene
from treeline.bench_build import parse_case, random_triangles
from treeline.pass_times import spread, time_passes
from treeline.scenes import baked_triangles

Run = Callable[..., Any]
OneLine = Callable[[Any, int], str]
QUICK = ("--repeats", 2, "--samples", 400, "--json", "-")
SPREAD = {"median", "low", "high", "min", "max"}


def test_cases() -> None:
    near = BuildOptions(builder="lbvh", reinsertion=0, leaf=4, nodes="fp32", pairing="near")
    assert parse_case("lbvh", 4, "fp32").options == near
    assert parse_case("lbvh/greedy", 4, "fp32").options == replace(near, collapse="greedy")
    both = parse_case("ploc+30/greedy", 4, "fp32")
    assert both.options == replace(near, builder="ploc", reinsertion=30, collapse="greedy")
    assert both.name == "ploc+30/greedy" and not both.on_cpu
    cpu = parse_case("cpu:sah+5", 4, "fp32")
    assert cpu.options == replace(near, builder="sah", reinsertion=5, pairing="best")
    assert cpu.on_cpu


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("magic", "unknown builder 'magic'"),
        ("", "unknown builder ''"),
        ("sah+", "a case is [cpu:]builder"),
        ("sah+x", "a case is [cpu:]builder"),
        ("sah+-1", "a case is [cpu:]builder"),
        ("sah+1001", "0 to 1000 rounds"),
        ("sah/flat", "unknown collapse 'flat'"),
        ("gpu:sah", "unknown builder 'gpu:sah'"),
    ],
)
def test_no_cases(text: str, expected: str) -> None:
    with pytest.raises(UserError) as caught:
        parse_case(text, 2, "auto")
    assert expected in str(caught.value)


def test_triangles_of_scenes_and_of_none(shared_scenes: Path) -> None:
    scene = load_scene(shared_scenes / "CesiumMilkTruck.glb")
    triangles = baked_triangles(scene)
    assert len(triangles) == scene.triangle_count and triangles.dtype == np.float32
    low, high = scene.bounds()
    assert np.allclose(triangles.min(axis=(0, 1)), low, atol=1e-5)
    assert np.allclose(triangles.max(axis=(0, 1)), high, atol=1e-5)
    random = random_triangles(500)
    assert random.shape == (500, 3, 3) and (random == random_triangles(500)).all()
    reach = np.ptp(random, axis=1).max(axis=1)
    assert reach.min() < 1e-3 and reach.max() > 0.05


def test_a_record_of_random_triangles(run: Run) -> None:
    words = ("--random", 300, "--random", 40, "--cases", "lbvh/greedy,ploc+1,cpu:sah", *QUICK)
    result = run("bench", "build", *words)
    assert result.exit_code == 0, result.output
    record = json.loads(result.stdout, parse_constant=pytest.fail)
    context = record["context"]
    assert context["repeats"] == 2 and context["adapter"] and context["timing_source"]
    assert [part["scene"] for part in record["scenes"]] == ["300 random", "40 random"]
    assert [part["given_triangles"] for part in record["scenes"]] == [300, 40]
    rows = record["scenes"][0]["builds"]
    assert [row["case"] for row in rows] == ["lbvh/greedy", "ploc+1", "cpu:sah"]
    for row in rows:
        assert set(row["ms"]) == SPREAD and row["triangles"] == 300
        assert 0 < row["ms"]["min"] <= row["ms"]["median"] <= row["ms"]["max"]
        assert row["bytes_with_links"] == row["bytes"] + row["bytes"] // 16
        assert row["bytes_per_triangle"] == row["bytes_with_links"] / 300
        assert row["sah"] > 1 and row["epo"] > 0 and row["epo_standard_error"] > 0
        assert row["nodes_fp16"] + row["nodes_fp32"] > 30 and 2 < row["fill"] <= 4
        if not row["case"].startswith("cpu:"):
            assert row["dispatches"] > 10 and row["scratch_bytes"] > 300 * 100
            assert {"set-up", "collapse", "encode"} <= set(row["phases_ms"])
            assert all(set(times) == SPREAD for times in row["phases_ms"].values())
    assert "reinsertion" in rows[1]["phases_ms"] and "reinsertion" not in rows[0]["phases_ms"]
    assert rows[2]["phases_ms"] == {} and rows[2]["dispatches"] == 0
    assert rows[1]["options"]["reinsertion"] == 1 and rows[1]["options"]["pairing"] == "near"


def test_a_scene_with_rays(run: Run, box: Path, tmp_path: Path, one_line: OneLine) -> None:
    rays: list[object] = []
    files = {kind: tmp_path / f"{kind}.npz" for kind in ("primary", "shadow")}
    for kind, file in files.items():
        rays += ["--rays", file]
        words = ("--scene", box, "--size", "24x16", "--kind", kind, "--out", file)
        assert run("rays", *words).exit_code == 0
    cases = ("--cases", "lbvh,cpu:sah", "--leaf", 1)
    result = run("bench", "build", box, *rays, *cases, *QUICK)
    assert result.exit_code == 0, result.output
    (part,) = json.loads(result.stdout)["scenes"]
    assert part["scene"] == "box.obj" and len(part["scene_sha256"]) == 64
    pairs = [(row["kind"], row["case"]) for row in part["rays"]]
    cases_of = ("lbvh", "cpu:sah")
    assert pairs == [(kind, case) for kind in ("primary", "shadow") for case in cases_of]
    for row in part["rays"]:
        assert 0 < row["rays"] <= 24 * 16 and row["nodes"] >= 1 and row["unexplained"] == 0
    # The other way to name a scene, for people.
    text = run("bench", "build", "--scene", box, *rays, *cases, "--repeats", 1, "-q").stdout
    for word in ("box.obj: 12 triangles", "Phases, ms", "Work a ray", "quartiles"):
        assert word in text

    two = run("bench", "build", box, box, *rays)
    assert "one scene" in one_line(two, 2)
    assert "one scene" in one_line(run("bench", "build", "--random", 9, *rays), 2)
    other = tmp_path / "other.obj"
    other.write_text(box.read_text().replace("v 1 2 1", "v 1 2 1.5"))
    assert "another scene" in one_line(run("bench", "build", other, *rays, *QUICK[:2]), 2)
    # Rays that say nothing of their scene are taken, and their hits then differ.
    save(files["primary"], replace(load(files["primary"]), scene_sha256=""))
    made = run("bench", "build", other, *rays[:2], "--cases", "lbvh", *QUICK)
    (row,) = json.loads(made.stdout)["scenes"][0]["rays"]
    assert row["different"] > 0 and row["unexplained"] == 0


def test_what_is_refused(run: Run, box: Path, tmp_path: Path, one_line: OneLine) -> None:
    assert "magic" in one_line(run("bench", "build", box, "--cases", "sah,magic"), 2)
    assert "not 3" in one_line(run("bench", "build", box, "--leaf", 3), 2)
    missing = tmp_path / "none.glb"
    assert "none.glb" in one_line(run("bench", "build", missing, "--cases", "lbvh"), 2)
    assert "none.npz" in one_line(run("bench", "build", "--rays", tmp_path / "none.npz"), 2)
    words = ("--random", 9, "--cases", "spatial", "--leaf", 4)
    assert "not 4" in one_line(run("bench", "build", *words), 2)


def test_a_bad_structure_fails_by_name(
    run: Run, monkeypatch: pytest.MonkeyPatch, one_line: OneLine
) -> None:
    monkeypatch.setattr(module, "validate", lambda bvh: ["the root is missing"])
    error = one_line(run("bench", "build", "--random", 9, "--cases", "lbvh", *QUICK[:2]), 1)
    assert "lbvh: the root is missing" in error
    assert issubclass(CheckFailed, UserError)


def test_times_of_passes(device: Any) -> None:
    ran: list[int] = []
    passes = [lambda scope: ran.append(0), lambda scope: ran.append(1)]
    times = time_passes(device, passes, 3, 0.0)
    assert times.shape == (2, 3) and (times >= 0).all()
    assert ran == [0, 1] * 4  # once to warm up
    assert time_passes(device, [], 3, 0.0).shape == (0, 3)
    assert spread(np.array([4.0, 1.0, 2.0, 3.0, 5.0])) == {
        "median": 3.0,
        "low": 2.0,
        "high": 4.0,
        "min": 1.0,
        "max": 5.0,
    }
