"""A tuned profile from its search to the frame: what it sets is in the frame and in the report."""

import json
from pathlib import Path
from typing import Any

import pytest

from bvh.blas import BuildOptions
from engine.gpu.errors import UserError
from engine.scene.load import load_scene
from passes import hybrid
from passes.ray_kernel import RayKernel
from passes.rays import REFLECTION, SHADOW
from treeline.cli.options import Common
from treeline.cli.tuned import TunedFlags, use_tuned
from treeline.tune.cases import Case, Recipe
from treeline.tune.profile import profile_document, read_profile

KERNELS = {REFLECTION.name: RayKernel("on", "two", "16"), SHADOW.name: RayKernel("on")}
BUILD = BuildOptions(builder="sah", leaf=4, reinsertion=0)
RECIPE = Recipe(BUILD, "all")


@pytest.fixture
def profile(box: Path, tmp_path: Path, device: Any) -> Path:
    """Of the box on this adapter."""
    path = tmp_path / "tuned.json"
    context = {
        "scene_sha256": load_scene(box).sha256,
        "adapter": device.info.adapter,
        "group": "static",
    }
    document = profile_document(Case.of(RECIPE, KERNELS), context, None, {}, [])
    path.write_text(json.dumps(document))
    return path


def test_a_profile_from_before_has_the_group_that_it_was_tuned_for(profile: Path) -> None:
    document = json.loads(profile.read_text())
    del document["group"]
    context = document["context"] | {"group": "object"}
    profile.write_text(json.dumps(document | {"schema": 1, "context": context}))
    assert read_profile(profile).case == Case.of(Recipe(BUILD, "object"), KERNELS)
    del document["schema"]
    profile.write_text(json.dumps(document))
    with pytest.raises(UserError, match="schema None, not 2"):
        read_profile(profile)


def change(path: Path, **fields: Any) -> Path:
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))
    return path


def test_a_profile_is_read_as_it_was_written(profile: Path) -> None:
    assert read_profile(profile).case == Case.of(RECIPE, KERNELS)


def test_a_report_traces_by_the_profile_and_says_so(
    run: Any, box: Path, tmp_path: Path, profile: Path, monkeypatch: Any
) -> None:
    seen = []
    make = hybrid.HybridFrame.__init__

    def noted(self: Any, device: Any, prepared: Any, options: Any, *rest: Any) -> None:
        make(self, device, prepared, options, *rest)
        seen.append((self.options.kernels, prepared.options, prepared.group))

    monkeypatch.setattr(hybrid.HybridFrame, "__init__", noted)
    size = ("--size", "12x9", "--frames", "1", "--warmup", "0", "--quiet", "--scene", box)
    documents = {}
    for name, extra in {"plain": (), "tuned": ("--tuned", profile)}.items():
        result = run("report", "--out", tmp_path / name, *size, *extra)
        assert result.exit_code == 0, result.output
        documents[name] = json.loads((tmp_path / name / "report.json").read_text())
    kernels = tuple(sorted(KERNELS.items()))
    assert set(seen) == {((), BuildOptions(), "static"), (kernels, BUILD, "all")}
    plain, tuned = documents["plain"], documents["tuned"]
    context = tuned["context"]
    assert (context["builder"], context["leaf"], context["optimize"]) == ("sah", 4, 0)
    assert context["group"] == context["tuned"]["group"] == "all"
    assert context["tuned"]["profile"] == "tuned.json"
    assert context["tuned"]["text"].startswith("group all, builder sah, leaf 4, reinsertion 0; ")
    assert context["tuned"]["kernels"][REFLECTION.name] == {
        "sort": "on",
        "loops": "two",
        "stack": "16",
    }
    assert "reflection: sorted, two loops, stack of 16" in context["tuned"]["text"]
    assert "tuned" not in plain["context"]
    rows = [{r["name"]: r for r in d["benchmarks"]} for d in (plain, tuned)]
    for ray in KERNELS:
        counts = [{k: r[f"ray/{ray}"][k] for k in ("rays", "hits", "misses")} for r in rows]
        assert counts[0] == counts[1] and counts[0]["rays"] > 0
    assert plain["context"]["result_hash"] == tuned["context"]["result_hash"]


def test_view_shows_what_the_profile_sets(
    run: Any, box: Path, profile: Path, monkeypatch: Any
) -> None:
    from treeline.view import start

    seen = []
    monkeypatch.setattr(start, "run", lambda *given: seen.append(given))
    result = run("view", "--offscreen", "--frames", "1", "--scene", box, "--tuned", profile)
    assert result.exit_code == 0, result.output
    ((common, _, _, options, _),) = seen
    assert (common.group, common.build_options()) == ("all", BUILD)
    assert options.frame["kernels"] == tuple(sorted(KERNELS.items()))
    assert "tuned: group all, builder sah, leaf 4, reinsertion 0; kernels" in result.stderr


@pytest.mark.parametrize(
    "key, other, label",
    [
        ("scene_sha256", "0" * 64, "scene"),
        ("adapter", "Card of tomorrow", "adapter"),
    ],
)
def test_a_profile_of_something_else_is_refused_unless_told(
    device: Any, box: Path, profile: Path, key: str, other: str, label: str, capsys: Any
) -> None:
    context = json.loads(profile.read_text())["context"]
    change(profile, context=context | {key: other})
    scene = load_scene(box)
    with pytest.raises(UserError, match=f"was tuned for another {label}.*--tuned-anyway") as error:
        use_tuned(Common(), TunedFlags(profile), device, scene)
    assert "\n" not in str(error.value) and error.value.exit_code == 2
    told = use_tuned(Common(), TunedFlags(profile, True), device, scene)
    assert f"another {label}" in told.context["tuned"]["mismatch"]
    assert (told.common.build_options(), told.common.group) == (BUILD, "all")
    assert f"another {label}" in capsys.readouterr().err


def test_report_and_view_refuse_it_in_a_line(
    run: Any, one_line: Any, box: Path, tmp_path: Path, profile: Path
) -> None:
    change(profile, context=json.loads(profile.read_text())["context"] | {"adapter": "another"})
    words = ("--scene", box, "--tuned", profile)
    report = run("report", "--out", tmp_path / "r", *words)
    assert "was tuned for another adapter" in one_line(report, 2)
    assert not (tmp_path / "r").exists()
    view = run("view", "--offscreen", "--frames", "1", *words)
    assert "was tuned for another adapter" in one_line(view, 2)


def test_what_the_profile_sets_is_not_given_twice(
    run: Any, one_line: Any, box: Path, tmp_path: Path, profile: Path
) -> None:
    words = ("report", "--out", tmp_path / "r", "--scene", box)
    error = one_line(run(*words, "--tuned", profile, "--builder", "lbvh"), 2)
    assert "sets --builder sah: leave out --builder lbvh" in error
    error = one_line(run(*words, "--tuned", profile, "--group", "object"), 2)
    assert "sets --group all: leave out --group object" in error
    assert "--tuned-anyway needs --tuned" in one_line(run(*words, "--tuned-anyway"), 2)


@pytest.mark.parametrize(
    "fields, message",
    [
        ({"kind": "report"}, "is no tuned profile"),
        ({"schema": 3}, "schema 3, not 2: tune anew"),
        ({"group": "odd"}, "unknown group 'odd', there are static, object, all"),
        ({"schema": 1, "context": {}}, "damaged profile .'group'"),
        ({"build": {"builder": "odd"}}, "unknown builder 'odd'"),
        ({"build": {"colour": 1}}, "damaged profile"),
        ({"kernels": {"light": {}}}, "no ray type is named 'light'"),
        ({"kernels": {"shadow": {"loops": "four"}}}, "unknown loops 'four'"),
        ({"kernels": [1]}, "damaged profile"),
        ({"context": 3}, "damaged profile"),
    ],
)
def test_what_is_no_profile_is_refused_in_a_line(
    profile: Path, fields: dict[str, Any], message: str
) -> None:
    change(profile, **fields)
    with pytest.raises(UserError, match=message) as error:
        read_profile(profile)
    assert "\n" not in str(error.value) and str(profile) in str(error.value)


def test_a_missing_file_and_no_json_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "none.json"
    with pytest.raises(UserError, match="cannot read"):
        read_profile(path)
    path.write_text("{")
    with pytest.raises(UserError, match="is no JSON"):
        read_profile(path)
