"""Reflection rays at half scale: who sends them, and what the other pixels are shown."""

from typing import Any

import numpy as np
import pytest

from engine.gpu.errors import UserError
from passes.display import DisplayPass
from passes.frame_options import FrameOptions
from passes.pixel_probe import probe_pixel
from passes.rays import RAY_TYPES, REFLECTION, SHADOW
from passes.senders import slot_block
from passes.twins.display_reflection_light import display_reflection_light
from passes.twins.rays import RECORD_TWINS

WIDTH, HEIGHT = SIZE = (37, 25)  # odd: the last column and row are blocks cut by the edge


@pytest.fixture(scope="module")
def half(draw: Any, room: Any) -> Any:
    return draw(room, *SIZE, gbuffer="rays", count=True, reflection_scale="half")


@pytest.fixture(scope="module")
def full(draw: Any, room: Any) -> Any:
    return draw(room, *SIZE, gbuffer="rays")


def senders() -> Any:
    """[pixels] of each pixel the first of its block."""
    y, x = np.divmod(np.arange(WIDTH * HEIGHT), WIDTH)
    return (y - y % 2) * WIDTH + x - x % 2


def test_first_pixels_of_blocks_send_the_rays_they_sent(half: Any, full: Any) -> None:
    (rays, hits), (all_rays, all_hits) = half.reflections, full.reflections
    first = np.isin(all_rays["pixel"], np.unique(senders()))
    np.testing.assert_array_equal(rays["pixel"], all_rays["pixel"][first])
    for name in ("origin", "direction"):
        np.testing.assert_array_equal(rays[name], all_rays[name][first])
    np.testing.assert_array_equal(hits["object"], all_hits["object"][first])
    y, x = np.divmod(rays["pixel"], WIDTH)
    assert (x == WIDTH - 1).any() and (y == HEIGHT - 1).any()
    # One ray stands for a footprint of two pixels by two.
    cones, before = (
        np.ascontiguousarray(c).view(np.float16) for c in (rays["cone"], all_rays["cone"][first])
    )
    np.testing.assert_allclose(cones[::2], 2 * before[::2], rtol=2e-3)
    assert half.stats.rays["reflection"].rays == len(rays)


def test_shadow_rays_of_hits_follow_and_others_stay(half: Any, full: Any) -> None:
    slots, every = half.shadows[0]["slot"], full.shadows[0]["slot"]
    kept = (every % 2 == 0) | np.isin(every // 2, np.unique(senders()))
    # A wider cone reads another mip: a hit that is black in one may send none.
    assert len(np.setxor1d(slots, every[kept])) <= 2
    np.testing.assert_array_equal(slots[slots % 2 == 0], every[every % 2 == 0])


def test_other_pixels_are_shown_the_ray_of_their_block(draw: Any, kit: Any) -> None:
    """A white mirror brings nothing but its ray, so that its pixels are their block's first one."""
    floor = kit.quad((-6, -1.0, 6), (12, 0, 0), (0, 0, -12), 0)
    ball = kit.sphere((0.3, 0.2, 0), 1.1, 1)
    scene = kit.scene([floor, ball], [kit.grey(), kit.mirror()], sky=(0.4, 0.6, 0.9))
    half, full, none = (
        draw(scene, *SIZE, gbuffer="rays", **options)
        for options in ({"reflection_scale": "half"}, {}, {"roughness_cutoff": -1.0})
    )
    found, alone, untraced = (d.radiance.reshape(-1, 3) for d in (half, full, none))
    shiny = half.aov("roughness").ravel() == 0
    shiny &= half.aov("object").ravel() == 1
    first = senders()
    shared = shiny & shiny[first]
    assert shared.sum() > 100 and (shiny & ~shared).sum() > 5
    halves = dict(rtol=2**-10, atol=1e-6)  # lights lie in halves between the passes
    np.testing.assert_allclose(found[shared], alone[first[shared]], **halves)
    # Where the block's first pixel sends none, the environment stands for it.
    np.testing.assert_allclose(found[shiny & ~shared], untraced[shiny & ~shared], **halves)
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
    first = senders()
    for pixel in np.flatnonzero(first != np.arange(len(first)))[::7]:
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
    other = draw(room, *SIZE, gbuffer="rays", reflection_scale="half")
    for _ in other.frame.steps(budget_ms=1.0):
        pass
    assert other.frame.result_hash() == half.frame.result_hash()
    np.testing.assert_array_equal(other.frame.image(), half.frame.image())


def test_shared_slots_and_what_is_refused() -> None:
    options = FrameOptions(8, 8, reflection_scale="half")
    sides = {
        ray.name: [slot_block(options, RAY_TYPES, ray, k) for k in range(ray.slots_per_pixel)]
        for ray in RAY_TYPES
    }
    assert sides == {"reflection": [2], "shadow": [1, 2], "occlusion": [1]}
    with pytest.raises(UserError, match="unknown reflection scale 'third', there are full, half"):
        FrameOptions(8, 8, reflection_scale="third")
