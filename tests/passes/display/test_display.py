"""The display pass: stages equal their twins, heat maps span their range, counts are summed, and a
ray type's outputs follow from the list of ray types."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from passes.aov import aov_names
from passes.display import DisplayPass, has_range
from passes.display_records import DISPLAY_RANGE
from passes.frame_options import FrameOptions
from passes.hybrid import HybridFrame
from passes.outputs import frame_outputs
from passes.palettes import DIVERGING, NO_RAY, palette_colours
from passes.rays import RAY_TYPES, with_every_ray
from tests.passes.display.by_twins import SIZE, assert_shown, by_twins

OUTPUTS = frame_outputs(with_every_ray(FrameOptions(*SIZE, count=True)))


@pytest.mark.parametrize("output", OUTPUTS, ids=lambda output: output.name)
def test_a_stage_equals_its_twin(display: DisplayPass, frame: HybridFrame, output: Any) -> None:
    display.show(frame, output.name, "plasma")
    expected, expected_range = by_twins(frame, output, "plasma")
    found = display.read_picture()
    assert len(np.unique(found.reshape(-1, 3), axis=0)) > 1
    assert_shown(found, expected)
    found_range = display.device.read(display._range, DISPLAY_RANGE.dtype, count=1)[0]
    assert found_range == expected_range
    assert not has_range(output) or found_range["high"] > found_range["low"]


def test_what_is_bound_is_kept_until_the_frame_has_other_buffers(
    display: DisplayPass, frame: HybridFrame, monkeypatch: Any
) -> None:
    display.show(frame, "picture")
    before, plan = display.read_picture(), display._plan
    display.show(frame, "picture")
    assert display._plan is plan and np.array_equal(display.read_picture(), before)
    pixels = np.full(SIZE[0] * SIZE[1], 0xFF102030, np.uint32)
    monkeypatch.setitem(frame.data.resources, "picture", display.device.upload("other", pixels))
    frame._make_frame()  # as after a frame that overflowed
    display.show(frame, "picture")
    assert (display.read_picture() == (0x30, 0x20, 0x10)).all()
    monkeypatch.undo()
    frame._make_frame()
    display.show(frame, "picture")
    np.testing.assert_array_equal(display.read_picture(), before)


@pytest.mark.parametrize("output", ["depth", "triangle_tests/shadow", "stack_max/shadow"])
def test_a_given_range_clamps(display: DisplayPass, frame: HybridFrame, output: str) -> None:
    found = next(o for o in OUTPUTS if o.name == output)
    display.show(frame, output, "temperature", (3.0, 9.0))
    expected, _ = by_twins(frame, found, "temperature", (3.0, 9.0))
    assert_shown(display.read_picture(), expected)
    values = frame.aov(output)
    if output == "depth":
        greys = display.read_picture()[..., 0]
        assert (greys[values < 3.0] == 255).all() and (greys[values > 9.0] <= 26).all()
        return
    sent = frame.aov("nodes/shadow") > 0
    palette = palette_colours("temperature")
    picture = display.read_picture()
    assert (picture[sent & (values <= 3)] == palette[0]).all()
    assert (picture[sent & (values >= 9)] == palette[255]).all()
    assert (picture[sent & (values == 6)] == palette[128]).all()
    assert (picture[~sent] == NO_RAY).all() and (~sent).any()


@pytest.mark.parametrize(
    "name", ["nodes/shadow", "stack_max/shadow", "any_hits/reflection", "nodes/all"]
)
def test_a_difference_is_centred_on_zero(
    display: DisplayPass, frame: HybridFrame, other: HybridFrame, name: str
) -> None:
    output = next(o for o in OUTPUTS if o.name == name)
    kept = display.keep(other, name)
    display.show(frame, name, baseline=kept)
    baseline = display.device.read(kept, np.uint32)
    expected, expected_range = by_twins(frame, output, DIVERGING, baseline=baseline)
    picture = display.read_picture()
    assert_shown(picture, expected)
    assert expected_range["low"] == -expected_range["high"] < 0
    ray_name = name.partition("/")[2]
    difference = frame.aov(name).astype(int) - other.aov(name)
    same = (difference == 0) & (frame.aov(f"nodes/{ray_name}") > 0)
    palette = palette_colours(DIVERGING).astype(int)
    assert (picture[same] == palette[128]).all() and same.any()
    more, less = picture[difference > 0].astype(int), picture[difference < 0].astype(int)
    assert (more[:, 0] > more[:, 2]).all() and (less[:, 2] > less[:, 0]).all()
    assert len(more) and len(less)
    # A range that the user gives is made as far to both sides.
    display.show(frame, name, value_range=(0.0, 4.0), baseline=kept)
    expected, _ = by_twins(frame, output, DIVERGING, (-4.0, 4.0), baseline)
    assert_shown(display.read_picture(), expected)
    # Against itself a frame differs nowhere.
    display.show(frame, name, baseline=display.keep(frame, name))
    sent = frame.aov(f"nodes/{ray_name}") > 0
    assert (display.read_picture()[sent] == palette[128]).all()


def test_counts_are_summed_over_bounces_and_over_all_types(
    draw: Any, room: Any, display: DisplayPass, frame: HybridFrame
) -> None:
    """As arrays, as shown, as values, and as baselines that do not follow what is shown next."""
    drawn = draw(room, *SIZE, gbuffer="rays", count=True, seed=5, reflection_bounces=3)
    names = [ray.name for ray in drawn.frame.data.rays]
    assert names == ["reflection", "reflection_2", "reflection_3", "shadow"]
    sums = {"all_reflection": names[:3], "all": names}
    for output in (o for o in drawn.frame.outputs() if o.ray_type in sums):
        own = [drawn.aov(f"{output.count}/{name}").astype(int) for name in sums[output.ray_type]]
        expected = np.max(own, axis=0) if output.count == "stack_max" else np.sum(own, axis=0)
        np.testing.assert_array_equal(drawn.aov(output.name), expected)
        if output.name in ("nodes/all", "stack_max/all_reflection"):
            display.show(drawn.frame, output.name)
            assert_shown(display.read_picture(), by_twins(drawn.frame, output)[0])
        y, x = np.unravel_index(expected.argmax(), expected.shape)
        kept = display.keep(drawn.frame, output.name)
        display.show(drawn.frame, "nodes/shadow")
        text = display.read_value(drawn.frame, output.name, int(x), int(y), kept)
        assert text == f"+0 {output.unit} ({expected[y, x]:,}, was {expected[y, x]:,})"
    spent = sum(drawn.stats.rays[name].nodes for name in names)
    assert drawn.aov("nodes/all").sum() == spent
    y, x = np.argwhere(drawn.aov("nodes/all") == 0)[0].tolist()
    assert display.read_value(drawn.frame, "nodes/all", x, y) == "no ray"
    # Without further bounces there is nothing to sum up in the family.
    assert {o.ray_type for o in frame.outputs()} >= {"all", "reflection"}
    alone = FrameOptions(*SIZE, count=True, shadows="map", reflection_bounces=2)
    assert {o.ray_type for o in frame_outputs(alone)} >= {"all_reflection"}
    assert "all" not in {o.ray_type for o in frame_outputs(alone)}


def test_what_no_ray_brought_is_black(display: DisplayPass, frame: HybridFrame) -> None:
    """Whatever an earlier frame left there."""
    device, buffer = frame.device, frame.data.resources["reflected"]
    before = device.read(buffer, np.uint32)
    device.write(buffer, np.full(before.size, 0x3C003C00, np.uint32))  # ones, as halves
    display.show(frame, "reflection")
    device.write(buffer, before)
    # Where a rough lobe loses its ray the frame has written black, which is brought, too.
    smooth = frame.aov("roughness") <= frame.options.roughness_cutoff
    smooth &= np.isfinite(frame.aov("depth"))
    assert not (frame.aov("nodes/reflection") > 0)[~smooth].any()
    assert (display.read_picture().any(axis=-1) == smooth).all()
    assert smooth.any() and not smooth.all()


def test_depths_that_are_all_one_are_white(display: DisplayPass, frame: HybridFrame) -> None:
    display.show(frame, "depth", value_range=(5.0, 5.0))
    assert (display.read_picture() == 255).all()


def test_a_frame_of_nothing(device: Any, draw: Any, kit: Any) -> None:
    frame = draw(kit.scene([]), 9, 7, gbuffer="rays", count=True).frame
    display = DisplayPass(device, 9, 7)
    for output in frame.outputs():
        display.show(frame, output.name)
        expected, expected_range = by_twins(frame, output)
        assert_shown(display.read_picture(), expected)
        found = device.read(display._range, DISPLAY_RANGE.dtype, count=1)[0]
        assert found == expected_range and found["high"] == (output.kind == "count")
    assert display.read_value(frame, "depth", 0, 0) == "nothing"
    assert (display.read_picture() == NO_RAY).all()


def test_outputs_follow_from_the_frame(frame: HybridFrame, monkeypatch: Any) -> None:
    timed = frame_outputs(replace(frame.options, count=False))
    names = [output.name for output in frame.outputs()]
    assert len(set(names)) == len(names) and names[0] == "picture"
    assert {o.name for o in timed} == {n for n in names if "/" not in n}
    lights = {"picture", *(ray.name for ray in RAY_TYPES)}
    assert set(names) - lights == set(aov_names(frame.options))
    shown = {None, "all", *(ray.name for ray in RAY_TYPES)}
    assert {o.ray_type for o in frame.outputs()} == shown
    third = replace(RAY_TYPES[0], name="glossy")
    for module in ("passes.rays", "passes.outputs"):
        monkeypatch.setattr(f"{module}.RAY_TYPES", (*RAY_TYPES, third))
    # As it would be worked out now: the list is made once for the same options.
    new = {o.name: o for o in frame_outputs.__wrapped__(frame.options)}
    assert new["glossy"].shader == third.light_shader and new["glossy"].kind == "colour"
    assert new["stack_max/glossy"].unit == "entries" and len(new) == len(names) + 6


def test_what_cannot_be_shown_is_refused(
    device: Any, display: DisplayPass, frame: HybridFrame, draw: Any, room: Any
) -> None:
    with pytest.raises(ValueError, match="the frame has no output 'nodes', there are picture, "):
        display.show(frame, "nodes")
    with pytest.raises(ValueError, match="depth is no count: only counts have differences"):
        display.keep(frame, "depth")
    kept = display.keep(frame, "nodes/shadow")
    with pytest.raises(ValueError, match="nodes/reflection was kept at another size"):
        display.show(frame, "nodes/reflection", baseline=kept)
    with pytest.raises(ValueError, match="no palette is named 'jet', there are viridis"):
        display.show(frame, "nodes/shadow", "jet")
    with pytest.raises(ValueError, match="a display of 8x8 shows no frame of 83x61"):
        DisplayPass(device, 8, 8).show(frame, "picture")
