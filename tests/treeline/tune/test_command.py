"""`treeline tune` on a box: a real search, in which what wins does not matter."""

import json
from pathlib import Path
from typing import Any

from bvh.blas import BuildOptions
from passes.ray_kernel import RayKernel
from passes.rays import REFLECTION
from treeline.cli.frame_flags import RaysSent
from treeline.cli.options import Common
from treeline.cli.tune import command_words
from treeline.tune.cases import Case, Recipe
from treeline.tune.profile import profile_document, read_profile


def test_a_search_writes_a_profile_and_can_be_gone_on_with(
    run: Any, box: Path, tmp_path: Path, monkeypatch: Any, device: Any
) -> None:
    from treeline.tune import run as tuning
    from treeline.tune import search

    # Little enough to be through with it, however slow the machine is.
    two = [RayKernel(), RayKernel(stack="64")]
    monkeypatch.setattr(search, "kernel_choices", lambda any_hit, loops: two)
    monkeypatch.setattr(search, "AXES", {"group": ("all", "object")})
    confirmed = []

    def confirm(profile: dict[str, Any], words: Any) -> dict[str, Any]:
        confirmed.append(profile)
        total = {"gain": 0.9, "interval": [0.8, 1.0], "pairs": 6, "result": "slower"}
        return {"total": total, "rays": {}, "hits": {}, "costs": {}}

    monkeypatch.setattr(tuning.search_and_confirm, "__defaults__", (confirm,))
    out = tmp_path / "box.json"
    words = ("tune", "--scene", box, "--out", out, "--minutes", 9, "--size", "8x6")
    first = run(*words)
    assert first.exit_code == 0, first.output
    document = json.loads(out.read_text())
    # What was not confirmed is not taken.
    assert read_profile(out).case == Case(Recipe(BuildOptions()))
    assert document["evidence"]["blocks"]["measured"] > 0
    kernels = [t for t in document["evidence"]["tried"] if t["phase"] == "kernels"]
    assert {t["ray"] for t in kernels} == {"reflection", "shadow"}
    structures = [t for t in document["evidence"]["tried"] if t["ray"] == "all"]
    assert structures[0]["what"] == "group object"
    assert all(t["hits"]["reflection"]["different"] == 0 for t in structures)
    assert "group all: merges the same as static in this scene, not tried" in first.stdout
    assert "the default is kept" in first.stdout
    assert ("wall clock" in first.stderr) == device.info.is_cpu
    assert document["context"]["timing_source"] == device.timing_source
    again = run(*words, "--json", "-")
    assert "goes on from" in again.stderr
    blocks = json.loads(again.stdout)["evidence"]["blocks"]
    assert blocks == {"measured": 0, "from_state": document["evidence"]["blocks"]["measured"]}


def test_a_profile_is_confirmed_in_a_process_of_its_own(
    process: Any, box: Path, tmp_path: Path, device: Any
) -> None:
    from engine.scene.load import load_scene

    path = tmp_path / "p.json"
    context = {
        "scene_sha256": load_scene(box).sha256,
        "adapter": device.info.adapter,
        "group": "static",
    }
    case = Case.of(Recipe(BuildOptions(leaf=1), "all"), {REFLECTION.name: RayKernel("off")})
    path.write_text(json.dumps(profile_document(case, context, None, {}, [])))
    words = ("--scene", box, "--confirm", path, "--size", "8x6", "--json", "-", "--quiet")
    out, err = process("tune", *words).communicate(timeout=120)
    found = json.loads(out)
    assert set(found["rays"]) == {"reflection", "shadow"} and found["total"]["pairs"] == 20, err
    assert set(found["hits"]) == {"reflection", "shadow"}
    for hits in found["hits"].values():
        assert hits["rays"] > 0 and hits["different"] == 0
    assert found["costs"]["tuned"]["bvh_bytes"] > found["costs"]["default"]["bvh_bytes"] > 0


def test_it_needs_a_place_to_write(run: Any, one_line: Any, box: Path) -> None:
    assert "tune takes --out" in one_line(run("tune", "--scene", box), 2)


def test_a_frame_without_rays_is_refused(run: Any, one_line: Any, tmp_path: Path) -> None:
    words = ("tune", "--out", tmp_path / "p.json", "--reflections", "screen", "--shadows", "map")
    assert "a frame without rays has nothing to tune" in one_line(run(*words), 2)


def test_the_process_that_confirms_gets_the_same_options() -> None:
    common = Common(
        scene=Path("a.toml"), builder="sah", cache=False, assets=["x", "n=y"], group="object"
    )
    assert command_words(common) == [
        *("--scene", "a.toml", "--builder", "sah", "--no-cache", "--group", "object"),
        *("--assets", "x", "--assets", "n=y"),
    ]
    assert command_words(Common(json="-", quiet=True)) == []
    sent = RaysSent(seed=3, occlusion=True, occlusion_radius=0.5)
    assert command_words(sent) == ["--seed", "3", "--occlusion", "--occlusion-radius", "0.5"]
