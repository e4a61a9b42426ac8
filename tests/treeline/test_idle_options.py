"""Options that change nothing as others stand are named on stderr, with what they need."""

import json
import re
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from passes.frame_options import FrameOptions
from passes.option import Need, Option
from passes.option_list import OPTIONS, ViewSettings, idle
from treeline.cli.frame_flags import FrameFlags
from treeline.cli.idle_options import flag_of, needed, note_idle

# All that any option needs is off in one of these.
BARE = (
    FrameOptions(8, 8),
    FrameOptions(8, 8, shadows="map"),
    FrameOptions(8, 8, reflections="screen", shadows="map"),
    FrameOptions(8, 8, traversal="contract"),
    FrameOptions(8, 8, any_hit="reject"),
    FrameOptions(8, 8, reflections="screen", shadows="map", probe_position="scene"),
)
NEEDY = [
    (option, need) for option in OPTIONS for need in option.needs if flag_of(option.name, "reject")
]


def other_value(option: Option) -> Any:
    default = option.get(ViewSettings(FrameOptions(0, 0)))
    if option.kind == "choice":
        return next(choice for choice in reversed(option.choices) if choice != default)
    return not default if option.kind == "flag" else option.high


@pytest.mark.parametrize(("option", "need"), NEEDY, ids=[f"{o.name}, {n.text}" for o, n in NEEDY])
def test_each_is_noted_until_it_has_what_it_needs(
    option: Option, need: Need, capsys: pytest.CaptureFixture[str]
) -> None:
    bare = next(frame for frame in BARE if option.lacks(frame) is need)
    value = other_value(option)
    settings = option.set(ViewSettings(bare), value)
    note_idle(settings.frame)
    flag = flag_of(option.name, value)
    assert capsys.readouterr().err == (f"treeline: {flag} has no effect: it needs {needed(need)}\n")
    note_idle(settings.frame, quiet=True)
    assert capsys.readouterr().err == ""
    if need.ways == (("any_hit", ("test",)),):
        assert needed(need) == "neither --force-opaque nor --force-reject"
        return
    # What the line says to write is what it takes.
    for way in re.split(r" or (?=--)", needed(need)):
        name, *values = re.split(r" or | ", way.removeprefix("--"))
        assert name.replace("-", "_") in {field.name for field in fields(FrameFlags)}
        for word in values or (True,):
            met = replace(settings.frame, **{name.replace("-", "_"): word})
            assert need not in [lacking for found, lacking in idle(ViewSettings(met))]


def test_the_needs_of_all_options_are_told_apart() -> None:
    assert len(NEEDY) > 15
    found = {option.name: needed(need) for option, need in NEEDY}
    assert found["upsample"] == "--reflection-scale half or quarter"
    assert found["probe_size"] == "--reflections screen or --rough-fallback probe"
    assert found["occlusion_radius"] == "--occlusion"


def test_a_command_notes_them_and_goes_on(
    run: Callable[..., Any], box: Path, tmp_path: Path
) -> None:
    """What a profile sets counts."""
    out = tmp_path / "a.png"
    words = ("render", "--scene", box, "--size", "8x8", "--samples", 1, "--out", out)
    idle_words = ("--profile", "ComputeHalf", "--upsample", "plain", "--probe-size", 128)
    result = run(*words, *idle_words)
    assert result.exit_code == 0 and out.exists()
    assert [line for line in result.stderr.splitlines() if "no effect" in line] == [
        "treeline: --probe-size has no effect: it needs --reflections screen or "
        "--rough-fallback probe"
    ]
    assert "no effect" not in run(*words, "--probe-size", 128, "--quiet").stderr


def test_the_command_line_has_every_option_of_a_frame(
    run: Callable[..., Any], box: Path, tmp_path: Path
) -> None:
    """But for those that only look at a frame, and kernels, which `treeline tune` chooses."""
    kernels = {"any_hit_rounds", "loops", "sort_shadow", "stack"}
    looks = {"count", "count_lanes", "exposure", "motion"}
    names = {field.name for field in fields(FrameOptions)} & {option.name for option in OPTIONS}
    flags = {name for name in names if flag_of(name, "test")}
    assert names - flags == kernels | looks
    rays = {}
    for cutoff in (0.3, 0.9):
        report = tmp_path / f"{cutoff}.json"
        words = ("report", "--scene", box, "--size", "16x16", "--frames", 1, "--json", report)
        result = run(*words, "--out", tmp_path / "out", "--roughness-cutoff", cutoff)
        assert result.exit_code == 0
        found = json.loads(report.read_text())
        assert found["context"]["roughness_cutoff"] == cutoff
        rows = {row["name"]: row for row in found["benchmarks"]}
        rays[cutoff] = rows["ray/reflection"]["rays"]
    assert rays[0.3] == 0 < rays[0.9]
