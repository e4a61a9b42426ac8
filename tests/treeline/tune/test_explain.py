"""What a search says of itself, line by line."""

from dataclasses import replace
from typing import Any

from bvh.blas import BuildOptions
from treeline.tune.agreement import Agreement
from treeline.tune.blocks import Block, Measured
from treeline.tune.cases import Case, Recipe
from treeline.tune.confirm import confirmation
from treeline.tune.explain import confirmed_texts, evidence, sentences

BASE = Recipe(BuildOptions())
ALL = Case(replace(BASE, group="all"))
NO_TIME = {"near": [2.0] * 9, "dark": [1.0] * 9}
DEFAULT_COSTS = {"bvh_bytes": 5.88e6, "geometry_bytes": 4.4e6, "build_ms": 1012.0}
COSTS = {"bvh_bytes": 26.86e6, "geometry_bytes": 22.4e6, "build_ms": 434.0}
HITS = {"near": Agreement(1_603_000, 10, 3), "dark": Agreement(610, 4)}


def confirmed(near_ms: float) -> dict[str, Any]:
    default = Measured(Case(BASE), NO_TIME, {}, None, DEFAULT_COSTS)
    tuned = Measured(ALL, NO_TIME | {"near": [near_ms] * 9}, HITS, None, COSTS)
    return confirmation(Block((default, tuned), 1.0))


def run_search(machine: Any, search: Any, **settings: Any) -> Any:
    def refused(case: Case) -> str | None:
        return "it is too large" if case.recipe.build.builder == "lbvh" else None

    s = search(machine(costs={("group", "all"): 0.8}, refused=refused).measure, **settings)
    assert s.run() == ALL
    return s


def test_what_was_chosen_says_its_gain_its_hits_and_its_price(machine: Any, search: Any) -> None:
    lines = sentences(run_search(machine, search), ALL, confirmed(1.6))
    assert lines[-5:] == [
        "chosen: group all; kernels as the default: 1.154 (1.154 .. 1.154) times as fast in a "
        "process of its own",
        "near: 1.6 ms instead of 2, 1.250 (1.250 .. 1.250) times as fast",
        "dark: 1 ms instead of 1, 1.000 (1.000 .. 1.000) times as fast",
        "hits: equal but for 14 of 1,603,610 rays, by rounding of placed corners",
        "its price: structure 26.9 MB instead of 5.9, vertices and indices 22.4 MB instead of 4.4, "
        "built in 0.43 s instead of 1.01",
    ]


def test_a_profile_that_is_measured_by_itself_is_told_alike() -> None:
    lines = confirmed_texts(confirmed(1.6))
    assert lines[0] == "all rays: 1.154 (1.154 .. 1.154) times as fast: faster"
    assert lines[1].startswith("near: 1.6 ms") and lines[-1].startswith("its price: ")
    assert confirmed_texts({"refused": "2 rays differ"}) == ["refused: 2 rays differ"]


def test_what_is_kept_says_why(machine: Any, search: Any) -> None:
    s = run_search(machine, search)
    assert sentences(s, ALL, confirmed(2.0))[-1] == (
        "the default is kept: a process of its own found 1.000 (1.000 .. 1.000) times its speed, "
        "within noise"
    )
    assert "kept: nothing was certainly faster" in sentences(s, Case(BASE), None)[-1]


def test_what_was_tried_is_told_by_stage(machine: Any, search: Any) -> None:
    s = run_search(machine, search, same_groups={"object": "static"})
    lines = sentences(s, ALL, None)
    assert lines[0] == "group object: merges the same as static in this scene, not tried"
    assert lines[1].startswith("structure, group, all: 1 tried, best ")
    assert "best group all at 0.80" in lines[1] and "the default's time, 0 equal to it" in lines[1]
    assert lines[1].endswith("(equal but for 1 of 60,000 rays, by rounding of placed corners)")
    assert "structure, builder, all: refused group all, builder lbvh: it is too large" in lines
    assert any(line.startswith("kernels, dark: 11 tried") for line in lines)
    counted = next(line for line in lines if "structures were tried" in line)
    assert counted.startswith(f"{432 - s.not_tried} of 432 structures")
    facts = evidence(s, {"measured": 1})
    tried = next(t for t in facts["tried"] if t["what"] == "group all")
    assert tried["hits"]["near"] == {"rays": 20_000, "different": 1, "ties": 7}
    assert set(tried["costs"]) == {"bvh_bytes", "geometry_bytes", "build_ms"}
    assert facts["same_groups"] == {"object": "static"}
