"""Measured ablations: what may be switched off, what it changes, and that a file holds it whole."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bvh.build import BuildOptions
from engine.gpu.errors import UserError
from engine.scene.pose import moves
from engine.scene.scene import Scene
from passes.frame_options import FrameOptions
from passes.option_list import ViewSettings, find_option
from passes.rays import RAY_TYPES
from treeline.ablate_switches import Setup, find_switches, without
from treeline.ablate_terms import Counted, counted_changes, timed_changes
from treeline.ablation_table import parse_table
from treeline.causes import switch_causes
from treeline.scenes import load
from treeline.verdict import verdict

Run = Callable[..., Any]
RECORDS = Path(__file__).resolve().parents[2] / "benchmarks" / "records"


@pytest.fixture(scope="module")
def hall() -> Scene:
    return load(None)


def setup_of(scene: Scene, **options: Any) -> Setup:
    return Setup(scene, ViewSettings(FrameOptions(8, 8, **options)))


def test_switches_of_a_frame_change_what_they_say(hall: Scene) -> None:
    setup = setup_of(hall, occlusion=True)
    found, left_out = find_switches(setup, moves(hall))
    assert {s.name for s in found} >= {ray.name for ray in RAY_TYPES} | {"half_resolution"}
    assert {s.name for s in found} | set(left_out) <= set(switch_causes())
    for switch in found:
        off = switch.off(setup)
        assert off != setup, switch.name
        if switch.name in ("any_hit", "nodes", "builder"):
            assert switch.terms == (find_option(switch.name).cost_term,)
            assert off.scene is hall


def test_what_is_off_already_is_left_out(hall: Scene) -> None:
    setup = setup_of(hall, reflection_scale="half", any_hit="opaque", hit_table="fine")
    found, left_out = find_switches(setup, False)
    assert {"half_resolution", "any_hit", "update"} <= set(left_out)
    off = {s.name: s.off(setup).settings for s in found}
    assert off["hit_grouping"].frame.hit_table == "coarse" and "occlusion" not in off
    # A tree that is not the default is compared with it, the default with a better one.
    assert off["builder"].build == BuildOptions(builder="spatial")
    build = BuildOptions(builder="lbvh", reinsertion=0, nodes="fp32")
    other = replace(setup, settings=replace(setup.settings, build=build))
    off = {s.name: s.off(other).settings for s in find_switches(other, False)[0]}
    assert off["builder"].build == BuildOptions(nodes="fp32")
    assert off["nodes"].build == BuildOptions(builder="lbvh", reinsertion=0)


def test_content_goes_with_what_moves_it(shared_scenes: Path) -> None:
    fox = load(shared_scenes / "Fox.glb")
    spare = replace(fox.instances[0], name="still", lifetime="static")
    assert fox.animation is not None
    nodes = (*fox.animation.instance_nodes, 0)
    animation = replace(fox.animation, instance_nodes=nodes)
    both = replace(fox, instances=(*fox.instances, spare), animation=animation)
    setup = setup_of(both)
    switches = {s.name: s for s in find_switches(setup, True)[0]}
    assert switches["update"].off(setup).settings.frame.update == "rebuild"
    left = switches["characters"].off(setup).scene
    assert [instance.name for instance in left.instances] == ["still"]
    assert left.animation is not None and left.animation.instance_nodes == (0,)
    assert "characters" in find_switches(setup_of(fox), True)[1]  # nothing else is there
    with pytest.raises(UserError, match="nothing is left"):
        without(fox, lambda instance: True)


def counted(**changes: Any) -> Counted:
    base: dict[str, Any] = {
        "rays": {"reflection": 1000, "shadow": 2000},
        "nodes": {"reflection": 20_000, "shadow": 10_000},
        "any_hits": {"reflection": 100, "shadow": 400},
        "shaded": 1000,
        "layout_bytes": 4096,
    }
    return Counted(**{**base, **changes})


def test_counted_terms_are_a_ray(hall: Scene) -> None:
    assert counted_changes(counted(), counted()) == {}
    fewer = counted(rays={"shadow": 1000}, nodes={"shadow": 5000}, any_hits={"shadow": 200})
    assert counted_changes(counted(), fewer) == {"rays": pytest.approx(-2 / 3)}
    dearer = counted(nodes={"reflection": 20_000, "shadow": 15_000}, layout_bytes=5120)
    expected = {"nodes": pytest.approx(0.5), "layout bytes": pytest.approx(0.25)}
    assert counted_changes(counted(), dearer) == expected
    none = counted(any_hits={"reflection": 0, "shadow": 0})
    assert counted_changes(counted(), none) == {"any-hit": -1.0}


def test_timed_terms_follow_the_passes(make_stats: Any, rng: np.random.Generator) -> None:
    def runs(**factors: float) -> list[Any]:
        found = []
        for _ in range(8):
            stats = make_stats(64, 36, False)
            passes = {
                name: ms * rng.uniform(0.99, 1.01) * factors.get(name.split("/")[0], 1.0)
                for name, ms in stats.passes.items()
            }
            found.append(replace(stats, passes=passes))
        return found

    assert timed_changes(runs(), runs(), counted(), counted()) == {}
    slow = timed_changes(runs(), runs(traverse=1.5), counted(), counted())
    assert slow == {"time a node": pytest.approx(0.5, abs=0.05)}
    shaded = timed_changes(runs(), runs(shade=0.5), counted(), counted())
    assert shaded == {"hit shading": pytest.approx(-0.5, abs=0.05)}
    # Alpha tests are in the same passes: with others the time a node is not judged.
    none = counted(any_hits={"reflection": 0, "shadow": 0})
    assert timed_changes(runs(), runs(traverse=0.5), counted(), none) == {}


def test_command_measures_and_reads_what_it_wrote(
    run: Run, box: Path, tmp_path: Path, one_line: Any
) -> None:
    out = tmp_path / "made" / "ablation.json"
    quick = ("--scene", box, "--size", "24x16", "--optimize", 0, "--builder", "lbvh", "--no-cache")
    words = ("--only", "half_resolution,shadow", "--out", out, "--json", "-", "-q")
    answer = json.loads(run("ablate", *quick, *words).stdout)
    table = json.loads(out.read_text())
    assert answer["table"] == table and set(table["switches"]) == {"half_resolution", "shadow"}
    assert verdict(parse_table(table)).facts()["verdict"] == answer["verdict"]
    again = json.loads(run("ablate", "--from", out, "--json", "-").stdout)
    assert again["verdict"] == answer["verdict"] and again["next"] == answer["next"]
    terms = table["context"]["terms"]
    assert terms["shadow"]["declared"] == ["rays"] and terms["shadow"]["changes"]["rays"] < -0.2
    assert terms["shadow"]["counted"]["rays"]["shadow"] == 0
    assert [set(i["switches"]) for i in table["interactions"]] == [{"half_resolution", "shadow"}]
    assert table["context"]["timing_source"] and table["context"]["pairs"] == 6
    refused = one_line(run("ablate", *quick, "--only", "characters", "--out", out), 2)
    assert "characters cannot be switched off here: nothing here deforms" in refused
    assert "no switch is named 'sun'" in one_line(run("ablate", *quick, "--only", "sun"), 2)
    assert "not with --from" in one_line(run("ablate", "--from", out, "--out", out), 2)
    assert [p.name for p in out.parent.iterdir()] == [out.name]


def test_planted_slowdowns_were_named_first() -> None:
    """By the tables of benchmarks/planted_slowdowns.py, which says what was planted."""
    record = json.loads((RECORDS / "planted-slowdowns-llvmpipe.json").read_text())
    assert set(record["cases"]) == {"bvh_quality", "foliage_any_hit", "characters_update"}
    for planted, case in record["cases"].items():
        first = verdict(parse_table(case["table"])).findings[0]
        assert (first.cause, first.rank) == (planted, "primary")


def test_a_record_of_an_ablation_is_read() -> None:
    record = json.loads((RECORDS / "ablate-hall-llvmpipe.json").read_text())
    found = verdict(parse_table(record))
    assert {"half_resolution", "any_hit", "builder", "update"} <= set(record["switches"])
    assert len(found.findings) == 5 and len(record["interactions"]) == 3
    terms = record["context"]["terms"]
    assert all(terms[ray]["changes"]["rays"] < 0 for ray in ("reflection", "shadow"))
    assert terms["any_hit"]["changes"]["any-hit"] == -1.0
