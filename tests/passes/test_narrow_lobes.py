"""Reflections sharper than shared rays can show: who sends a ray of its own at half and quarter
scale, that a lamp in a curved mirror stays where it is, and that the mean over frames is the whole
picture's, since what is borrowed from neighbours is worth the less the sharper it is seen."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from engine.scene.material import Material
from passes.frame_options import FrameOptions
from passes.pixel_probe import probe_pixel
from passes.prepare import prepare
from passes.rays import REFLECTION
from tests.passes.relative_mse import relative_mse

WIDTH, HEIGHT = SIZE = (41, 31)  # odd: blocks are cut at two edges
BALL, FLOOR, PAINT = range(3)


def make_scene(kit: Any, lamp_radiance: tuple[float, float, float]) -> Any:
    """A mirror ball that shows a small shining panel in one or two pixels; a glossy floor, on which
    another shines; rough paint behind. All light is emission, so that mirrors have no noise."""
    ball = kit.sphere((0.9, 0.2, 0), 1.1, 0, rings=32)
    floor = kit.quad((-6, -0.95, 6), (12, 0, 0), (0, 0, -12), 1)
    wall = kit.quad((-6, -1, -3), (12, 0, 0), (0, 6, 0), 2)
    panel = kit.quad((-2.2, -0.95, -0.2), (1.2, 0, 0), (0, 0.8, 0), 3)
    lamp = kit.quad((1.5, 3.0, 4.0), (0.6, 0, 0), (0, 0.4, -0.4), 4)
    materials = [
        kit.mirror(),
        Material("floor", (0.8, 0.8, 0.8, 1.0), 1.0, 0.2),
        kit.grey(),
        Material("shining", (0, 0, 0, 1), roughness=1.0, emissive=(2.0, 1.0, 0.5)),
        Material("lamp", (0, 0, 0, 1), roughness=1.0, emissive=lamp_radiance),
    ]
    dark = kit.lamp((0, 40, 0), radiance=(0, 0, 0))
    meshes = [ball, floor, wall, panel, lamp]
    return prepare(kit.scene(meshes, materials, light=dark, sky=(0.2, 0.25, 0.3)))


@pytest.fixture(scope="module")
def lamp_in_ball(kit: Any) -> Any:
    return make_scene(kit, (300.0, 280.0, 250.0))


@pytest.fixture(scope="module")
def whole(draw: Any, lamp_in_ball: Any) -> Any:
    return draw(lamp_in_ball, *SIZE, gbuffer="rays")


def of_ball(drawn: Any) -> Any:
    """[height, width]"""
    return drawn.aov("object").reshape(HEIGHT, WIDTH) == BALL


@pytest.mark.parametrize("scale", ["half", "quarter"])
@pytest.mark.parametrize("compaction", ["workgroup", "subgroup"])
def test_narrow_lobes_send_their_own_rays(
    draw: Any, lamp_in_ball: Any, whole: Any, scale: str, compaction: str
) -> None:
    """Those of the whole picture, cone and all, in every frame; blocks of the rest send one."""
    side = {"half": 2, "quarter": 4}[scale]
    drawn = draw(lamp_in_ball, *SIZE, gbuffer="rays", reflection_scale=scale, compaction=compaction)
    ball = np.flatnonzero(of_ball(whole))
    smooth = np.flatnonzero(whole.aov("roughness").ravel() <= 0.6)
    y, x = np.divmod(smooth, WIDTH)
    block = y // side * WIDTH + x // side
    expected = len(ball) + len(np.unique(block[~np.isin(smooth, ball)]))
    every, _ = whole.reflections
    for index in range(3):
        stats = drawn.frame.run(index)
        rays, _ = drawn.reflections
        lost = stats.rays["reflection"].lost
        assert len(rays) == stats.rays["reflection"].rays == expected - lost
        assert len(np.unique(rays["pixel"])) == len(rays)
        own, before = (r[np.isin(r["pixel"], ball)] for r in (rays, every))
        assert len(ball) > 150
        np.testing.assert_array_equal(own, before)  # a mirror's rays do not change
    assert expected < 0.7 * len(smooth)


def test_few_pixels_are_narrow_at_a_large_size(draw: Any, kit: Any) -> None:
    """By a pixel's size: the same gloss is a mirror on a small picture and wide on a large one."""
    coat = Material("coat", (1, 1, 1, 1), metallic=1.0, roughness=0.05)
    scene = prepare(kit.scene([kit.quad((-9, -9, 0), (18, 0, 0), (0, 18, 0), 0)], [coat]))
    counts = []
    for size in (16, 128):
        drawn = draw(scene, size, size, gbuffer="rays", reflection_scale="half")
        ray = drawn.stats.rays["reflection"]
        counts.append((ray.rays + ray.lost) / size**2)
    assert counts == [1.0, 0.25]


def test_a_gloss_that_is_wide_on_a_plane_is_narrow_where_the_surface_bends(
    draw: Any, kit: Any
) -> None:
    """A ball some fifty pixels wide: mirrored rays turn by 0.08 from pixel to pixel, and by 0.02 on
    the plane; the lobe's radius is 0.013."""
    coat = Material("coat", (1, 1, 1, 1), metallic=1.0, roughness=0.08)
    ball, plane = (
        kit.sphere((0, 0, 0), 1.0, 0, rings=64),
        kit.quad((-9, -9, 0), (18, 0, 0), (0, 18, 0)),
    )
    parts = []
    for mesh in (ball, plane):
        scene = prepare(kit.scene([mesh], [coat], eye=(0, 0, 3.2)))
        drawn = draw(scene, 64, 64, gbuffer="rays", reflection_scale="half")
        shown = int((drawn.aov("object") == 0).sum())
        ray = drawn.stats.rays["reflection"]
        parts.append((ray.rays + ray.lost) / shown)
    assert parts[0] > 0.95 and parts[1] == 0.25, parts


def test_the_twin_knows_where_a_gloss_is_narrow(draw: Any, kit: Any) -> None:
    """In the middle of a ball it is not, towards its limb it is."""
    coat = Material("coat", (1, 1, 1, 1), metallic=1.0, roughness=0.098)
    scene = prepare(kit.scene([kit.sphere((0, 0, 0), 1.0, 0, rings=48)], [coat], eye=(0, 0, 3.2)))
    drawn = draw(scene, 160, 160, gbuffer="rays", reflection_scale="half")
    queue = drawn.frame.run_cpu(until="rays/reflection")["reflection_queue"]
    expected = np.sort(queue.records["pixel"][: queue.count])
    np.testing.assert_array_equal(np.sort(drawn.reflections[0]["pixel"]), expected)
    shown = int((drawn.aov("object") == 0).sum())
    assert 0.35 < len(expected) / shown < 0.9


@pytest.mark.parametrize("filters", [{}, {"history": 16, "denoiser": 3}])
def test_a_lamp_in_a_curved_mirror_stays_where_it_is(
    draw: Any, lamp_in_ball: Any, whole: Any, filters: dict[str, int]
) -> None:
    """Measured: 0 and 2e-8; with shared rays 0.11 and 0.82."""
    ball = of_ball(whole)
    assert whole.radiance[ball].max() > 100 > 100 * np.median(whole.radiance[ball])
    found = {}
    for narrow in ("own", "shared"):
        drawn = draw(
            lamp_in_ball,
            *SIZE,
            gbuffer="rays",
            reflection_scale="half",
            narrow_lobes=narrow,
            **filters,
        )
        for index in range(1, 6):
            drawn.frame.run(index)
        found[narrow] = relative_mse(drawn.radiance[ball], whole.radiance[ball])
    assert found["own"] < 1e-6 and found["shared"] > 0.05, found


def mean_of_frames(drawn: Any, frames: int) -> Any:
    """The picture after so many samples, remembered by the history."""
    assert drawn.frame.render(frames).valid
    return drawn.radiance


def borrowed_part(drawn: Any, whole: Any, frames: int) -> float:
    """Of the ball's light, what lies elsewhere than in the whole picture."""
    ball = of_ball(whole)
    apart = np.abs(mean_of_frames(drawn, frames) - whole.radiance)[ball]
    return float(apart.sum() / whole.radiance[ball].sum())


SHARED = {"gbuffer": "rays", "narrow_lobes": "shared", "history": 4}


def test_the_mean_over_frames_converges_to_the_whole_picture(
    draw: Any, lamp_in_ball: Any, whole: Any
) -> None:
    """Of mirrors that share rays, without noise, though one pixel is a thousand times as bright as
    those that borrow from it. Measured: 2.7%, 1.2%, 0.4%; without turns 246%."""
    drawn = draw(lamp_in_ball, *SIZE, **SHARED, reflection_scale="half")
    parts = [borrowed_part(drawn, whole, frames) for frames in (4, 16, 64)]
    assert parts[0] > 2 * parts[1] > 4 * parts[2] and parts[2] < 0.005, parts


def test_without_turns_the_mean_stays_wrong(
    break_shader: Callable[[str, str, str], None], draw: Any, lamp_in_ball: Any, whole: Any
) -> None:
    """The test above tells it."""
    file = "passes/shaders/reflection_block.wgsl"
    break_shader(file, "place_in_block((first + turn) % turns)", "place_in_block(turn)")
    drawn = draw(lamp_in_ball, *SIZE, **SHARED, reflection_scale="half")
    assert borrowed_part(drawn, whole, 64) > 0.3


def test_glossy_surfaces_converge_with_little_bias(draw: Any, kit: Any) -> None:
    """A floor on which something shining stands: where they touch, reflections are sharp, and
    farther away wide. Of 128 frames each pixel sent in 32. Measured: 0.6% of the light, 4.3% of a
    pixel's (noise: 2.6%); with the mean of all frames 7.1%."""
    scene = make_scene(kit, (0.0, 0.0, 0.0))
    full, half = (
        draw(scene, *SIZE, gbuffer="rays", samples=128, history=4, **options)
        for options in ({}, {"reflection_scale": "half"})
    )
    floor = full.aov("object").reshape(HEIGHT, WIDTH) == FLOOR
    apart, truth = (half.radiance - full.radiance)[floor], full.radiance[floor]
    assert abs(apart.mean()) < 0.01 * truth.mean()
    assert np.abs(apart).mean() < 0.05 * truth.mean()


def test_the_ray_inspector_knows_whose_ray_a_pixel_has(draw: Any, lamp_in_ball: Any) -> None:
    drawn = draw(lamp_in_ball, *SIZE, gbuffer="rays", reflection_scale="half")
    data, ball = drawn.frame.data, of_ball(drawn)
    sent = set(drawn.reflections[0]["pixel"].tolist())
    floor = drawn.aov("object").reshape(HEIGHT, WIDTH) == FLOOR
    seen = {False: 0, True: 0}
    mixed = 0
    for pixel in np.flatnonzero((ball | floor).ravel())[::9]:
        y, x = divmod(int(pixel), WIDTH)
        rays = [r for r in probe_pixel(data, x, y).rays if r.ray_type.name == REFLECTION.name]
        for ray in rays:
            assert ray.pixel in sent and ray.shared == (ray.pixel != pixel)
            assert not ball.ravel()[ray.pixel] or ray.pixel == pixel
            assert (ray.pixel // WIDTH // 2, ray.pixel % WIDTH // 2) == (y // 2, x // 2)
            seen[ray.shared] += 1
        if ball.ravel()[pixel]:
            assert len(rays) == 1
        around = ball[y // 2 * 2 : y // 2 * 2 + 2, x // 2 * 2 : x // 2 * 2 + 2]
        mixed += not around.all() and around.any()
    assert min(seen.values()) > 5 and mixed > 2


def test_where_nothing_is_shared_the_option_means_nothing() -> None:
    assert not FrameOptions(8, 8).sends_narrow
    assert FrameOptions(8, 8, reflection_scale="half").sends_narrow
    assert not FrameOptions(8, 8, reflection_scale="half", narrow_lobes="shared").sends_narrow
