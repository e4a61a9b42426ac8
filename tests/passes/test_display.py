"""The display pass: each stage equals its twin, heat maps span their range, ranges and values come
back without a wait, and a ray type's outputs follow from the list of ray types."""

import gc
import importlib
import inspect
import time
import weakref
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from passes.aov import aov_names
from passes.display import DisplayPass, has_range
from passes.display_records import BINS, DISPLAY_RANGE, DISPLAY_UNIFORMS
from passes.frame_options import FrameOptions
from passes.hybrid import HybridFrame
from passes.outputs import PASS_OUTPUTS, counted_rays, frame_outputs
from passes.palettes import DIVERGING, NO_RAY, palette_colours
from passes.rays import RAY_TYPES, with_every_ray
from passes.rays.ray_sum import RaySum
from passes.slot_counts import SLOT_COUNTS
from passes.twins.display_range_counts import bin_of
from passes.twins.display_range_resolve import bin_end
from passes.twins.read_back import read_resources
from passes.twins.sum_counts import sum_counts

SIZE = (83, 61)  # no multiple of a tile's eight; two groups of the range stages
PACKED_APART = 0.01  # of the bytes that went through pow may be one step apart


@pytest.fixture(scope="module")
def frame(draw: Any, room: Any, kit: Any) -> HybridFrame:
    settings = dict(gbuffer="rays", count=True, seed=5, **kit.every_ray)
    found: HybridFrame = draw(room, *SIZE, **settings).frame
    return found


@pytest.fixture(scope="module")
def other(draw: Any, room: Any) -> HybridFrame:
    """Other rays: other samples of the light and of rough surfaces."""
    found: HybridFrame = draw(room, *SIZE, gbuffer="rays", count=True, seed=6).frame
    return found


@pytest.fixture(scope="module")
def display(device: Any) -> DisplayPass:
    return DisplayPass(device, *SIZE)


def by_twins(
    frame: HybridFrame,
    output: Any,
    palette: str = "viridis",
    value_range: tuple[float, float] | None = None,
    baseline: Any = None,
) -> tuple[Any, Any]:
    """What the twins make of the frame's resources: the picture and the range record."""
    arrays = read_resources(frame.data, frame.inputs)
    uniforms = np.zeros((), DISPLAY_UNIFORMS.dtype)
    if output.count:
        ray = counted_rays(frame.data.rays, output)
        uniforms["field"] = SLOT_COUNTS.index(output.count)
        uniforms["slots_per_pixel"] = ray.slots_per_pixel
        if isinstance(ray, RaySum):
            planes = np.full(len(SLOT_COUNTS) * frame.data.pixels, 0xDEAD, np.uint32)
            for number, own in enumerate(ray.rays):
                settings = dict(first=number == 0, slots_per_pixel=own.slots_per_pixel)
                sum_counts(arrays["frame"], arrays[own.slot_counts], planes, **settings)
        else:
            planes = arrays[ray.slot_counts]
        arrays["slot_counts"] = planes
        arrays["baseline"] = planes if baseline is None else baseline
    else:
        names = [o.name for o in PASS_OUTPUTS if o.shader == PASS_OUTPUTS[1].shader]
        uniforms["field"] = names.index(output.name) if output.name in names else 0
    uniforms["difference"] = baseline is not None
    uniforms["automatic"] = value_range is None
    uniforms["low"], uniforms["high"] = value_range or (0, 1)
    opaque = np.full((256, 1), 255, np.uint8)
    arrays |= {
        "display": uniforms,
        "display_range": np.zeros((), DISPLAY_RANGE.dtype),
        "palette": np.concatenate([palette_colours(palette), opaque], 1).view(np.uint32).ravel(),
        "shown": np.zeros((frame.data.height, frame.data.width, 4), np.uint8),
    }
    depth = output.name == "depth"
    if has_range(output):
        run(f"display_range_{'depth' if depth else 'counts'}", arrays)
        run("display_range_resolve", arrays, depth=depth)
    run(output.shader.rpartition("/")[2].removesuffix(".wgsl"), arrays)
    assert (arrays["shown"][..., 3] == 255).all()
    return arrays["shown"][..., :3], arrays["display_range"]


def run(stage: str, arrays: dict[str, Any], **settings: Any) -> None:
    twin = getattr(importlib.import_module(f"passes.twins.{stage}"), stage)
    parameters = inspect.signature(twin).parameters.values()
    twin(*(arrays[p.name] for p in parameters if p.kind is not p.KEYWORD_ONLY), **settings)


OUTPUTS = frame_outputs(with_every_ray(FrameOptions(*SIZE, count=True)))


@pytest.mark.parametrize("output", OUTPUTS, ids=lambda output: output.name)
def test_a_stage_equals_its_twin(display: DisplayPass, frame: HybridFrame, output: Any) -> None:
    display.show(frame, output.name, "plasma")
    expected, expected_range = by_twins(frame, output, "plasma")
    found = display.read_picture()
    assert len(np.unique(found.reshape(-1, 3), axis=0)) > 1
    apart = np.abs(found.astype(int) - expected)
    if output.name in ("base_color", *(ray.name for ray in RAY_TYPES)):
        assert apart.max() <= 1 and (apart > 0).mean() < PACKED_APART
    else:
        assert not apart.any()
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
    np.testing.assert_array_equal(display.read_picture(), expected)
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
    np.testing.assert_array_equal(picture, expected)
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
    np.testing.assert_array_equal(display.read_picture(), expected)
    # Against itself a frame differs nowhere.
    display.show(frame, name, baseline=display.keep(frame, name))
    sent = frame.aov(f"nodes/{ray_name}") > 0
    assert (display.read_picture()[sent] == palette[128]).all()


def test_bins_hold_what_they_say() -> None:
    values = np.unique(np.concatenate([np.arange(5000), (1 << np.arange(5, 32)) - 1, [2**32 - 1]]))
    bins = bin_of(values)
    assert (np.diff(bins) >= 0).all() and bins[-1] == BINS - 1
    ends = np.array([bin_end(int(b)) for b in bins])
    assert (ends >= values).all() and (ends < values * (1 + 1 / 32) + 1).all()
    assert (ends[values < 64] == values[values < 64]).all()
    assert all(bin_of(bin_end(b)) == b and bin_of(bin_end(b) + 1) == b + 1 for b in range(BINS - 1))


def test_the_automatic_range_ignores_single_pixels(
    device: Any, display: DisplayPass, frame: HybridFrame
) -> None:
    """Two pixels of 5,063 stand out: one of 1,000 may. But where nearly all are 0, the range is
    the rest's."""
    ray = RAY_TYPES[1]
    plane = np.full(SIZE[0] * SIZE[1] * ray.slots_per_pixel, 10, np.uint32)
    plane[[5, 700]] = 100_000
    buffer = frame.data.resources[ray.slot_counts]
    before = device.read(buffer, np.uint32)
    device.write(buffer, plane)
    display.show(frame, "nodes/shadow")
    high = device.read(display._range, DISPLAY_RANGE.dtype, count=1)[0]["high"]
    assert high == 20  # 10 in each of a pixel's two slots
    rare = before.copy()
    rare[3 * len(plane) : 4 * len(plane)] = np.arange(len(plane)) == 700
    device.write(buffer, 7 * rare)
    display.show(frame, "any_hits/shadow")
    high = device.read(display._range, DISPLAY_RANGE.dtype, count=1)[0]["high"]
    device.write(buffer, before)
    assert high == 7


def wait_for(found: Callable[[], Any]) -> Any:
    for _ in range(500):
        if (answer := found()) is not None:
            return answer
        time.sleep(0.01)
    raise AssertionError("nothing arrived within 5 s")


def test_ranges_and_values_arrive_without_a_wait(
    device: Any, frame: HybridFrame, other: HybridFrame
) -> None:
    display = DisplayPass(device, *SIZE)
    waits = device.forced_waits
    assert display.auto_range("nodes/shadow") is None and display.value() is None
    assert display.auto_range("roughness") == (0.0, 1.0)
    display.show(frame, "nodes/shadow", cursor=(20, 30))
    low, high = wait_for(lambda: display.auto_range("nodes/shadow"))
    assert device.forced_waits == waits
    counts = frame.aov("nodes/shadow")
    sent = counts[counts > 0]
    assert low == 0 and np.percentile(sent, 99.8) <= high <= counts.max()
    assert display.maximum("nodes/shadow") == counts.max()
    value = wait_for(display.value)
    assert (value.pixel, value.output) == ((20, 30), "nodes/shadow")
    assert value.text == f"{counts[30, 20]} nodes" and counts[30, 20] > 0
    kept = display.keep(other, "nodes/shadow")
    display.show(frame, "nodes/shadow", baseline=kept, cursor=(20, 30))
    low, high = wait_for(lambda: display.auto_range("nodes/shadow", difference=True))
    known = display.auto_range("nodes/shadow")
    assert low == -high < 0 and known is not None and known[0] == 0
    was = other.aov("nodes/shadow")[30, 20]
    change = int(counts[30, 20]) - int(was)
    assert display.value().text == f"{change:+} nodes ({counts[30, 20]}, was {was})"


def test_values_are_told_with_their_unit(display: DisplayPass, frame: HybridFrame) -> None:
    scene = frame.scene.prepared.scene
    objects = frame.aov("object")
    depth, normal = frame.aov("depth"), frame.aov("normal")
    y, x = np.argwhere(objects == 2)[3].tolist()

    def read(name: str) -> str:
        display.show(frame, name)
        return display.read_value(frame, name, x, y)

    assert read("object") == scene.instances[2].name
    assert read("material") == scene.materials[frame.aov("material")[y, x]].name
    assert read("depth") == f"{depth[y, x]:.4g} m"
    assert read("normal") == " ".join(f"{c:.2f}" for c in normal[y, x])
    assert read("primitive") == f"triangle {frame.aov('primitive')[y, x]}"
    assert read("roughness") == f"{frame.aov('roughness')[y, x]:.2f}"
    assert read("picture") == "rgb " + " ".join(map(str, frame.image()[y, x]))
    slots = frame.data.read_slot_counts(RAY_TYPES[1], "stack_max").reshape(-1, 2)
    y, x = divmod(int(slots.min(axis=1).argmax()), SIZE[0])
    stack = frame.aov("stack_max/shadow")[y, x]
    assert read("stack_max/shadow") == f"{stack} entries" and slots[y * SIZE[0] + x].min() > 0
    y, x = np.argwhere(frame.aov("nodes/reflection") == 0)[7].tolist()
    assert read("any_hits/reflection") == "no reflection ray"
    calls = frame.aov("any_hits/reflection")
    y, x = np.argwhere((frame.aov("nodes/reflection") > 0) & (calls == 0))[7].tolist()
    assert read("any_hits/reflection") == "0 calls"
    with pytest.raises(ValueError, match="pixel 83,0 lies outside 83x61"):
        display.read_value(frame, "depth", 83, 0)


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
            np.testing.assert_array_equal(display.read_picture(), by_twins(drawn.frame, output)[0])
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
        np.testing.assert_array_equal(display.read_picture(), expected)
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


def test_an_old_frame_is_let_go(device: Any, room: Any) -> None:
    """A display that outlives frames must not keep their buffers."""
    display = DisplayPass(device, 16, 8)
    gone = []
    for _ in range(3):
        frame = HybridFrame(device, room, FrameOptions(16, 8, gbuffer="rays"))
        frame.run()
        display.show(frame, "picture")
        display.show(frame, "depth", cursor=(3, 3))
        wait_for(display.value)
        gone.append(weakref.ref(frame.data.resources["picture"]))
    del frame
    gc.collect()
    assert [ref() is None for ref in gone] == [True, True, False]
