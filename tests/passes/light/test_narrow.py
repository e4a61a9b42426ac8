"""Highlights of narrow lobes, whose reflection rays see the lights themselves: as bright as the
lobe's mean over the light."""

from typing import Any

import numpy as np
import pytest

from engine.scene.material import Material
from passes.twins.brdf import NARROW_ROUGHNESS
from tests.passes.light.model import Reference, dots, lobe

SIZE = 48, 32
LEVELS = (6, 13, 25)  # of roughness, in 255ths
DRAWS = 60  # a pixel, of the lobe


def lamp_in_metal(kit: Any, roughness: float) -> Any:
    """A metal floor in which the camera sees a bright lamp, nothing else."""
    metal = Material("metal", (1.0, 1.0, 1.0, 1.0), 1.0, roughness)
    return kit.scene(
        [kit.quad((-3, 0, 3), (6, 0, 0), (0, 0, -6), 0)],
        [metal],
        eye=(0, 2, 3),
        target=(0, 0, 0),
        light=kit.lamp((0, 2.0, -3.0), 0.8, (0, -0.55, 0.83), (60, 60, 60)),
    )


def expected(scene: Any, rng: np.random.Generator) -> float:
    """Mean of the picture by directions of the lobe alone, which meet the lamp or not."""
    reference = Reference(scene, *SIZE, cutoff=1.0)
    points, total = reference.seen, 0.0
    for _ in range(DRAWS):
        directions, density = reference._lobe_directions(points, rng)
        up = dots(points.normal, directions)
        weight = np.where((up > 0)[:, None], lobe(points, directions), 0) * (up / density)[:, None]
        reach = np.full(len(up), np.inf)
        total += (weight * reference._light_seen(points.position, directions, reach)).sum()
    return float(total / DRAWS / (3 * SIZE[0] * SIZE[1]))


@pytest.mark.parametrize("level", LEVELS)
def test_a_narrow_highlight_is_as_bright_as_its_lamp(
    kit: Any, draw: Any, rng: np.random.Generator, level: int
) -> None:
    """Points of the lamp would bring up to 10^7 of radiance where they meet the lobe, of which a
    half holds 65,504: half of the light and more was lost."""
    scene = lamp_in_metal(kit, level / 255)
    drawn = draw(scene, *SIZE, samples=24, roughness_cutoff=0.6, seed=3)
    assert level / 255 < NARROW_ROUGHNESS and drawn.stats.rays["shadow"].rays == 0
    assert drawn.radiance.mean() == pytest.approx(expected(scene, rng), rel=0.04)


@pytest.mark.parametrize("cutoff", [0.0, 0.6])
def test_without_a_ray_of_its_own_the_lamp_is_sampled(kit: Any, draw: Any, cutoff: float) -> None:
    """Where the cutoff lets a narrow lobe send none."""
    scene = lamp_in_metal(kit, 20 / 255)
    drawn = draw(scene, *SIZE, roughness_cutoff=cutoff)
    assert (drawn.stats.rays["shadow"].rays > 0) == (cutoff == 0)
    assert (drawn.stats.rays["reflection"].rays > 0) == (cutoff > 0)
    assert drawn.radiance.max() > 0  # there is no sky: it is the lamp's
