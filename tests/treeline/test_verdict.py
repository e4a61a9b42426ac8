"""Tables with known answers, each with its reason, and tables that are none."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engine.gpu.errors import UserError
from passes.rays import RAY_TYPES
from treeline.ablation_table import parse_table
from treeline.causes import CAUSES, switch_causes
from treeline.verdict import Verdict, ranked, verdict

FOLDER = Path(__file__).parent / "data" / "ablations"
TABLES = {path.stem: json.loads(path.read_text()) for path in sorted(FOLDER.glob("*.json"))}
EXERCISE = TABLES["chapter_exercise"]["table"]
ORDER = [cause.name for cause in CAUSES]


def judge(**table: Any) -> Verdict:
    return verdict(parse_table(table))


def effects(found: Verdict) -> dict[str, float]:
    return {f.cause: f.effect_ms for f in found.findings}


@pytest.mark.parametrize("name", TABLES)
def test_tables_with_known_answers(name: str) -> None:
    case = TABLES[name]
    found = verdict(parse_table(case["table"]))
    expected = {rank: tuple(causes) for rank, causes in case["expected"].items() if rank != "next"}
    assert ranked(found.findings) == expected, case["why"]
    if "next" in case["expected"]:
        assert list(found.next) == case["expected"]["next"]


def test_the_chapters_exercise(run: Callable[..., Any], tmp_path: Path) -> None:
    path = tmp_path / "f.json"
    path.write_text(json.dumps(EXERCISE))
    answer = json.loads(run("ablate", "--from", path, "--json", "-").stdout)
    found = [(f["cause"], f["rank"]) for f in answer["verdict"]]
    assert found == [
        ("ray_count", "primary"),
        ("foliage_any_hit", "primary"),
        ("characters_update", "secondary"),
    ]
    assert [f["effect_ms"] for f in answer["verdict"]] == pytest.approx([4.8 / 0.75, 3.6, 0.9])
    assert [f["share"] for f in answer["verdict"]] == pytest.approx([0.941, 0.529, 0.132], abs=1e-3)
    assert answer["verdict"][1]["share_of_growth"] == pytest.approx(3.6 / 4.7)
    assert answer["next"] == ORDER and set(answer["measurements"]) == set(ORDER)
    text = run("ablate", "--from", path).stdout
    assert text.index("ray_count") < text.index("foliage_any_hit") < text.index("next 1")


def test_causes_are_in_the_chapters_order() -> None:
    assert ORDER == [
        *("characters_update", "ray_count", "bvh_quality", "foliage_any_hit"),
        *("hit_table", "hit_shading", "divergence"),
    ]
    assert set(switch_causes().values()) == set(ORDER)
    assert {ray_type.name for ray_type in RAY_TYPES} <= set(switch_causes())


def test_ties_keep_the_chapters_order() -> None:
    assert 0.3 - 0.2 < 0.4 - 0.3  # in their last bits: no reason for another order
    found = judge(
        base_ms=1.0,
        switches={
            "hit_table": {"on_ms": 0.4, "off_ms": 0.3},
            "bvh_quality": {"on_ms": 0.3, "off_ms": 0.2},
            "foliage": {"on_ms": 0.4, "off_ms": 0.3},
            "characters": {"on_ms": 0.3, "off_ms": 0.2},
        },
    )
    causes = [f.cause for f in found.findings]
    assert causes == ["characters_update", "bvh_quality", "foliage_any_hit", "hit_table"]


def test_half_the_resolution_is_normalised_by_the_rays_left() -> None:
    table = {"base_ms": 10.0, "half_resolution_ms": 4.0}
    assert effects(judge(**table)) == {"ray_count": 8.0}
    assert effects(judge(**table, half_resolution_ray_ratio=0.5))["ray_count"] == 10.0  # the frame
    assert effects(judge(**table, half_resolution_ray_ratio=0))["ray_count"] == 6.0
    assert effects(judge(base_ms=10.0, without_ms={"shadow": 4.0}))["ray_count"] == 6.0


def test_rays_are_not_charged_with_what_makes_them_dear() -> None:
    table = {"base_ms": 8.0, "half_resolution_ms": 2.0}
    dear = {"any_hit": 2.0, "hit_shading": 7.0}
    assert effects(judge(**table, without_ms=dear))["ray_count"] == pytest.approx(8 * 0.25)
    # Foliage and characters are content: fewer of them say nothing of a ray's price.
    assert effects(judge(**table, without_ms={"foliage": 2.0, "refit": 2.0}))["ray_count"] == 8.0
    both = [{"switches": ["half_resolution", "any_hit"], "effect_ms": -3.0}]
    found = judge(**table, without_ms=dear, interactions=both)
    assert effects(found)["ray_count"] == pytest.approx((6 - 3) / 0.75)


def test_the_strongest_switch_of_a_cause_counts() -> None:
    found = judge(base_ms=5.0, without_ms={"foliage": 3.0, "any_hit": 4.0})
    (finding,) = found.findings
    assert finding.effect_ms == 2.0 and finding.switches == ("foliage", "any_hit")
    assert "without foliage 3 ms" in finding.evidence and "without any_hit 4" in finding.evidence


def test_what_noise_can_do_is_minor() -> None:
    fields = {"off_ms": 3.0, "interval_ms": [0.5, 1.5]}
    assert judge(base_ms=4.0, switches={"builder": fields}).findings[0].rank == "primary"
    loud = judge(base_ms=4.0, switches={"builder": {**fields, "noise_ms": 0.6}}).findings[0]
    assert loud.rank == "minor" and "within noise" in loud.evidence
    assert judge(base_ms=4.0, noise_ms=1.1, without_ms={"nodes": 3.0}).findings[0].rank == "minor"


def test_intervals_are_normalised_as_their_effects() -> None:
    fields = {"off_ms": 4.0, "interval_ms": [3.0, 6.6], "ray_ratio": 0.25}
    (finding,) = judge(base_ms=10.0, switches={"half_resolution": fields}).findings
    assert finding.effect_ms == 8.0 and finding.interval_ms == pytest.approx((4.0, 8.8))


def test_what_costs_more_when_off_is_no_cause() -> None:
    (finding,) = judge(base_ms=5.0, without_ms={"hit_grouping": 6.0}).findings
    assert (finding.effect_ms, finding.rank) == (-1.0, "minor")
    assert "costs more" in finding.evidence


def test_measured_runs_with_fewer_rays_may_take_longer() -> None:
    """A frame of few rays pays more for upsampling than it saves: a finding, not a wrong table."""
    half = {"on_ms": 4.0, "off_ms": 6.0, "interval_ms": [-2.5, -1.5], "noise_ms": 0.3}
    (finding,) = judge(base_ms=4.0, switches={"half_resolution": half}).findings
    assert (finding.cause, finding.effect_ms, finding.rank) == ("ray_count", -2.0, "minor")
    assert "half resolution 6 ms instead of 4, which costs more" in finding.evidence


BAD = {
    "[]": "the table is a JSON object",
    "{": "is no JSON",
    "{}": "base_ms is missing",
    '{"base_ms": 6.8}': "nothing is switched off",
    '{"base_ms": 0, "half_resolution_ms": 0}': "base_ms is 0",
    '{"base_ms": -1, "half_resolution_ms": 1}': "base_ms is -1",
    '{"base_ms": NaN, "half_resolution_ms": 1}': "base_ms is a finite number, not nan",
    '{"base_ms": "6.8", "half_resolution_ms": 1}': "base_ms is a finite number, not '6.8'",
    '{"base_ms": true, "half_resolution_ms": 1}': "not True",
    '{"base_ms": 6.8, "half_resolution_ms": Infinity}': "finite",
    '{"base_ms": 6.8, "half_resolution_ms": 9}': "9 ms with fewer rays, but 6.8 ms with all",
    '{"base_ms": 6.8, "half_resolution_ms": 2, "half_resolution_ray_ratio": 1}': "ray ratio",
    '{"base_ms": 6.8, "half_resolution_ray_ratio": 0.5}': "without half_resolution_ms",
    '{"base_ms": 6.8, "half_resolution_ms": 2, "without_ms": {"half_resolution": 3}}': "twice",
    '{"base_ms": 6.8, "without_ms": {"foliage": null}}': "without_ms.foliage: off_ms is missing",
    '{"base_ms": 6.8, "without_ms": {"foliage": -3}}': "not negative",
    '{"base_ms": 6.8, "without_ms": {"trees": 3}}': "no switch is named 'trees'; known: characters",
    '{"base_ms": 6.8, "without_ms": [3]}': "without_ms is a JSON object",
    '{"base_ms": 6.8, "whithout_ms": {"foliage": 3}}': "unknown key 'whithout_ms'",
    '{"base_ms": 6, "before_ms": -2, "without_ms": {"foliage": 3}}': "before_ms is -2",
    '{"base_ms": 6, "switches": {"foliage": {"ms": 3}}}': "unknown key of switches.foliage 'ms'",
    '{"base_ms": 6, "switches": {"foliage": {"off_ms": 3, "interval_ms": [2, 1]}}}': "ends at 1",
    '{"base_ms": 6, "switches": {"foliage": {"off_ms": 3, "interval_ms": 2}}}': "[low, high]",
    '{"base_ms": 6, "without_ms": {"nodes": 3}, "interactions": [{"switches": ["nodes"]}]}': "pair",
    '{"base_ms": 6, "half_resolution_ms": 3, "interactions": {}}': "interactions is a list",
}


@pytest.mark.parametrize("text", BAD)
def test_a_bad_table_is_one_line(
    text: str, run: Callable[..., Any], one_line: Callable[[Any, int], str], tmp_path: Path
) -> None:
    path = tmp_path / "f.json"
    path.write_text(text)
    error = one_line(run("ablate", "--from", path), 2)
    assert BAD[text] in error and path.name in error


def test_a_table_that_is_not_there(
    run: Callable[..., Any], one_line: Callable[[Any, int], str], tmp_path: Path
) -> None:
    assert "cannot read" in one_line(run("ablate", "--from", tmp_path / "none.json"), 2)
    with pytest.raises(UserError):
        parse_table(None)


def test_what_is_certain_comes_before_what_scatters() -> None:
    """Half the resolution saved more by its median, three quarters of which were left out on top;
    but its interval reaches into the noise."""
    half = {"on_ms": 9.0, "off_ms": 4.0, "interval_ms": [1.0, 9.0], "noise_ms": 2.0}
    update = {"on_ms": 8.0, "off_ms": 4.0, "interval_ms": [3.5, 4.5], "noise_ms": 0.3}
    found = judge(base_ms=8.0, switches={"half_resolution": half, "update": update})
    assert effects(found) == {"characters_update": 4.0, "ray_count": 0.0}
    assert "half resolution 4 ms instead of 9" in found.findings[1].evidence
    # What surely costs more stays what it is, what hardly differs does not.
    off = {"on_ms": 4.0, "off_ms": 6.0, "interval_ms": [-2.5, -1.5], "noise_ms": 0.3}
    found = judge(base_ms=8.0, switches={"builder": off, "hit_grouping": {**off, "noise_ms": 3.0}})
    assert effects(found) == {"hit_table": 0.0, "bvh_quality": -2.0}
