"""The albedo of the specular lobe by a way of its own: over half vectors, in the measure of GGX
itself, where the project's table and its rays use visible normals."""

from functools import cache
from typing import Any

import numpy as np


def smith(cosine: Any, alpha: float) -> Any:
    return 0.5 * (np.sqrt(1 + alpha**2 * (1 / cosine**2 - 1)) - 1)


@cache
def albedo_parts(
    roughness: float, cosine: float, heights: int = 1000, turns: int = 64
) -> tuple[float, float]:
    """(a, b): the albedo is a f0 + b, since Fresnel's term (Schlick) is f0 (1 - c) + c. Over
    heights of half vectors by the midpoint rule, by the root of what is left of GGX's measure, as
    those that lie flat weigh most; over their turns about the normal, as far as what they reflect
    leaves the surface, by Gauss'. Right to 2e-4."""
    alpha = roughness**2
    place, share = np.polynomial.legendre.leggauss(turns)
    root = (np.arange(heights)[:, None] + 0.5) / heights
    n_h = root / np.sqrt(1 + (alpha**2 - 1) * (1 - root**2))
    across = np.sqrt(1 - n_h**2) * np.sqrt(1 - cosine**2)
    last = np.arccos(
        np.clip((cosine / (2 * n_h) - n_h * cosine) / np.maximum(across, 1e-12), -1, 1)
    )
    v_h = across * np.cos(last * (place + 1) / 2) + n_h * cosine  # one side: the other mirrors it
    n_l = np.maximum(2 * v_h * n_h - cosine, 1e-12)
    masking = 1 / (1 + smith(n_l, alpha) + smith(cosine, alpha))
    weight = masking * v_h / (cosine * n_h) * root * share * last / np.pi
    turned = (1 - np.clip(v_h, 0, 1)) ** 5
    return float((weight * (1 - turned)).sum() / heights), float((weight * turned).sum() / heights)


@cache
def albedo_curve(roughness: float) -> tuple[Any, Any]:
    """Cosines in equal steps of their root, and [n, 2] the parts there."""
    cosines = np.linspace(0.03, 1, 40) ** 2
    return cosines, np.array([albedo_parts(roughness, c, 250, 64) for c in cosines])


def lobe_albedo(f0: Any, roughness: Any, cosine: Any, mirror: float) -> Any:
    """[n, 3] of surfaces [n]; those smoother than `mirror` reflect one direction."""
    turned = (1 - cosine) ** 5
    parts = np.stack([1 - turned, turned], 1)
    for kind in np.unique(roughness[roughness >= mirror]):
        of = roughness == kind
        cosines, curve = albedo_curve(float(kind))
        for k in range(2):
            parts[of, k] = np.interp(cosine[of], cosines, curve[:, k])
    return f0 * parts[:, :1] + parts[:, 1:]
