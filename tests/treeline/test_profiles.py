"""Which profile a machine gets, and that every better one is refused with its reason."""

from dataclasses import replace
from typing import Any

import pytest

from passes.frame_options import FrameOptions
from passes.rays import RAY_TYPES
from treeline import profiles
from treeline.profiles import (
    GUARANTEED,
    PROFILES,
    Capabilities,
    Profile,
    capabilities,
    negotiate,
)

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
    known = {ray_type.name for ray_type in RAY_TYPES}
    for profile in PROFILES:
        assert set(profile.rays) <= known
        options = profile.frame(FrameOptions(8, 8))  # refuses unknown fields and values
        assert options.occlusion == ("occlusion" in profile.rays)
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
    assert "shadow maps: not there yet" in answers["RasterFallback"]
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
def test_too_low_a_limit_leaves_nothing_today(limit: str) -> None:
    here = replace(PLAIN, limits={**GUARANTEED, limit: GUARANTEED[limit] - 1})
    found = negotiate(here)
    assert found.chosen is None
    assert f"{limit} is {GUARANTEED[limit] - 1:,}" in found.refused["ComputeFull"][0]
    assert all(answer.startswith("refused: ") for _, answer in found.lines())


def test_what_comes_later_is_chosen_once_it_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = tuple(replace(profile, not_there=()) for profile in PROFILES)
    monkeypatch.setattr(profiles, "PROFILES", whole)
    small = {**GUARANTEED, "max-storage-buffers-per-shader-stage": 4}
    expected = {
        "HardwareRT_High": HARDWARE,
        "HardwareRT_Limited": replace(HARDWARE, limits=GUARANTEED),
        "ComputeFull": PLAIN,
        "RasterFallback": replace(PLAIN, limits=small),
    }
    assert {name: chosen(here) for name, here in expected.items()} == {n: n for n in expected}
    possible = [name for name, answer in negotiate(PLAIN).lines() if answer.startswith("possible")]
    assert possible == ["ComputeHalf", "RasterFallback"]


def test_this_adapter(device: Any) -> None:
    here = capabilities(device)
    assert here.adapter == device.info.adapter and here.interface.startswith("wgpu-native ")
    assert "timestamp-query" in here.features or "timestamp-query" not in device.features
    found = negotiate(here).chosen
    assert isinstance(found, Profile) and found.name == "ComputeFull"
