"""An ablation that may take so long, or is interrupted: what it leaves out, and what it leaves."""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bvh.blas import BuildOptions
from bvh.build import build_blas
from engine.gpu.errors import CheckFailed, UserError
from engine.scene.scene import Scene
from passes.frame_options import FrameOptions
from passes.option_list import ViewSettings
from passes.prepare import prepare
from treeline import ablate as module
from treeline import structures
from treeline.ablate import Ablation, Measuring, ablate
from treeline.ablate_switches import Setup
from treeline.ablate_terms import Totals
from treeline.ablate_variants import Variant
from treeline.ablation_table import parse_table
from treeline.cli.ablate import _print_switches
from treeline.counted_rays import CountedRays
from treeline.paired_effects import FEWEST_PAIRS
from treeline.scenes import load
from treeline.shared_builds import SharedBuilds
from treeline.time_limit import TimeLimit
from treeline.verdict import verdict

KINDS = {("reflection", 0): 10, ("shadow", 0): 10, ("shadow", 1): 10}
COUNTS = Totals({"reflection": 10, "shadow": 20}, {}, {}, 100, KINDS)
NOTHING = CountedRays(np.ones(1, np.float32), {}, 100)


@dataclass(slots=True)
class Machine:
    """Frames that take 10 s to make and 1 s to draw, by a clock of its own. The frame that is drawn
    after `fails` others fails."""

    stats: Any
    now: float = 0.0
    drawn: int = 0
    fails: float = float("inf")
    keeps: bool = False  # passes from frame to frame, until it forgets them
    held: bool = False

    def make(self, setup: Setup) -> tuple[Variant, CountedRays]:
        self.now += 10.0
        frame: Any = self
        part = 1 if setup.settings.frame.reflection_scale == "full" else 4
        kinds = {kind: count // part for kind, count in COUNTS.kinds.items()}
        return Variant(frame, replace(COUNTS, kinds=kinds), 1.0), NOTHING

    def run(self, index: int = 0) -> Any:
        self.now += 1.0
        self.drawn += 1
        if self.drawn > self.fails:
            return replace(self.stats, valid=False, failures=("a planted failure",))
        if self.held:
            return replace(self.stats, frame_total_ms=2.0, reused=("probe/light",))
        self.held = self.keeps
        return self.stats

    def forget(self) -> None:
        self.held = False


@pytest.fixture(scope="module")
def hall() -> Scene:
    return load(None)


@pytest.fixture
def measure(
    monkeypatch: pytest.MonkeyPatch, make_stats: Any, silent: Any, hall: Scene
) -> Callable[..., tuple[Machine, list[Any], Callable[[], Ablation]]]:
    """(machine, tables that were kept, what runs the ablation)."""

    def make(seconds: float = float("inf"), **settings: Any) -> Any:
        machine = Machine(make_stats(50, 20, False), **settings)
        monkeypatch.setattr(module, "Variants", lambda *_: machine)
        kept: list[Any] = []

        def run(**asked: Any) -> Ablation:
            budget = TimeLimit(seconds, lambda: machine.now)
            setup = Setup(hall, ViewSettings(FrameOptions(8, 8)))
            device: Any = None

            def prepare_nothing(setup: Setup) -> Any:
                raise AssertionError

            return ablate(
                *(device, setup, prepare_nothing, (8, 8), {}, silent),
                pairs=10,
                budget=budget,
                keep=lambda table: kept.append(json.loads(json.dumps(table))),
                **asked,
            )

        return machine, kept, run

    return make


def test_without_a_limit_everything_is_measured(measure: Any) -> None:
    machine, _, run = measure()
    found = run()
    context = found.table["context"]
    assert context["pairs"] == 10 and context["unmeasured"] == [] and "unfinished" not in context
    assert len(found.table["switches"]) > 8 and len(found.table["interactions"]) == 3
    assert "no time was left" not in context["left_out"].values()


def test_kept_passes_are_no_free_ones(measure: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """What is reused is said of the base and of each switch, with the cost of what is not."""
    _, _, run = measure(keeps=True)
    found = run(only=["half_resolution", "shadow"])
    facts = {"passes": 1, "steady_ms": 2.0, "redrawn_ms": 11.0}
    names = ("base", "half_resolution", "shadow")
    assert found.table["context"]["reused"] == dict.fromkeys(names, facts)
    where = {"scene": "s", "width": 8, "height": 8, "adapter": "a", "timing_source": "t"}
    found.table["context"] |= where
    _print_switches(found)
    shown = capsys.readouterr().out
    assert "base: 1 passes were reused, 2.0 ms; a frame that runs them takes 11.0 ms" in shown
    assert "\nshadow off: 1 passes were reused" in shown
    assert "reused" not in measure()[2](only=["shadow"]).table["context"]


@pytest.mark.parametrize("seconds", [100.0, 160.0, 260.0, 400.0])
def test_what_does_not_fit_is_left_out_and_named(seconds: float, measure: Any) -> None:
    every = set(measure()[2]().table["switches"])
    machine, _, run = measure(seconds)
    found = run()
    assert machine.now <= seconds
    context, switches = found.table["context"], found.table["switches"]
    missing = {name for name, why in context["left_out"].items() if why == "no time was left"}
    assert switches and set(switches) | missing == every
    assert bool(missing) == (seconds < 400) and (missing or context["unmeasured"])
    assert not set(switches) & missing
    assert all(item["pairs"] >= FEWEST_PAIRS for item in context["terms"].values())
    assert all("interval_ms" in fields for fields in switches.values())
    couples = min(3, len(switches) * (len(switches) - 1) // 2)
    together = [what for what in context["unmeasured"] if what.endswith("together")]
    assert len(found.table["interactions"]) + len(together) == couples
    if context["pairs"] < 10:
        assert f"pairs {context['pairs'] + 1} to 10 of each switch" in context["unmeasured"]


def test_too_little_for_anything_is_said(measure: Any) -> None:
    _, _, run = measure(20.0)
    with pytest.raises(UserError, match="20 s are too few for any switch of this scene"):
        run()


def test_what_is_known_is_kept_after_each_step(measure: Any) -> None:
    _, kept, run = measure()
    found = run(only=("shadow", "nodes"))
    assert [set(table["switches"]) for table in kept[:3]] == [set(), set(), {"shadow", "nodes"}]
    assert kept[0]["context"]["unfinished"] == "it ended while making shadow"
    assert set(kept[0]["context"]["terms"]) == {"shadow"}  # its counts are known
    assert [table["context"]["pairs"] for table in kept] == [0, 0, *range(1, 11), 10]
    assert kept[-1]["context"]["unfinished"] == "it ended while making shadow and nodes"
    for table in kept[2:]:  # of one pair the times, of enough their interval
        assert parse_table(table).switches[0].off_ms == 11.0
        enough = table["context"]["pairs"] >= FEWEST_PAIRS
        assert ("interval_ms" in table["switches"]["nodes"]) == enough
    assert "unfinished" not in found.table["context"]


def test_a_failure_leaves_what_was_measured_before(measure: Any) -> None:
    _, kept, run = measure(fails=31)
    with pytest.raises(CheckFailed, match="a planted failure"):
        run(only=("shadow", "nodes"))
    assert kept[-1]["context"]["pairs"] == 7
    assert kept[-1]["context"]["unfinished"] == "it ended while timing pair 7 of 10"
    assert verdict(parse_table(kept[-1])).base_ms == 11.0


def test_the_command_leaves_a_file_that_is_read(
    run: Any, box: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, one_line: Any
) -> None:
    def fail(*_: Any) -> None:
        raise CheckFailed("planted")

    monkeypatch.setattr(Measuring, "measure_interactions", fail)
    out = tmp_path / "made" / "a.json"
    out.parent.mkdir()
    out.write_text("an older one")
    words = ("--size", "8x6", "--pairs", 6, "--optimize", 0, "--builder", "lbvh", "--quiet")
    result = run("ablate", "--scene", box, *words, "--only", "shadow", "--out", out)
    assert one_line(result, 1).endswith("planted") and out.read_text() == "an older one"
    partial = out.with_name("a.json.partial")
    assert sorted(p.name for p in out.parent.iterdir()) == ["a.json", partial.name]
    answer = json.loads(run("ablate", "--from", partial, "--json", "-").stdout)
    assert answer["verdict"][0]["cause"] == "ray_count"
    table = json.loads(partial.read_text())
    assert table["context"]["pairs"] == 6 and table["context"]["scene"] == "box.obj"


def test_structures_of_variants_share_what_they_can(
    shared_scenes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fox = load(shared_scenes / "Fox.glb")
    built: list[BuildOptions] = []

    def build(*given: Any) -> Any:
        built.append(given[-1])
        return build_blas(*given)

    monkeypatch.setattr(structures, "build_blas", build)
    options = BuildOptions(builder="lbvh", reinsertion=0)
    builds = SharedBuilds(None, None)
    first = builds.prepare(fox, options, "static")
    assert builds.prepare(fox, options, "static") is first and len(built) == 1
    # A figure that deforms is in no cache; its BLAS is the same one in another grouping.
    second = builds.prepare(fox, options, "object")
    assert len(built) == 1 and second is not first
    assert second.pack.texels is first.pack.texels
    alone = prepare(fox, options, "object")
    assert np.array_equal(alone.bvh.words, second.bvh.words)
    assert np.array_equal(alone.pack.texels, second.pack.texels)
    assert np.array_equal(alone.pack.texture_table, second.pack.texture_table)
    builds.prepare(fox, replace(options, nodes="fp32"), "static")
    assert [o.nodes for o in built] == ["auto", "fp32"]
    # Other textures are not taken for these.
    plain = replace(
        fox,
        textures=(),
        materials=tuple(
            replace(m, base_color_texture=-1, metallic_roughness_texture=-1) for m in fox.materials
        ),
    )
    other = structures.build(plain, options, "object", like=first).prepared
    assert len(other.pack.texels) == 1
