"""Several area lights: pictures, rays and their budget."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from engine.gpu.errors import UserError
from engine.scene.light import MOST_LIGHTS
from passes.frame_options import MOST_SHADOW_RAYS, FrameOptions
from passes.pixel_probe import probe_pixel
from passes.prepare import prepare
from passes.rays import SHADOW
from treeline.view.pixel_rays import pixel_rays

BLACK = (0.0, 0.0, 0.0)
SIZE = (32, 18)


@pytest.fixture(scope="module")
def court(kit: Any) -> Any:
    """A floor, a mirror behind it and walls between three lamps: one above, one beside, and a small
    one in a far corner, which a part of the floor alone sees."""
    meshes = [
        kit.quad((-4, 0, 4), (8, 0, 0), (0, 0, -8), 0),
        kit.quad((-4, 0, -4), (8, 0, 0), (0, 3, 0), 1),
        kit.quad((-1, 0, -2), (0, 0, 3), (0, 1.5, 0), 0),
        kit.quad((1.5, 0, 2), (0, 0, -3), (0, 1.2, 0), 0),
    ]
    scene = kit.scene(
        meshes,
        [kit.grey(0.6), kit.mirror(roughness=0.3)],
        eye=(0, 3, 7),
        target=(0, 0, 0),
        light=kit.lamp((0, 4, 0), 0.6, radiance=(4, 4, 3)),
    )
    more = (
        kit.lamp((-4, 2, 1), 0.4, (1, -0.5, 0), (6, 2, 2)),
        kit.lamp((9, 6, -3), 0.3, (-1, -0.7, 0.3), (40, 40, 80)),
    )
    return prepare(replace(scene, more_lights=more))


def samples(drawn: Any, count: int) -> Any:
    """[count, height, width] grey of frames on their own."""
    found = []
    for index in range(count):
        assert drawn.frame.run(index).valid
        found.append(drawn.radiance.mean(-1))
    return np.array(found)


def tiles(pictures: Any) -> Any:
    """[count, tiles] means of 8x6 pixels."""
    return pictures.reshape(len(pictures), 3, 6, 4, 8).mean((2, 4)).reshape(len(pictures), -1)


def test_one_ray_of_three_lights_converges_to_all_three(draw: Any, court: Any) -> None:
    """With shadows and reflections, by tile and as a whole; uniform choice is noisier."""
    ray: dict[str, Any] = dict(gbuffer="rays")
    every = samples(draw(court, *SIZE, shadow_rays=3, **ray), 30)
    one = samples(draw(court, *SIZE, **ray), 50)
    alike = samples(draw(court, *SIZE, light_choice="uniform", **ray), 50)
    for found in (one, alike):
        for a, b in ((tiles(found), tiles(every)), (found.mean((1, 2)), every.mean((1, 2)))):
            error = np.hypot(*(v.std(0) / np.sqrt(len(v)) for v in (a, b)))
            assert (np.abs(a.mean(0) - b.mean(0)) <= 4 * error).all()
    assert every.var(0).sum() < one.var(0).sum() < 0.9 * alike.var(0).sum()


def test_no_lamp_is_lost(draw: Any, court: Any) -> None:
    """Each alone lights some pixels, and all together what they light added up."""
    settings: dict[str, Any] = dict(gbuffer="rays", seed=4, roughness_cutoff=-1.0)
    lights = court.scene.lights
    found = []
    for light in lights:
        scene = replace(court.scene, light=light, more_lights=())
        found.append(samples(draw(replace(court, scene=scene), *SIZE, **settings), 24))
        assert (found[-1].mean(0) > 0).sum() > 50
    found.append(samples(draw(court, *SIZE, shadow_rays=3, **settings), 24))
    *alone, together = (pictures.mean((1, 2)) for pictures in found)
    error = np.sqrt(sum(values.var() / len(values) for values in (*alone, together)))
    assert abs(together.mean() - sum(values.mean() for values in alone)) <= 4 * error
    assert error < 0.02 * together.mean()


def test_every_light_has_a_map(draw: Any, court: Any, kit: Any) -> None:
    """Maps of three lights against rays: on the floor each of them is seen by a part of it alone;
    a probe is lit by all of them, too."""
    settings: dict[str, Any] = dict(gbuffer="rays", shadow_rays=3, shadow_map_size=512)
    small = [
        kit.lamp(light.center, 0.01, light.normal, light.radiance) for light in court.scene.lights
    ]
    scene = replace(court.scene, light=small[0], more_lights=tuple(small[1:]))
    by_map, by_rays = (
        draw(replace(court, scene=scene), 64, 36, shadows=kind, **settings)
        for kind in ("map", "rays")
    )
    seen = {}
    for drawn, whole in ((by_map, 65535), (by_rays, 1)):
        data = drawn.frame.data
        found = data.device.read(data.resources["shadow_results"]).reshape(-1, 2, 3)[:, 0]
        direct = data.device.read(data.resources["direct"], np.float16).reshape(-1, 3, 4)
        seen[whole] = np.where(direct[..., :3].max(-1) > 0, found / whole, np.nan)
    could = ~np.isnan(seen[1])
    np.testing.assert_array_equal(could, ~np.isnan(seen[65535]))
    for light in range(3):
        here = could[:, light]
        lit = seen[1][here, light] == 1
        assert min(lit.sum(), (~lit).sum()) > 30
        assert ((seen[65535][here, light] >= 0.5) != lit).mean() < 0.04, light
    assert by_map.frame.options.map_lights == 3

    def probe(lights: Any) -> Any:
        lit = replace(court.scene, light=lights[0], more_lights=tuple(lights[1:]))
        drawn = draw(replace(court, scene=lit), 8, 8, reflections="screen", shadow_map_size=128)
        return drawn.frame.data.targets.read_probe()[..., :3].astype(float)

    wide = court.scene.lights
    alone = [probe([light]) for light in wide]
    assert all(lit.max() > 0.05 for lit in alone)
    np.testing.assert_allclose(probe(wide), sum(alone), rtol=0.01, atol=1e-5)


def test_budget_of_rays(draw: Any, court: Any, kit: Any) -> None:
    """Queues have room for all, the inspector finds each, and black lights send none."""
    fourth = kit.lamp((0, 3, 3), 0.3, (0, -1, -0.4), (3, 3, 3))
    scene = replace(court.scene, more_lights=(*court.scene.more_lights, fourth))
    drawn = draw(replace(court, scene=scene), *SIZE, gbuffer="rays", shadow_rays=4, count=True)
    data, pixels = drawn.frame.data, SIZE[0] * SIZE[1]
    assert data.capacities["shadow"] == 8 * pixels and drawn.stats.valid
    rays, _ = drawn.shadows
    assert len(np.unique(rays["slot"])) == len(rays) == drawn.stats.rays["shadow"].rays
    # all lights in turn: the number within its surface is the light's
    assert (rays["light_uv"] >> 28 == rays["slot"] % 4).all()
    assert drawn.aov("nodes/shadow").sum() == drawn.stats.rays["shadow"].nodes
    y, x = divmod(int(np.bincount(rays["slot"] // 8).argmax()), SIZE[0])
    probe = probe_pixel(data, x, y)
    shown = [ray for ray in probe.rays if ray.ray_type.name == "shadow"]
    assert sorted(ray.slot for ray in shown) == sorted(
        rays["slot"][rays["slot"] // 8 == y * SIZE[0] + x]
    )
    assert len(shown) >= 4 and {ray.starts_at for ray in shown} >= {"primary"}
    told = [ray.kind for ray in pixel_rays(drawn.frame, x, y) if ray.ray_type == "shadow"]
    starts = [ray.starts_at for ray in shown]
    assert sorted(told) == sorted(
        f"shadow ray from the {start} ray's hit to light {ray.slot % 4 + 1} of 4"
        for start, ray in zip(starts, shown, strict=True)
    )
    for ray in shown:
        light = scene.lights[ray.slot % 4]
        end = ray.ray["origin"] + ray.ray["direction"] - light.center
        assert abs(end @ light.normal) < 1e-3
        assert abs(end @ light.half_u) <= 1.001 * (light.half_u @ light.half_u)

    assert SHADOW.silence is not None
    dark = SHADOW.silence(drawn.frame.inputs)
    assert drawn.frame.run(0, inputs=dark).rays["shadow"].rays == 0


def test_subgroups_push_the_same_rays(draw: Any, court: Any) -> None:
    """Votes of one push are not taken for the next one's."""
    settings: dict[str, Any] = dict(gbuffer="rays", shadow_rays=3)
    one, other = (
        draw(court, *SIZE, compaction=how, **settings).shadows for how in ("workgroup", "subgroup")
    )
    for a, b in zip(one, other, strict=True):
        np.testing.assert_array_equal(a, b)


def test_more_lights_or_rays_than_there_is_room_for(draw: Any, court: Any) -> None:
    light = court.scene.light
    most = replace(court.scene, more_lights=(light,) * (MOST_LIGHTS - 1))
    assert len(most.lights) == MOST_LIGHTS
    with pytest.raises(UserError, match=f"test: {MOST_LIGHTS + 1} area lights, the limit is"):
        replace(court.scene, more_lights=(light,) * MOST_LIGHTS)
    for rays in (0, MOST_SHADOW_RAYS + 1):
        with pytest.raises(UserError, match=f"shadow rays are 1 to {MOST_SHADOW_RAYS}, not"):
            FrameOptions(1, 1, shadow_rays=rays)
    with pytest.raises(UserError, match="unknown light choice 'best'"):
        FrameOptions(1, 1, light_choice="best")
