"""Options that name what they need: without it they change neither a frame's passes nor what it
shows."""

from dataclasses import fields
from typing import Any

import numpy as np
import pytest

from engine.gpu.pipelines import PipelineCache
from engine.gpu.shader import Composer
from passes.frame_options import FrameOptions
from passes.option_list import OPTIONS, Option, ViewSettings
from passes.prepare import PreparedScene

SIZE = (32, 18)
# Between them every need is unmet once: screen reflections have a probe, which has a shadow map.
WITHOUT = (
    FrameOptions(*SIZE),
    FrameOptions(*SIZE, reflections="screen", shadows="map"),
    FrameOptions(*SIZE, history=2),
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
NEEDY = [option for option in OPTIONS if option.need is not None]


def other_value(option: Option, settings: ViewSettings) -> Any:
    value = option.get(settings)
    if option.kind == "choice":
        return next(choice for choice in reversed(option.choices) if choice != value)
    if option.kind == "flag":
        return not value
    return option.high if value != option.high else option.low


@pytest.mark.parametrize("option", NEEDY, ids=[option.name for option in NEEDY])
def test_without_what_it_needs_an_option_changes_nothing(
    option: Option, device: Any, draw: Any, room: PreparedScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither passes nor kernels nor the picture."""
    assert option.need is not None
    frame = next(frame for frame in WITHOUT if not option.need.met(frame))
    before = ViewSettings(frame=frame)
    after = option.set(before, other_value(option, before))
    assert after != before
    # A cache of its own: kernels of other tests are not in it.
    cache = PipelineCache(device.wgpu, Composer(), device.info.is_cpu)
    monkeypatch.setattr(device, "pipelines", cache)
    drawn, made = [], []
    for settings in (before, after):
        drawn.append(draw(room, **changes_of(settings.frame)))
        made.append(cache.made)
    assert made[0] == made[1]
    passes = [[one.name for one in found.frame.passes] for found in drawn]
    assert passes[0] == passes[1]
    np.testing.assert_array_equal(drawn[0].radiance, drawn[1].radiance)


def test_every_need_can_be_met() -> None:
    for option in NEEDY:
        assert option.need is not None
        assert any(option.need.met(frame) for frame in WITH), option.name
        assert not all(option.need.met(frame) for frame in WITHOUT), option.name


def changes_of(frame: FrameOptions) -> dict[str, Any]:
    """The fields as a frame is asked for with."""
    return {field.name: getattr(frame, field.name) for field in fields(frame)}
