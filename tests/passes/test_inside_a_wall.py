"""A camera within a wall: it sees the wall's inner faces, which no light reaches, and nothing of
the room; and one whose eye lies in a wall's very plane."""

from typing import Any

import numpy as np
import pytest

LIT = dict(center=(0.0, 1.5, 4.0), half=0.2, facing=(0.0, -0.3, -1.0), radiance=(50, 50, 50))


@pytest.mark.parametrize("gbuffer", ["raster", "rays"])
@pytest.mark.parametrize("target", [(0, 0, 5), (1, 1, -1), (0, -3, 0.1)])
def test_within_it_is_dark_and_closed(kit: Any, draw: Any, target: Any, gbuffer: str) -> None:
    """The box is the wall, the lamp and a mirror stand outside."""
    mirror = kit.quad((-2, -2, 3), (4, 0, 0), (0, 4, 0), 1)
    scene = kit.scene(
        [kit.box(0), mirror],
        [kit.grey(), kit.mirror()],
        eye=(0.1, 0.2, -0.1),
        target=target,
        light=kit.lamp(**LIT),
        sky=(0.3, 0.3, 0.3),
    )
    drawn = draw(scene, 32, 24, gbuffer=gbuffer, **kit.every_ray)
    assert drawn.stats.valid
    assert (drawn.aov("object") == 0).all()
    depth = drawn.aov("depth")
    assert (depth > 0.5).all() and (depth < 1.2 * np.sqrt(3)).all()
    rays, lit = drawn.shadows
    assert not lit.any()


@pytest.mark.parametrize("gbuffer", ["raster", "rays"])
def test_an_eye_in_the_plane_of_a_wall_sees_past_it(kit: Any, draw: Any, gbuffer: str) -> None:
    """Rays that start on a triangle do not meet it."""
    scene = kit.scene(
        [
            kit.quad((-1, -1, 0), (2, 0, 0), (0, 2, 0)),
            kit.quad((-9, -9, -4), (18, 0, 0), (0, 18, 0)),
        ],
        eye=(0.2, 0.3, 0.0),
        target=(0.2, 0.3, -1.0),
        light=kit.lamp(**LIT),
    )
    drawn = draw(scene, 24, 18, gbuffer=gbuffer)
    assert drawn.stats.valid
    assert (drawn.aov("object") == 1).all()
    np.testing.assert_allclose(drawn.aov("depth").min(), 4.0, rtol=1e-2)
