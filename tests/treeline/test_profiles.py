"""Which profile a machine gets, and that every better one is refused with its reason."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from passes.frame_options import FrameOptions
from passes.rays import BOUNCES, RAY_TYPES, frame_rays
from treeline import profiles
from treeline.profiles import (
    GUARANTEED,
    PROFILES,
    WITHOUT_RAYS,
    Capabilities,
    Profile,
    capabilities,
    negotiate,
)

Run = Callable[..., Any]
PLAIN = Capabilities("made up", "wgpu-native 1", frozenset(), GUARANTEED, False)
HARDWARE = replace(
    PLAIN,
    features=frozenset({"ray-query"}),
    limits={**GUARANTEED, "max-storage-buffer-binding-size": 1 << 30},
    builds_structures=True,
)


def chosen(here: Capabilities) -> str | None:
    found = negotiate(here).chosen
    return found.name if found else None


def test_the_table() -> None:
    names = [profile.name for profile in PROFILES]
    assert names == [
        *("HardwareRT_High", "HardwareRT_Limited", "ComputeFull", "ComputeHalf"),
        "RasterFallback",
    ]
    known = {ray_type.name for ray_type in (*RAY_TYPES, *BOUNCES)}
    for profile in PROFILES:
        assert set(profile.rays) <= known
        options = profile.frame(FrameOptions(8, 8))  # refuses unknown fields and values
        assert options.occlusion == ("occlusion" in profile.rays)
        assert {ray.name for ray in frame_rays(options)} == set(profile.rays)
        if profile.rays:
            reflections = profile.bounces * profile.scale**2
            sent = {t: n for t, n in profile.rays.items() if t.startswith("reflection")}
            assert sum(sent.values()) == reflections
            assert profile.rays["shadow"] == options.shadow_rays * (1 + reflections)
        assert 1 / options.reflection_block == profile.scale or not profile.rays
        assert options.filtered == (profile.denoiser not in ("none", "running mean"))
        assert options.any_hit_mode == profile.any_hit or not profile.rays
        assert options.reflection_bounces == max(1, profile.bounces)
        assert profile.facts()["name"] == profile.name


def test_compute_is_what_there_is_today() -> None:
    found = negotiate(PLAIN)
    assert found.chosen is not None and found.chosen.name == "ComputeFull"
    # A full profile is the frame as it is: no option of it changes.
    assert found.chosen.frame(FrameOptions(8, 8)) == FrameOptions(8, 8)
    high = found.refused["HardwareRT_High"]
    assert "made up does not offer the feature ray-query" in high[0]
    assert "wgpu-native 1 has no call that builds an acceleration structure" in high[0]
    assert "max-storage-buffer-binding-size is 134,217,728, 1,073,741,824 needed" in high[1]
    answers = dict(found.lines())
    assert answers["ComputeFull"] == "CHOSEN"
    assert answers["ComputeHalf"].startswith("possible")
    assert "made up does not offer the feature primitive-index" in answers["RasterFallback"]
    assert list(answers) == [profile.name for profile in PROFILES]


def test_ray_queries_alone_are_not_enough() -> None:
    for name, here in {
        "does not offer": replace(HARDWARE, features=frozenset()),
        "no call that builds": replace(HARDWARE, builds_structures=False),
        "ray queries in the kernels: not there yet": HARDWARE,
    }.items():
        found = negotiate(here)
        assert chosen(here) == "ComputeFull"
        for better in ("HardwareRT_High", "HardwareRT_Limited"):
            assert any(name in reason for reason in found.refused[better]), (name, better)


@pytest.mark.parametrize("limit", GUARANTEED)
def test_too_low_a_limit_leaves_the_rasteriser_or_nothing(limit: str) -> None:
    limits = {**GUARANTEED, limit: min(GUARANTEED[limit], WITHOUT_RAYS.get(limit, 1 << 60)) - 1}
    here = replace(PLAIN, limits=limits, features=frozenset({"primitive-index"}))
    found = negotiate(here)
    assert f"{limit} is {limits[limit]:,}" in found.refused["ComputeFull"][0]
    assert f"{limit} is {limits[limit]:,}" in found.refused["ComputeHalf"][0]
    if limit in WITHOUT_RAYS:
        assert found.chosen is None
        assert all(answer.startswith("refused: ") for _, answer in found.lines())
    else:
        assert chosen(here) == "RasterFallback"


def test_what_comes_later_is_chosen_once_it_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = tuple(replace(profile, not_there=()) for profile in PROFILES)
    monkeypatch.setattr(profiles, "PROFILES", whole)
    small = {**GUARANTEED, "max-storage-buffer-binding-size": 32 << 20}
    numbers = replace(PLAIN, features=frozenset({"primitive-index"}))
    expected = {
        "HardwareRT_High": HARDWARE,
        "HardwareRT_Limited": replace(HARDWARE, limits=GUARANTEED),
        "ComputeFull": PLAIN,
        "RasterFallback": replace(numbers, limits=small),
    }
    assert {name: chosen(here) for name, here in expected.items()} == {n: n for n in expected}
    lines = negotiate(numbers).lines()
    possible = [name for name, answer in lines if answer.startswith("possible")]
    assert possible == ["ComputeHalf", "RasterFallback"]


def test_the_fallback_traces_nothing(device: Any) -> None:
    fallback = next(profile for profile in PROFILES if profile.name == "RasterFallback")
    options = fallback.frame(FrameOptions(8, 8))
    assert not options.traces and not fallback.not_there
    assert fallback.refusals(capabilities(device)) == []


def test_this_adapter(device: Any) -> None:
    here = capabilities(device)
    assert here.adapter == device.info.adapter and here.interface.startswith("wgpu-native ")
    assert "timestamp-query" in here.features or "timestamp-query" not in device.features
    found = negotiate(here).chosen
    assert isinstance(found, Profile) and found.name == "ComputeFull"


def test_a_command_draws_by_a_profile(run: Run, box: Path, tmp_path: Path) -> None:
    words = ("--scene", box, "--size", "16x8", "--no-cache", "--optimize", 0)
    pictures = {}
    for name in ("auto", "RasterFallback"):
        out = ("--out", tmp_path / f"{name}.png", "--samples", 1)
        result = run("render", *words, *out, "--profile", name)
        assert result.exit_code == 0, result.stderr
        pictures[name] = (tmp_path / f"{name}.png").read_bytes()
        wanted = "ComputeFull" if name == "auto" else name
        assert f"profile {wanted}: occlusion False" in result.stderr
        # By "auto" it is said why nothing better was taken.
        assert ("profile HardwareRT_High refused: " in result.stderr) == (name == "auto")
    assert pictures["auto"] != pictures["RasterFallback"]
    out = ("--out", tmp_path / "r", "--frames", 1, "--warmup", 0, "--quiet")
    assert run("report", *words, *out, "--profile", "ComputeFull").exit_code == 0
    context = json.loads((tmp_path / "r" / "report.json").read_text())["context"]
    assert context["profile"] == {"name": "ComputeFull", "refused": {}}


@pytest.mark.parametrize("command", ["render", "report", "view"])
def test_a_profile_is_refused_never_replaced(
    command: str, run: Run, box: Path, tmp_path: Path, one_line: Callable[[Any, int], str]
) -> None:
    out = tmp_path / ("p.png" if command == "render" else "folder")
    words = [command, "--scene", box, "--out", out, "--quiet", "--profile"]
    refused = one_line(run(*words, "HardwareRT_High"), 2)
    assert "this profile does not run here: HardwareRT_High: " in refused
    assert "ray-query" in refused or "ray queries in the kernels: not there yet" in refused
    unknown = one_line(run(*words, "Best"), 2)
    assert "no profile is named 'Best'; there are HardwareRT_High, " in unknown
    both = one_line(run(*words, "ComputeHalf", "--reflection-scale", "quarter"), 2)
    assert "ComputeHalf sets reflection_scale to half" in both and "not quarter" in both
    assert not out.exists()


def test_nothing_runs_where_every_profile_is_refused(
    monkeypatch: pytest.MonkeyPatch, run: Run, box: Path, tmp_path: Path, one_line: Any
) -> None:
    none = replace(PLAIN, limits=dict.fromkeys(GUARANTEED, 1))
    monkeypatch.setattr(profiles, "capabilities", lambda device: none)
    words = ("--scene", box, "--out", tmp_path / "p.png", "-q", "--profile", "auto")
    refused = one_line(run("render", *words), 2)
    assert refused.count("no profile runs here: ") == 1
    assert all(profile.name in refused for profile in PROFILES)
