"""Reflection rays at half scale: who sends them, and what the other pixels are shown. Mirrors take
turns here as all others do; what they send besides is test_narrow_lobes.py's matter."""

from typing import Any

import numpy as np
import pytest

from engine.gpu.errors import UserError
from passes.display import DisplayPass
from passes.frame_options import FrameOptions
from passes.pixel_probe import probe_pixel
from passes.prepare import prepare
from passes.rays import RAY_TYPES, REFLECTION, SHADOW
from passes.senders import slot_block
from passes.twins.display_reflection_light import display_reflection_light
from passes.twins.rays import RECORD_TWINS
from passes.twins.reflection_block import reflection_senders

WIDTH, HEIGHT = SIZE = (37, 25)  # odd: the last column and row are blocks cut by the edge
BLOCKS = {"half": 2, "quarter": 4}
SHARED = {"gbuffer": "rays", "narrow_lobes": "shared"}


@pytest.fixture(scope="module")
def half(draw: Any, room: Any) -> Any:
    return draw(room, *SIZE, **SHARED, count=True, reflection_scale="half")


@pytest.fixture(scope="module")
def full(draw: Any, room: Any) -> Any:
    return draw(room, *SIZE, gbuffer="rays")


@pytest.fixture(scope="module")
def ball(kit: Any) -> Any:
    """A white mirror on a rough floor."""
    floor = kit.quad((-6, -1.0, 6), (12, 0, 0), (0, 0, -12), 0)
    sphere = kit.sphere((0.3, 0.2, 0), 1.1, 1)
    return prepare(kit.scene([floor, sphere], [kit.grey(), kit.mirror()], sky=(0.4, 0.6, 0.9)))


def smooth_pixels(drawn: Any) -> Any:
    """[pixels] whether each may send a ray."""
    return (drawn.aov("roughness") <= 0.6).ravel() & np.isfinite(drawn.aov("depth")).ravel()


def blocks_of(pixels: Any, side: int) -> Any:
    y, x = np.divmod(np.asarray(pixels, int), WIDTH)
    return y // side * WIDTH + x // side


def senders(drawn: Any) -> Any:
    """[pixels] of each pixel the one that sends for its block, -1 where none does."""
    first = np.full(WIDTH * HEIGHT, -1)
    sent = drawn.reflections[0]["pixel"]
    first[blocks_of(sent, 2)] = sent
    return first[blocks_of(np.arange(WIDTH * HEIGHT), 2)]


@pytest.mark.parametrize("scale", BLOCKS)
def test_blocks_send_one_ray_and_pixels_take_turns(draw: Any, ball: Any, scale: str) -> None:
    side = BLOCKS[scale]
    drawn = draw(ball, *SIZE, **SHARED, reflection_scale=scale)
    smooth = smooth_pixels(drawn)
    every = blocks_of(np.arange(WIDTH * HEIGHT), side)
    expected = np.unique(every[smooth])
    times = np.zeros(WIDTH * HEIGHT, int)
    for index in range(side * side):
        drawn.frame.run(index)
        sent = drawn.reflections[0]["pixel"]
        assert smooth[sent].all()
        np.testing.assert_array_equal(np.sort(every[sent]), expected)
        times[sent] += 1
    assert (times[smooth] > 0).all() and times.sum() == side * side * len(expected)
    counts = np.bincount(every[smooth], minlength=every.max() + 1)
    whole = smooth & (counts[every] == side * side)
    assert whole.sum() > 50 and (times[whole] == 1).all()
    # In a round of turns each is first once; who sends in a frame differs from round to round.
    order = []
    for index in range(0, 8 * side * side, side * side):
        drawn.frame.run(index)
        order.append(drawn.reflections[0]["pixel"].tobytes())
    assert len(set(order)) > 2


@pytest.mark.parametrize("scale", BLOCKS)
@pytest.mark.parametrize("along", [0, 1])
def test_lines_of_pixels_have_senders_in_every_frame(scale: str, along: int) -> None:
    """Of those one pixel wide along an axis, one block in as many as a block has columns."""
    side = BLOCKS[scale]
    surface = np.zeros((32, 32, 4), np.uint32)  # mirrors
    for index in range(side * side):
        frame = {"frame_index": np.uint32(index), "seed": np.uint32(5), "roughness_cutoff": 0.6}
        found = reflection_senders(frame, surface, surface, side)
        places = (found.y.T if along else found.x) % side
        for first in range(len(places) - side + 1):
            row = np.sort(places[first : first + side], axis=0)
            assert (row == np.arange(side)[:, None]).all()


def test_rays_are_those_of_the_whole_picture(half: Any, full: Any) -> None:
    (rays, hits), (all_rays, all_hits) = half.reflections, full.reflections
    same = np.isin(all_rays["pixel"], rays["pixel"])
    np.testing.assert_array_equal(rays["pixel"], all_rays["pixel"][same])
    for name in ("origin", "direction"):
        np.testing.assert_array_equal(rays[name], all_rays[name][same])
    np.testing.assert_array_equal(hits["object"], all_hits["object"][same])
    y, x = np.divmod(rays["pixel"], WIDTH)
    assert (x == WIDTH - 1).any() and (y == HEIGHT - 1).any()
    # One ray stands for a footprint of two pixels by two.
    cones, before = (
        np.ascontiguousarray(c).view(np.float16) for c in (rays["cone"], all_rays["cone"][same])
    )
    np.testing.assert_allclose(cones[::2], 2 * before[::2], rtol=2e-3)
    assert half.stats.rays["reflection"].rays == len(rays)


def test_shadow_rays_of_hits_follow_and_others_stay(half: Any, full: Any) -> None:
    slots, every = half.shadows[0]["slot"], full.shadows[0]["slot"]
    kept = (every % 2 == 0) | np.isin(every // 2, half.reflections[0]["pixel"])
    # A wider cone reads another mip: a hit that is black in one may send none.
    assert len(np.setxor1d(slots, every[kept])) <= 2
    np.testing.assert_array_equal(slots[slots % 2 == 0], every[every % 2 == 0])


def test_plain_pixels_are_shown_the_ray_of_their_block(draw: Any, ball: Any) -> None:
    """A white mirror brings nothing but its ray."""
    half, full = (
        draw(ball, *SIZE, **SHARED, **options)
        for options in ({"reflection_scale": "half", "upsample": "plain"}, {})
    )
    found, alone = (d.radiance.reshape(-1, 3) for d in (half, full))
    shiny = half.aov("roughness").ravel() == 0
    shiny &= half.aov("object").ravel() == 1
    first = senders(half)
    assert shiny.sum() > 100 and shiny[first[shiny]].all()
    halves = dict(rtol=2**-10, atol=1e-6)  # lights lie in halves between the passes
    np.testing.assert_allclose(found[shiny], alone[first[shiny]], **halves)
    np.testing.assert_allclose(found[~shiny], alone[~shiny], **halves)


def test_twins_of_the_frame_agree(half: Any) -> None:
    twins = half.frame.run_cpu()
    records = twins[REFLECTION.queue].records[: twins[REFLECTION.queue].count]
    np.testing.assert_array_equal(np.sort(records["pixel"]), half.reflections[0]["pixel"])
    other = twins["accumulated"][:, :3].reshape(HEIGHT, WIDTH, 3)
    near = np.isclose(other, half.radiance, rtol=1e-3, atol=1e-3).all(-1)
    assert near.mean() > 0.97


def test_light_of_the_rays_is_shown_as_composed(device: Any, half: Any) -> None:
    display = DisplayPass(device, *SIZE)
    encoder = device.wgpu.create_command_encoder()
    display.encode(encoder, half.frame, "reflection")
    device.wgpu.queue.submit([encoder.finish()])
    display.submitted()
    twins = half.frame.run_cpu()
    shown = np.zeros((HEIGHT, WIDTH, 4), np.uint8)
    names = ("frame", "visibility", "surface", "reflection_light")
    display_reflection_light(*(twins[name] for name in names), shown)
    picture = display.read_picture().astype(int)
    assert (np.abs(picture - shown[..., :3]).max(-1) <= 2).mean() > 0.97
    assert picture[1::2, 1::2].any()


def test_counts_stand_where_rays_were_sent(half: Any) -> None:
    nodes = half.aov("nodes/reflection").ravel()
    np.testing.assert_array_equal(np.flatnonzero(nodes), half.reflections[0]["pixel"])
    assert nodes.sum() == half.stats.rays["reflection"].nodes


def test_a_pixel_has_its_own_rays_and_those_of_its_block(half: Any) -> None:
    data = half.frame.data
    first = senders(half)
    for pixel in np.flatnonzero((first >= 0) & (first != np.arange(len(first))))[::7]:
        y, x = divmod(int(pixel), WIDTH)
        expected = set()
        for ray in (REFLECTION, SHADOW):
            slots = RECORD_TWINS[ray.name].ray_slot(data.read_records(ray))
            for kind in range(ray.slots_per_pixel):
                own = pixel if (ray is SHADOW and kind == 0) else first[pixel]
                slot = int(own) * ray.slots_per_pixel + kind
                expected |= {(ray.name, slot)} if slot in slots else set()
        found = probe_pixel(data, x, y).rays
        assert {(ray.ray_type.name, ray.slot) for ray in found} == expected
        assert all(ray.shared == (ray.pixel != pixel) for ray in found)
    assert expected  # of the last one


def test_steps_of_a_frame_make_the_same_picture(half: Any, draw: Any, room: Any) -> None:
    other = draw(room, *SIZE, **SHARED, reflection_scale="half")
    for _ in other.frame.steps(budget_ms=1.0):
        pass
    assert other.frame.result_hash() == half.frame.result_hash()
    np.testing.assert_array_equal(other.frame.image(), half.frame.image())


def test_mixed_rays_are_shown_alike(draw: Any, room: Any) -> None:
    """Pixels without an own ray are counted alike, too."""
    own, other = (
        draw(room, *SIZE, gbuffer="rays", reflection_scale="quarter", **options)
        for options in ({}, {"passes": "mixed"})
    )
    np.testing.assert_array_equal(own.radiance, other.radiance)
    counts = [(r.widened, r.unlike) for r in (d.stats.rays["reflection"] for d in (own, other))]
    assert counts[0] == counts[1] and min(counts[0]) > 0


def test_shared_slots_and_what_is_refused() -> None:
    options = FrameOptions(8, 8, reflection_scale="half")
    sides = {
        ray.name: [slot_block(options, RAY_TYPES, ray, k) for k in range(ray.slots_per_pixel)]
        for ray in RAY_TYPES
    }
    assert sides == {"reflection": [2], "shadow": [1, 2], "occlusion": [1]}
    with pytest.raises(
        UserError, match="unknown reflection scale 'third', there are full, half, quarter"
    ):
        FrameOptions(8, 8, reflection_scale="third")
