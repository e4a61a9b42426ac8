"""Reflections: a mirror mirrors, rough lobes keep the energy they should, nothing becomes NaN."""

from typing import Any

import numpy as np
import pytest

from bvh.rays import MISS_ID
from engine.scene.material import Material

WHITE = (1.0, 1.0, 1.0)
DARK = (0.0, 0.0, 0.0)


def checker(kit: Any) -> list[Any]:
    """A wall at z = -4 of 8 x 8 cells a metre wide, emissive (material 1) and black (2)."""
    cells = [
        kit.quad((x, y, -4), (1, 0, 0), (0, 1, 0), 1 + (x + y) % 2)
        for x in range(-4, 4)
        for y in range(-4, 4)
    ]
    return cells


def camera_rays(drawn: Any) -> Any:
    """[pixels, 3] unit directions, float64."""
    data, camera = drawn.frame.data, drawn.prepared.scene.camera
    tangent = np.tan(camera.y_fov / 2)
    x = ((np.arange(data.width) + 0.5) / data.width * 2 - 1) * tangent * data.width / data.height
    y = (1 - (np.arange(data.height) + 0.5) / data.height * 2) * tangent
    rays = np.stack(np.broadcast_arrays(x[None, :], y[:, None], -1.0), -1).reshape(-1, 3)
    rays = rays @ camera.transform[:3, :3].T
    return rays / np.linalg.norm(rays, axis=1, keepdims=True)


@pytest.mark.parametrize("roughness", [0.0, 0.01])
def test_a_mirror_shows_the_checker_where_optics_says(
    kit: Any, draw: Any, roughness: float
) -> None:
    floor = kit.quad((-9, -4.5, 9), (18, 0, 0), (0, 0, -18), 0)
    scene = kit.scene(
        [floor, *checker(kit)],
        [
            kit.mirror(roughness=roughness),
            kit.grey(0.0, emissive=WHITE),
            kit.grey(0.0),
        ],
        eye=(0.3, -2.0, 4.0),
        target=(0.0, -4.5, 0.0),
        light=kit.lamp((0, 9, 0), radiance=DARK),
    )
    drawn = draw(scene, 96, 64)
    rays, hits = drawn.reflections
    pixels = rays["pixel"]
    assert len(pixels) > 2000 and (drawn.aov("object").ravel()[pixels] == 0).all()

    eye, direction = scene.camera.position, camera_rays(drawn)[pixels]
    foot = eye + direction * ((-4.5 - eye[1]) / direction[:, 1])[:, None]
    mirrored = direction * [1, -1, 1]
    np.testing.assert_allclose(rays["direction"], mirrored, atol=2e-4)
    np.testing.assert_allclose(rays["origin"], foot, atol=1e-4)
    with np.errstate(divide="ignore"):
        at = foot + mirrored * ((-4 - foot[:, 2]) / mirrored[:, 2])[:, None]
    towards = mirrored[:, 2] < 0
    cell = np.floor(at[:, :2])
    on_wall = towards & (np.abs(at[:, :2]) < 4).all(1)
    # Rounded normals (16 bits) turn a reflection by up to 1e-4 radians.
    certain = (np.abs(at[:, :2] - np.rint(at[:, :2])) > 5e-3).all(1)
    assert on_wall.sum() > 500 and certain.mean() > 0.9
    np.testing.assert_array_equal(
        (hits["object"] != MISS_ID)[certain & towards], on_wall[certain & towards]
    )
    bright = on_wall & (cell.sum(1) % 2 == 0)
    radiance = drawn.radiance.reshape(-1, 3)[pixels]
    # A white metal reflects all of it, at every angle. The black cells reflect a black sky.
    expected = np.broadcast_to(bright[:, None], radiance.shape)
    np.testing.assert_allclose(radiance[certain], expected[certain], atol=1e-3)
    assert drawn.stats.rays["reflection"].replaced == 0


def test_a_mirror_sees_the_lamp_and_what_hides_it(kit: Any, draw: Any) -> None:
    floor = kit.quad((-9, 0, 9), (18, 0, 0), (0, 0, -18), 0)
    half = kit.quad((-5, 1.5, -5), (5, 0, 0), (0, 0, 10), 1)  # hides x < 0
    lamp = kit.lamp((0, 3, 0), 0.5, radiance=(7, 5, 3))
    scene = kit.scene(
        [floor, half], [kit.mirror(), kit.grey(0.0)], eye=(0.01, 1, 4), target=(0, 0, 3), light=lamp
    )
    drawn = draw(scene, 64, 64)
    rays, _ = drawn.reflections
    origin, direction = rays["origin"].astype(float), rays["direction"].astype(float)
    at = origin + direction * ((3 - origin[:, 1]) / direction[:, 1])[:, None]
    on_lamp = (np.abs(at[:, [0, 2]]) < 0.5).all(1)
    pane = origin + direction * ((1.5 - origin[:, 1]) / direction[:, 1])[:, None]
    hidden = (pane[:, 0] < 0) & (pane[:, 0] > -5)
    certain = (np.abs(np.abs(at[:, [0, 2]]) - 0.5) > 0.01).all(1) & (np.abs(pane[:, 0]) > 0.01)
    seen = on_lamp & ~hidden
    assert (seen & certain).sum() > 20 and (on_lamp & hidden & certain).sum() > 20
    radiance = drawn.radiance.reshape(-1, 3)[rays["pixel"]]
    np.testing.assert_allclose(
        radiance[seen & certain], np.tile((7, 5, 3), ((seen & certain).sum(), 1)), rtol=2e-3
    )
    assert (radiance[certain & ~seen] < 1e-3).all()


def test_nothing_becomes_nan(kit: Any, draw: Any, room: Any) -> None:
    """Every roughness and metalness, seen head-on and at the silhouette, lit from close by."""
    roughness = [0.0, 1e-3, 0.019, 0.02, 0.021, 0.1, 0.5, 0.6, 1.0]
    balls, kinds = [], []
    for row, metal in enumerate((0.0, 0.5, 1.0)):
        for column, value in enumerate(roughness):
            center = (2.2 * column - 9, 2.2 * row - 2.2, 0)
            balls.append(kit.sphere(center, 1.0, len(kinds), rings=8, smooth=row != 1))
            color = (column % 2, 1.0, 0.0, 1.0)
            kinds.append(Material("m", color, metallic=metal, roughness=value))
    scene = kit.scene(
        balls,
        kinds,
        eye=(0, 0, 14),
        y_fov=0.9,
        sky=(0.5, 0.5, 0.5),
        light=kit.lamp((0, 1.1, 1.2), 0.02, radiance=(1e4, 1e4, 1e4)),
    )
    for item in (scene, room):
        drawn = draw(item, 160, 64, samples=2)
        assert drawn.stats.valid
        assert np.isfinite(drawn.radiance).all() and (drawn.radiance >= 0).all()
        assert drawn.radiance.max() > 0.1


def ggx_albedo(roughness: float, cosine: float) -> float:
    """What a white GGX surface reflects once, by integrating D G2 / (4 n.l n.v) numerically over
    the half vector's polar angle and azimuth (height-correlated Smith masking)."""
    a2 = roughness**4
    count = 2000
    u = (np.arange(count) + 0.5) / count
    # Sampled by the distribution of normals itself: a plain and different estimator.
    cos_h = np.sqrt((1 - u) / (1 + (a2 - 1) * u))[:, None]
    phi = (np.arange(256) + 0.5) / 256 * 2 * np.pi
    sin_h = np.sqrt(1 - cos_h**2)
    view = np.array([np.sqrt(1 - cosine**2), 0.0, cosine])
    half = np.stack(np.broadcast_arrays(sin_h * np.cos(phi), sin_h * np.sin(phi), cos_h), -1)
    v_h = half @ view
    light_z = 2 * v_h * half[..., 2] - view[2]

    def smith(c: Any) -> Any:
        return 0.5 * (np.sqrt(1 + a2 * (1 - c**2) / c**2) - 1)

    up = (light_z > 1e-6) & (v_h > 0)
    masking = 1 / (1 + smith(np.where(up, light_z, 1.0)) + smith(cosine))
    weight = masking * v_h / (cosine * half[..., 2])
    return float(np.where(up, weight, 0).mean())


def furnace(kit: Any, draw: Any, material: Material, degrees: float, samples: int) -> Any:
    """A plane in a white sky, seen `degrees` off its normal; the lamp is off."""
    angle = np.radians(degrees)
    scene = kit.scene(
        [kit.quad((-90, -90, 0), (180, 0, 0), (0, 180, 0))],
        [material],
        eye=(5 * np.sin(angle), 0, 5 * np.cos(angle)),
        y_fov=0.05,
        sky=WHITE,
        light=kit.lamp((0, 40, 0), radiance=DARK),
    )
    return draw(scene, 32, 32, samples=samples)


@pytest.mark.parametrize("degrees", [0, 45, 75])
@pytest.mark.parametrize("roughness", [0.0, 0.2, 0.4, 0.6])
def test_a_white_metal_in_a_furnace(kit: Any, draw: Any, roughness: float, degrees: float) -> None:
    """What GGX reflects once, by an integral of its own; never more than 1. What the lobe sends
    below the horizon is lost: at roughness 0.6, seen from above, an eighth."""
    metal = Material("metal", metallic=1.0, roughness=roughness)
    drawn = furnace(kit, draw, metal, degrees, 1 if roughness == 0 else 6)
    radiance = drawn.radiance[..., 0]
    assert radiance.max() <= 1.001
    mean = float(radiance.mean())
    if roughness == 0:
        assert mean == pytest.approx(1.0, abs=1e-3)
        return
    # The G-buffer holds roughness in 8 bits.
    once = ggx_albedo(round(roughness * 255) / 255, np.cos(np.radians(degrees)))
    # Six samples of 1,024 pixels of at most 1, a part of them 0.
    limit = 4 * np.sqrt(max(once * (1 - once), 0.0) / (6 * radiance.size))
    assert abs(mean - once) <= limit + 1e-3, (mean, once)
    assert drawn.stats.rays["reflection"].replaced == 0


@pytest.mark.parametrize("degrees", [0, 45, 75])
@pytest.mark.parametrize("roughness", [0.0, 0.5, 0.9])
def test_a_white_dielectric_in_a_furnace(
    kit: Any, draw: Any, roughness: float, degrees: float
) -> None:
    """Band 0.97 to 1.03: the diffuse part gets what an analytic fit says the specular part leaves,
    the specular part is sampled or the same fit."""
    plaster = Material("plaster", metallic=0.0, roughness=roughness)
    mean = float(furnace(kit, draw, plaster, degrees, 6).radiance.mean())
    assert 0.97 <= mean <= 1.03


@pytest.mark.parametrize("degrees", [0, 45, 75])
@pytest.mark.parametrize("roughness", [0.7, 0.85, 1.0])
def test_a_metal_without_a_reflection_ray(
    kit: Any, draw: Any, roughness: float, degrees: float
) -> None:
    """Past the cutoff an analytic fit replaces the ray; it stays within 0.16 of the
    integral (the fit's own error, largest at roughness 1)."""
    metal = Material("metal", metallic=1.0, roughness=roughness)
    drawn = furnace(kit, draw, metal, degrees, 1)
    assert drawn.stats.rays["reflection"].rays == 0
    once = ggx_albedo(roughness, np.cos(np.radians(degrees)))
    assert float(drawn.radiance.mean()) == pytest.approx(once, abs=0.16)


@pytest.mark.parametrize("degrees", [0, 60])
def test_direct_light_on_a_diffuse_plane(kit: Any, draw: Any, degrees: float) -> None:
    """A small lamp far above: radiance = albedo / pi * irradiance, without the sky."""
    angle = np.radians(degrees)
    lamp = kit.lamp(10 * np.array([np.sin(angle), np.cos(angle), 0]), 0.05, radiance=(900,) * 3)
    # Turned to the lit point.
    lamp = kit.lamp(lamp.center, 0.05, -lamp.center, (900,) * 3)
    scene = kit.scene(
        [kit.quad((-9, 0, 9), (18, 0, 0), (0, 0, -18))],
        [Material("matt", (0.5, 0.5, 0.5, 1.0), 0.0, 1.0)],
        eye=(0, 5, 0.001),
        up=(0, 0, -1),
        y_fov=0.01,
        light=lamp,
    )
    drawn = draw(scene, 8, 8)
    irradiance = 900 * lamp.area * np.cos(angle) / 100
    fresnel = 0.04 + 0.96 * (1 - np.cos(angle / 2)) ** 5
    diffuse = (1 - fresnel) * 0.5 / np.pi * irradiance
    # Specular at roughness 1: D = 1 / pi, little masking; at most F / (4 pi n.l n.v) of it.
    specular = fresnel / (4 * np.pi * np.cos(angle)) * irradiance
    mean = float(drawn.radiance.mean())
    assert diffuse * 0.999 < mean < (diffuse + specular) * 1.001
