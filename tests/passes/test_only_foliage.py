"""A scene of leaves alone, without a solid surface: every ray asks, and none is lost."""

from typing import Any

import numpy as np
import pytest

from bvh.build import BuildOptions
from engine.scene.material import Material, Texture
from engine.scene.mesh import Mesh

SIZE = (40, 30)
MODES = [  # who sees first, what of the leaves asks, where
    ("raster", "material", "inline"),
    ("rays", "triangle", "inline"),
    ("raster", "triangle", "queue"),
    ("rays", "material", "queue"),
]


def foliage(kit: Any, alpha: int | None) -> Any:
    """Sheets behind each other of one alpha, or of holes at random, under a lamp."""
    rng = np.random.default_rng(11)
    pixels = np.full((8, 8, 4), 255, np.uint8)
    pixels[..., 3] = rng.choice([0, 255], (8, 8)) if alpha is None else alpha
    leaf = Material("leaf", roughness=0.3, alpha_mode="MASK", base_color_texture=0)
    sheets: list[Mesh] = []
    for i in range(5):
        corner = rng.uniform(-0.3, 0.3, 3) + [-1.5, -1.5, -0.6 * i]
        sheets.append(kit.quad(corner, (3, 0, 0.3), (0, 3, -0.2), cells=4))
    return kit.scene(
        sheets,
        [leaf],
        textures=[Texture("leaf", pixels, True)],
        light=kit.lamp((1.0, 2.0, 3.0), 0.1, (-0.3, -0.6, -1), (9, 9, 9)),
        sky=(0.2, 0.3, 0.4),
    )


@pytest.mark.parametrize(("gbuffer", "opacity", "mode"), MODES)
def test_holes_of_leaves_show_leaves_or_sky(
    kit: Any, draw: Any, gbuffer: str, opacity: str, mode: str
) -> None:
    """One picture, however it is made."""
    scene = foliage(kit, None)
    build = BuildOptions("lbvh", reinsertion=0, opacity=opacity)
    drawn = draw(scene, *SIZE, build=build, gbuffer=gbuffer, count=True, any_hit_mode=mode)
    first = draw(scene, *SIZE, build=BuildOptions("lbvh", reinsertion=0, opacity="material"))
    assert drawn.stats.valid
    for ray in ("reflection", "shadow"):
        counts = drawn.stats.rays[ray]
        assert counts.any_hits and 0 < counts.hits < counts.rays
    seen, wanted = (d.aov("object") for d in (drawn, first))
    assert (seen != wanted).mean() <= 0.003 and {-1, 0, 1, 2} <= set(np.unique(seen))
    pictures = (d.frame.image().astype(int) for d in (drawn, first))
    assert (np.abs(np.subtract(*pictures)) > 3).any(axis=-1).mean() <= 0.01


@pytest.mark.parametrize(("gbuffer", "opacity", "mode"), MODES)
def test_leaves_that_are_all_hole_are_sky(
    kit: Any, draw: Any, gbuffer: str, opacity: str, mode: str
) -> None:
    build = BuildOptions("lbvh", reinsertion=0, opacity=opacity)
    scene = foliage(kit, 0)
    drawn = draw(scene, *SIZE, build=build, gbuffer=gbuffer, any_hit_mode=mode, **kit.every_ray)
    assert drawn.stats.valid and not any(n.rays for n in drawn.stats.rays.values())
    assert (drawn.aov("object") == -1).all()
    np.testing.assert_allclose(
        drawn.radiance, np.full((*SIZE[::-1], 3), [0.2, 0.3, 0.4]), rtol=1e-6
    )
