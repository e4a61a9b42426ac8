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
from treeline.ablate_terms import Totals, counted_changes, timed_changes, totals
from treeline.ablation_table import parse_table
from treeline.causes import switch_causes
from treeline.counted_rays import CountedRays, TypeRays, aligned, same_rays
from treeline.paired_effects import switch_fields
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
    assert off["upsample"].frame.upsample == "plain"
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


PIXELS = 4000
MIRROR = np.arange(PIXELS) % 4 == 0  # pixels that send a reflection ray
LEAVES = np.arange(PIXELS) % 8 == 0  # whose ray meets leaves


def shot(rays: Any, parents: tuple[str, ...], nodes: Any, any_hits: Any, start: Any) -> TypeRays:
    """One type whose rays, [pixels, slots a pixel] of them, start at x = `start`."""
    sent = np.broadcast_to(rays, (PIXELS, len(parents))).reshape(-1)
    whole = [np.broadcast_to(v, (PIXELS, len(parents))).reshape(-1) for v in (nodes, any_hits)]
    counts = [np.where(sent, v, 0).astype(np.uint32) for v in whole]
    x = np.broadcast_to(start, (PIXELS, len(parents))).reshape(-1, 1)
    return TypeRays(
        parents,
        sent,
        np.where(sent[:, None], x, 0).astype(np.float32),
        np.zeros((len(sent), 1), np.uint32),
        counts[0],
        counts[1],
    )


def frame_of(
    reflects: Any = MIRROR, opaque: bool = False, turned: float = 0.0, dear: float = 1.0
) -> CountedRays:
    """Every pixel sends a shadow ray, some a reflection ray of 20 nodes, whose hit sends a shadow
    ray of twice as many nodes. Where these meet leaves they ask twice, end behind them and send no
    further ray; if leaves are `opaque`, they end before and send one."""
    ends = np.where(LEAVES, 1.0 if opaque else 3.0, 2.0)
    asks = np.where(LEAVES & (not opaque), 2, 0)
    further = reflects & (~LEAVES | opaque)
    nodes = np.where(LEAVES, 10 if opaque else 40, 20) * dear
    pixel = np.arange(PIXELS) / 8.0
    reflection = shot(
        reflects[:, None], ("primary",), nodes[:, None], asks[:, None], pixel[:, None] + turned
    )
    shadow = shot(
        np.stack([np.ones(PIXELS, bool), further], 1),
        ("primary", "reflection"),
        np.stack([np.full(PIXELS, 10.0), np.full(PIXELS, 20.0)], 1) * dear,
        np.zeros((PIXELS, 2)),
        np.stack([pixel, pixel + ends], 1),
    )
    return CountedRays(
        np.full(PIXELS, 5.0, np.float32), {"reflection": reflection, "shadow": shadow}, 4096
    )


def test_a_term_is_judged_over_rays_that_those_before_it_leave_alone() -> None:
    base = frame_of()
    assert counted_changes(base, base).changes == {}
    # Other rays of a type say nothing about those that are left, nor do their hits' shadow rays.
    half = counted_changes(base, frame_of(MIRROR & (np.arange(PIXELS) % 16 == 0)))
    assert half.changes == {"rays": pytest.approx(-0.75)}
    none = counted_changes(base, frame_of(np.zeros(PIXELS, bool)))
    assert none.changes == {"rays": -1.0} and none.unjudged == {}
    # Leaves taken for opaque: other hits, so more shadow rays, and fewer nodes; neither is a term.
    assert counted_changes(base, frame_of(opaque=True)).changes == {"any-hit": -1.0}
    # What is the option's own doing is seen in each.
    dear = counted_changes(base, frame_of(dear=1.1))
    assert dear.changes == {"nodes": pytest.approx(0.1, abs=0.05)}
    assert counted_changes(base, replace(base, layout_bytes=5120)).changes == {"layout bytes": 0.25}
    # Shadow rays of reflection hits alone, which nothing that they start at explains.
    shadow = base.types["shadow"]
    mute = replace(shadow, sent=(shadow.by_pixel(shadow.sent) & [True, False]).reshape(-1))
    lost = counted_changes(base, replace(base, types={**base.types, "shadow": mute}))
    assert lost.changes == {"rays": pytest.approx(-1 / 9)}
    moved = counted_changes(base, frame_of(turned=0.5))
    assert moved.changes == {}  # reflection rays are other ones, shadow rays tell
    behind = replace(frame_of(turned=0.5), depth=base.depth * 2)
    assert counted_changes(base, behind).unjudged == {"rays": "no ray is the same in both frames"}


def test_slots_of_other_layouts_are_matched() -> None:
    """Two bounces and two shadow rays a surface beside one of each."""
    base = frame_of()
    reflection, shadow = base.types["reflection"], base.types["shadow"]
    one = shadow.by_pixel(shadow.sent)
    twice = shot(
        np.stack([one[:, 0], one[:, 0], one[:, 1], one[:, 1], one[:, 1], one[:, 1]], 1),
        ("primary", "primary", *("reflection",) * 4),
        *(
            np.repeat(shadow.by_pixel(v)[:, [0, 1, 1]], 2, 1)
            for v in (shadow.nodes, shadow.any_hits)
        ),
        np.repeat(shadow.floats.reshape(PIXELS, 2)[:, [0, 1, 1]], 2, 1) + [0, 9, 0, 9, 7, 9],
    )
    bounced = shot(
        np.stack([reflection.sent, one[:, 1]], 1),
        ("primary", "reflection"),
        np.stack([reflection.nodes, reflection.nodes], 1),
        np.stack([reflection.any_hits, reflection.any_hits], 1),
        np.stack([reflection.floats[:, 0], reflection.floats[:, 0] + 3], 1),
    )
    more = replace(base, types={"reflection": bounced, "shadow": twice})
    on, off = aligned(base, more)
    assert on.types["shadow"].parents == off.types["shadow"].parents == twice.parents
    assert totals(on).rays == totals(base).rays and totals(off).rays == totals(more).rays
    assert same_rays(on.types["shadow"], off.types["shadow"]).sum() == one.sum()
    # First hits that both reach: shadow rays go from 4500 to 9000, those of second hits follow.
    found = counted_changes(base, more)
    assert found.changes == {"rays": pytest.approx(1.0)} and not found.unjudged
    back = counted_changes(more, base)
    assert back.changes == {"rays": pytest.approx(-0.5)}
    # A bounce alone: what its hits send follows from it.
    alone = replace(more, types={**more.types, "shadow": shadow})
    assert counted_changes(base, alone).changes == {"rays": pytest.approx(0.5)}


def test_every_ray_keeps_a_slot_of_its_own() -> None:
    def frame(parents: tuple[str, ...]) -> CountedRays:
        x = np.arange(3 * PIXELS).reshape(PIXELS, 3)
        rays = shot(np.ones((PIXELS, 3), bool), parents, x + 1, 0 * x, x)
        return CountedRays(np.ones(PIXELS, np.float32), {"shadow": rays}, 0)

    two = (
        frame(("primary", "primary", "reflection")),
        frame(("primary", "reflection", "reflection")),
    )
    for before, after in zip(two, aligned(*two), strict=True):
        assert after.types["shadow"].parents == ("primary", "primary", "reflection", "reflection")
        assert (
            totals(after).nodes == totals(before).nodes and totals(after).rays["shadow"] == 12_000
        )


def test_totals() -> None:
    found = totals(frame_of())
    assert found.kinds == {("reflection", 0): 1000, ("shadow", 0): 4000, ("shadow", 1): 500}
    assert found.rays == {"reflection": 1000, "shadow": 4500}
    assert found.nodes == {"reflection": 30_000, "shadow": 50_000}
    assert found.any_hits == {"reflection": 1000, "shadow": 0}


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

    same = totals(frame_of())

    def changes(off: list[Any], counts: Totals = same) -> Any:
        return timed_changes(runs(), off, same, counts, 50)

    assert changes(runs()).changes == {} and changes(runs()).unjudged == {}
    assert changes(runs(traverse=1.5)).changes == {"time a node": pytest.approx(0.5, abs=0.05)}
    assert changes(runs(shade=0.5)).changes == {"hit shading": pytest.approx(-0.5, abs=0.05)}
    by_raster, twice, by_rays = (
        [
            replace(run, passes={**run.passes, name: factor * run.passes["composite"]})
            for run in runs()
        ]
        for name, factor in (("gbuffer/raster", 1), ("gbuffer/raster", 2), ("gbuffer/rays", 2))
    )
    found = timed_changes(by_raster, twice, same, same, 50).changes
    assert found == {"raster": pytest.approx(1.0, abs=0.1)}
    assert timed_changes(by_raster, by_rays, same, same, 50).changes == {"raster": -1.0}
    # Where a type's rays differ in number, so does the fixed part of what each takes.
    fewer = replace(same, rays={**same.rays, "reflection": 500})
    found = changes(runs(traverse=0.5, shade=0.5), fewer)
    assert found.changes == {"time a node": pytest.approx(-0.5, abs=0.05)}  # by shadow rays
    assert "reflection" in found.unjudged["hit shading"]
    asked = replace(same, any_hits={"reflection": 0, "shadow": 9})
    unjudged = changes(runs(traverse=0.5, shade=0.5), asked).unjudged
    assert set(unjudged) == {"time a node", "hit shading"}
    none = replace(
        same, any_hits={"reflection": 0, "shadow": 9}, rays={"reflection": 1, "shadow": 2}
    )
    assert set(changes(runs(traverse=0.5), none).unjudged) >= {"time a node", "hit shading"}


def test_passes_of_a_type_that_one_frame_sends_are_no_change_of_the_rest(make_stats: Any) -> None:
    """Not even where it sends no ray of it: a further bounce of a frame without mirrors."""
    stats = make_stats(64, 36, False)
    before = totals(frame_of())
    after = replace(
        before,
        rays={**before.rays, "reflection_2": 0},
        nodes={**before.nodes, "reflection_2": 0},
        any_hits={**before.any_hits, "reflection_2": 0},
    )
    more = {"traverse/reflection_2/0": 1.0, "rays/reflection_2": 1.0, "shade/reflection_2": 1.0}
    one, other = [stats] * 8, [replace(stats, passes={**stats.passes, **more})] * 8
    for given in ((one, other, before, after), (other, one, after, before)):
        found = timed_changes(*given, 50)
        assert found.changes == {}
    assert timed_changes(one, one, before, before, 50).unjudged == {}


def test_command_measures_and_reads_what_it_wrote(
    run: Run, box: Path, tmp_path: Path, one_line: Any
) -> None:
    out = tmp_path / "made" / "ablation.json"
    quick = (
        "--scene",
        box,
        "--size",
        "24x16",
        "--pairs",
        6,
        "--optimize",
        0,
        "--builder",
        "lbvh",
        "--no-cache",
    )
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


def test_runs_that_take_longer_with_fewer_rays_are_a_table() -> None:
    """As where a frame is too small for half its resolution to save what upsampling costs."""
    on, off = [4.0, 4.1, 4.0, 4.2, 4.0, 4.1], [6.0, 6.1, 6.2, 6.0, 6.1, 6.0]
    table = {"base_ms": 4.05, "switches": {"half_resolution": switch_fields(on, off, 0.25)}}
    (finding,) = verdict(parse_table(table)).findings
    assert finding.effect_ms == pytest.approx(-2.0, abs=0.1) and finding.rank == "minor"


def test_planted_slowdowns_were_named_first() -> None:
    """By the tables of benchmarks/planted_slowdowns.py, which says what was planted."""
    record = json.loads((RECORDS / "planted-slowdowns-llvmpipe.json").read_text())
    assert set(record["cases"]) == {"bvh_quality", "foliage_any_hit", "characters_update"}
    for planted, case in record["cases"].items():
        first = verdict(parse_table(case["table"])).findings[0]
        assert (first.cause, first.rank) == (planted, "primary")
        terms = case["table"]["context"]["terms"].values()
        assert not any(term["undeclared"] for term in terms)


def test_a_record_of_an_ablation_is_read() -> None:
    record = json.loads((RECORDS / "ablate-hall-llvmpipe.json").read_text())
    found = verdict(parse_table(record))
    assert {"half_resolution", "any_hit", "builder", "update"} <= set(record["switches"])
    assert len(found.findings) == 5 and len(record["interactions"]) == 3
    terms = record["context"]["terms"]
    assert all(terms[ray]["changes"]["rays"] < 0 for ray in ("reflection", "shadow"))
    assert terms["any_hit"]["changes"]["any-hit"] == -1.0
    assert not any(term["undeclared"] for term in terms.values())
