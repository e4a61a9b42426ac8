"""Options that name what they need: without it they change neither a frame's passes nor what it
shows."""

from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest

from engine.gpu.pipelines import PipelineCache
from engine.gpu.shader import Composer
from passes.frame_options import FrameOptions
from passes.option import Need
from passes.option_list import OPTIONS, Option, ViewSettings, idle
from passes.prepare import PreparedScene

SIZE = (32, 18)
# Between them every need is unmet once: screen reflections have a probe, which has a shadow map.
WITHOUT = (
    FrameOptions(*SIZE),
    FrameOptions(*SIZE, reflections="screen", shadows="map"),
    FrameOptions(*SIZE, history=2),
    FrameOptions(*SIZE, traversal="contract"),
    FrameOptions(*SIZE, any_hit="reject"),
    FrameOptions(*SIZE, reflections="screen", shadows="map", probe_position="scene"),
)
# And met once.
WITH = (
    FrameOptions(
        *SIZE,
        any_hit_mode="queue",
        count=True,
        occlusion=True,
        ray_sort="fine",
        reflection_scale="half",
    ),
    FrameOptions(*SIZE, reflections="screen", shadows="map"),
)
NEEDY = [(option, need) for option in OPTIONS for need in option.needs]


def other_value(option: Option, settings: ViewSettings) -> Any:
    value = option.get(settings)
    if option.kind == "choice":
        return next(choice for choice in reversed(option.choices) if choice != value)
    if option.kind == "flag":
        return not value
    return option.high if value != option.high else option.low


@pytest.fixture(scope="module")
def drawn_before() -> dict[FrameOptions, tuple[PipelineCache, list[str], Any]]:
    """By frame of WITHOUT that was drawn: a cache with its kernels and no other test's, its passes
    and what it shows."""
    return {}


@pytest.mark.parametrize(("option", "need"), NEEDY, ids=[f"{o.name}, {n.text}" for o, n in NEEDY])
def test_without_what_it_needs_an_option_changes_nothing(
    option: Option,
    need: Need,
    device: Any,
    draw: Any,
    room: PreparedScene,
    drawn_before: dict[FrameOptions, tuple[PipelineCache, list[str], Any]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Neither passes nor kernels nor the picture."""
    frame = next(frame for frame in WITHOUT if not need.met(frame))
    if frame not in drawn_before:
        cache = PipelineCache(device.wgpu, Composer(), device.info.is_cpu)
        monkeypatch.setattr(device, "pipelines", cache)
        drawn_before[frame] = cache, *passes_and_picture(draw(room, **changes_of(frame)))
    cache, passes, picture = drawn_before[frame]
    before = ViewSettings(frame=frame)
    after = option.set(before, other_value(option, before))
    assert after != before
    made = cache.made
    assert made > 5
    monkeypatch.setattr(device, "pipelines", cache)
    drawn = draw(room, **changes_of(after.frame))
    assert cache.made == made
    assert [one.name for one in drawn.frame.passes] == passes
    np.testing.assert_array_equal(drawn.radiance, picture)


def passes_and_picture(drawn: Any) -> tuple[list[str], Any]:
    return [one.name for one in drawn.frame.passes], drawn.radiance


def test_every_need_can_be_met() -> None:
    for option, need in NEEDY:
        assert any(need.met(frame) for frame in WITH), option.name
        for name, values in need.ways:
            met = [need.met(replace(FrameOptions(*SIZE), **{name: value})) for value in values]
            assert met and all(met), option.name


def test_idle_options_are_those_that_are_changed_and_lack_something() -> None:
    assert idle(ViewSettings()) == ()
    half = ViewSettings(FrameOptions(*SIZE, reflection_scale="half", upsample="plain"))
    assert idle(half) == ()
    for option, need in NEEDY:
        frame = next(frame for frame in WITHOUT if not need.met(frame))
        settings = ViewSettings(frame)
        changed = option.set(settings, other_value(option, ViewSettings()))
        assert (option, option.lacks(frame)) in idle(changed), option.name
        assert option not in [found for found, _ in idle(settings)]


def changes_of(frame: FrameOptions) -> dict[str, Any]:
    """The fields as a frame is asked for with."""
    return {field.name: getattr(frame, field.name) for field in fields(frame)}
