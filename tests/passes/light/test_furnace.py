"""White furnace: what the sampled reflection lobe reflects of uniform white light, over roughness
and angle, against a numerical integral of the BRDF; and how far the fitted albedo is from it, which
stands for the lobe beyond the roughness cutoff and tells the diffuse part what is left."""

from functools import cache
from typing import Any

import numpy as np
import pytest

from passes.twins.brdf import reflection_weight, specular_albedo
from passes.twins.sampling import sample_visible_normal

ROUGHNESS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0)
COSINES = (0.05, 0.15, 0.4, 0.7, 1.0)
SAMPLES = 20_000

# roughness -> how far the fit is from the integral, at least and at most over COSINES, in
# hundredths of the light that comes in: of a white metal and of a dielectric (f0 0.04).
FIT_ERRORS = {
    0.05: ((-3, -3), (-6, 1)),
    0.1: ((-5, -3), (-8, 1)),
    0.2: ((-11, 0), (-6, 0)),
    0.3: ((-16, -6), (-2, 0)),
    0.4: ((-19, -9), (-3, 4)),
    0.5: ((-21, -12), (-4, 1)),
    0.6: ((-26, -11), (-5, 0)),
    0.8: ((-33, 0), (-6, 0)),
    1.0: ((-40, 14), (-5, 0)),
}


def view_at(cosine: float) -> Any:
    return np.array([np.sqrt(1 - cosine**2), 0.0, cosine])


def smith(cosine: Any, alpha: float) -> Any:
    return 0.5 * (np.sqrt(1 + alpha**2 * (1 / cosine**2 - 1)) - 1)


@cache
def albedo_parts(roughness: float, cosine: float) -> tuple[float, float]:
    """(a, b): the albedo is a f0 + b, since Fresnel's term (Schlick) is f0 (1 - c) + c. Integrated
    over half vectors by the midpoint rule, in the distribution's own measure, to within 3e-4."""
    alpha = roughness**2
    u = (np.arange(1000)[:, None] + 0.5) / 1000
    phi = (np.arange(128) + 0.5) / 128 * np.pi  # one side: the other mirrors it
    n_h = np.sqrt((1 - u) / (1 + (alpha**2 - 1) * u))
    view = view_at(cosine)
    v_h = np.sqrt(1 - n_h**2) * np.cos(phi) * view[0] + n_h * view[2]
    n_l = 2 * v_h * n_h - view[2]
    up = (n_l > 1e-9) & (v_h > 0)
    masking = 1 / (1 + smith(np.where(up, n_l, 1), alpha) + smith(cosine, alpha))
    weight = np.where(up, masking * v_h / (cosine * n_h), 0)
    turned = (1 - np.clip(v_h, 0, 1)) ** 5
    return float((weight * (1 - turned)).mean()), float((weight * turned).mean())


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


@pytest.mark.parametrize("roughness", ROUGHNESS)
def test_how_far_the_fitted_albedo_is_off(roughness: float) -> None:
    for f0, stated in zip((1.0, 0.04), FIT_ERRORS[roughness], strict=True):
        errors = []
        for cosine in COSINES:
            a, b = albedo_parts(roughness, cosine)
            of = np.float32([roughness]), np.float32([cosine])
            fit = specular_albedo(np.full((1, 3), f0, np.float32), *of)[0, 0]
            errors.append(100 * (fit - a * f0 - b))
        assert min(errors) == pytest.approx(stated[0], abs=0.6), errors
        assert max(errors) == pytest.approx(stated[1], abs=0.6), errors
