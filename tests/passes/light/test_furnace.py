"""White furnace: what the sampled reflection lobe reflects of uniform white light, over roughness
and angle, against a numerical integral of the BRDF; and so the table of that integral, which stands
for the lobe beyond the roughness cutoff and tells the diffuse part what is left."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from assets import generate_lobe_table as generator
from engine.scene.material import Material
from engine.scene.mesh import make_mesh
from passes.lobe_table import OCTAVES, STEPS, lobe_cells
from passes.prepare import prepare
from passes.twins.brdf import MIRROR_ROUGHNESS, reflection_weight
from passes.twins.sampling import sample_visible_normal
from passes.twins.specular_albedo import specular_albedo
from tests.passes.light.lobe_integral import albedo_parts

ROUGHNESS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0)
COSINES = (0.05, 0.15, 0.4, 0.7, 1.0)
SAMPLES = 20_000
TABLE_ERROR = 0.005  # at most, of scale and bias
SIZE = 48, 36
LEVELS = tuple(round(255 * r) / 255 for r in (0.1, 0.25, 0.4, 0.6, 0.8, 1.0))  # as 8 bits hold


def view_at(cosine: float) -> Any:
    return np.array([np.sqrt(1 - cosine**2), 0.0, cosine])


def sampled(roughness: float, cosine: float, f0: float, rng: np.random.Generator) -> Any:
    """[SAMPLES] weights of the frame's estimator; below the surface it sends no ray."""
    view = np.tile(view_at(cosine).astype(np.float32), (SAMPLES, 1))
    r1, r2 = rng.random((2, SAMPLES)).astype(np.float32)
    with np.errstate(divide="ignore", invalid="ignore"):  # straight down: no tangent
        half = sample_visible_normal(view, np.full(SAMPLES, roughness**2, np.float32), r1, r2)
    light = 2 * (view * half).sum(1, keepdims=True) * half - view
    one = np.ones(SAMPLES, np.float32)
    normal = np.tile(np.float32([0, 0, 1]), (SAMPLES, 1))
    white, metal = np.ones((SAMPLES, 3), np.float32), one * (f0 == 1)
    weight = reflection_weight(white, metal, roughness * one, normal, view, light)[:, 0]
    return np.where(light[:, 2] > 0, weight, 0)


@pytest.mark.parametrize("roughness", ROUGHNESS)
def test_the_lobe_reflects_its_integral(roughness: float, rng: np.random.Generator) -> None:
    for cosine in COSINES:
        a, b = albedo_parts(roughness, cosine)
        for f0 in (1.0, 0.04):
            weights = sampled(roughness, cosine, f0, rng)
            assert 0 <= weights.min() and weights.max() <= 1 + 1e-6  # no sample gains energy
            error = weights.std() / np.sqrt(SAMPLES)
            expected = a * f0 + b
            assert abs(weights.mean() - expected) <= 4 * error + 5e-4, (cosine, f0)
            assert expected <= 1 + 1e-6


def table_parts(roughness: Any, cosine: Any) -> Any:
    """[n, 2] scale and bias of the frame's lookup."""
    roughness, cosine = (np.atleast_1d(np.asarray(v, np.float32)) for v in (roughness, cosine))
    f0 = np.broadcast_to(np.float32([0, 1, 0]), (len(roughness), 3))
    black, white, _ = specular_albedo(lobe_cells(), f0, roughness, cosine).T
    return np.stack([white - black, black], 1)


def test_the_table_is_the_integral(rng: np.random.Generator) -> None:
    """Between its nodes too."""
    roughness = np.exp(rng.uniform(np.log(0.02), 0, 60))
    cosine = np.concatenate([np.exp(rng.uniform(np.log(1e-3), 0, 30)), rng.uniform(0.02, 1, 30)])
    found = table_parts(roughness, cosine)
    expected = [albedo_parts(r, c) for r, c in zip(roughness, cosine, strict=True)]
    assert np.abs(found - expected).max() <= TABLE_ERROR
    assert np.abs((found - expected).sum(1)).max() <= TABLE_ERROR  # of a white metal
    assert found.min() >= 0 and found.sum(1).max() <= 1


def test_the_table_is_what_its_generator_makes(rng: np.random.Generator) -> None:
    assert (generator.COSINE, generator.ROUGHNESS) == tuple(zip(OCTAVES, STEPS, strict=True))
    cosines, roughnesses = generator.axis(*generator.COSINE), generator.axis(*generator.ROUGHNESS)
    for cosine, roughness in zip(rng.choice(cosines, 40), rng.choice(roughnesses, 40), strict=True):
        if roughness >= MIRROR_ROUGHNESS:
            made = generator.lobe_albedo(cosine, roughness)
            assert np.abs(table_parts(roughness, cosine)[0] - made).max() < 2e-5


def test_a_rough_white_metal_loses_what_leaves_a_facet_for_another() -> None:
    """Light is reflected once: along the normal of roughness 1 all but 1 - ln 2 is lost."""
    assert table_parts(1.0, 1.0).sum() == pytest.approx(1 - np.log(2), abs=2e-4)
    assert table_parts(0.02, 1.0).sum() == pytest.approx(1, abs=2e-4)


@pytest.fixture(scope="module")
def fan(kit: Any) -> Any:
    """Sectors of a plane, which do not see each other, of white metals ever rougher, seen from
    straight above to nearly flat, under a sky that is white everywhere."""
    metals = [Material(f"metal {r}", (1.0,) * 4, 1.0, r) for r in LEVELS]
    angles = np.radians(np.linspace(-60, 60, len(LEVELS) + 1))
    ends = np.stack([np.sin(angles), 0 * angles, -np.cos(angles)], 1)
    faces = np.array([[0, 1, 2], [1, 3, 2]])
    sectors = [
        make_mesh("sector", np.array([0.1 * a, 0.1 * b, 9 * a, 9 * b]), faces, k)
        for k, (a, b) in enumerate(pairwise(ends))
    ]
    black = kit.lamp((0, 5, 0), radiance=(0, 0, 0))
    view = dict(eye=(0, 1, 0), target=(0, 0, -1), y_fov=np.radians(85))
    return prepare(kit.scene(sectors, metals, light=black, sky=(1.0, 1.0, 1.0), **view))


@pytest.fixture(scope="module")
def by_rays(fan: Any, draw: Any) -> Any:
    return draw(fan, *SIZE, samples=16, roughness_cutoff=1.0, sampler="sobol")


@pytest.mark.parametrize("fallback", ["environment", "lobe"])
def test_in_a_white_furnace_the_fallback_reflects_what_rays_do(
    fan: Any, draw: Any, by_rays: Any, fallback: str
) -> None:
    """Within 1%: by roughness as rays do, and each pixel as the integral of its lobe."""
    drawn = draw(fan, *SIZE, roughness_cutoff=0.0, rough_fallback=fallback)
    assert drawn.stats.rays["reflection"].rays == 0 and drawn.stats.valid
    found, traced = drawn.radiance[..., 0], by_rays.radiance[..., 0]
    sector, depth = drawn.aov("object"), drawn.aov("depth")
    top = np.tan(np.radians(42.5))
    y, x = (np.indices(found.shape) + 0.5) / np.reshape(found.shape, (2, 1, 1))
    away = depth * np.sqrt(
        1 + ((1 - 2 * y) * top) ** 2 + ((2 * x - 1) * top * SIZE[0] / SIZE[1]) ** 2
    )
    for k, roughness in enumerate(LEVELS):
        cosine = 1 / away[sector == k]  # the eye is one metre above
        assert len(cosine) > 80 and cosine.min() < 0.2 and cosine.max() > 0.9
        assert found[sector == k].mean() == pytest.approx(traced[sector == k].mean(), rel=0.01)
        for pixel in np.argsort(cosine)[:: len(cosine) // 5]:
            expected = sum(albedo_parts(roughness, float(cosine[pixel])))
            assert found[sector == k][pixel] == pytest.approx(expected, rel=0.01)
