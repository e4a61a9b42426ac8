"""What balls mirror while the camera moves: the images stand close behind them, wherever what is
mirrored stands, and are far smaller than a plain mirror's."""

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np

from engine.scene.material import Material
from engine.scene.scene import Scene
from passes.hybrid import HybridFrame
from tests.passes.history.remembered import shifted
from tests.passes.relative_mse import relative_mse

FRAMES = 10
STEP = 0.006  # metres to the right in each, six pixels


def make_ball(kit: SimpleNamespace, roughness: float, lamp: float) -> Scene:
    """The middle of a ball of half a metre through a long lens: a pixel is a millimetre. It mirrors
    a lamp above the camera, and a wall of stripes behind both."""
    stripes = kit.quad((-24, -24, 20), (0, 48, 0), (48, 0, 0), 1, cells=24)
    shades = np.zeros((len(stripes.positions), 4), np.uint8)
    shades[:] = np.where(np.arange(25) % 2, 250, 20).repeat(25)[:, None]
    return kit.scene(
        [kit.sphere((0, 0, 0), 0.5, rings=48), replace(stripes, colors=shades)],
        [Material("ball", (0.9, 0.9, 0.9, 1.0), 1.0, roughness), kit.grey(0.9)],
        eye=(0.6, 0.0, 5.0),
        target=(0.0, 0.1, 0.45),
        y_fov=0.04,
        light=kit.lamp((0.0, 5.0, 9.0), 0.35, facing=(0, -0.5, -1), radiance=(lamp,) * 3),
        sky=(0.3, 0.3, 0.3),
    )


def walked(make: Callable[..., HybridFrame], scene: Scene) -> tuple[HybridFrame, Any, Any, float]:
    """A frame that came to the scene's camera, its picture, what that should be, and the mean error
    of one sample."""
    frame = make(scene, history=16)
    for back in reversed(range(FRAMES)):
        camera = shifted(scene.camera, -STEP * back)
        assert frame.run(FRAMES - back, inputs=replace(frame.inputs, camera=camera)).valid
    truth, single = make(scene), make(scene)
    truth.render(64, 1000)
    reference, alone = truth.radiance(), []
    for index in range(4):
        single.run(index)
        alone.append(relative_mse(single.radiance(), reference))
    return frame, frame.radiance(), reference, float(np.mean(alone))


def test_a_lamps_outline_in_a_ball_leaves_no_trail(
    make: Callable[..., HybridFrame], kit: SimpleNamespace
) -> None:
    """Behind the lamp's outline lies what is so far away that a plain mirror's lobe would be wider
    than a pixel: remembered as such, the lamp stays where it was seen a frame ago."""
    frame, found, reference, alone = walked(make, make_ball(kit, 0.02, 150.0))
    assert alone < 1e-3 and reference.max() > 100  # a mirror, and the lamp is in the picture
    assert relative_mse(found, reference) < 1e-3  # a trail: 996
    assert not frame.aov("history_reflection").any()


def test_a_glossy_balls_image_is_found_close_behind_it(
    make: Callable[..., HybridFrame], kit: SimpleNamespace
) -> None:
    """As a plain mirror's it would stand far behind, where it moves five pixels less a frame."""
    frame, found, reference, alone = walked(make, make_ball(kit, 0.12, 0.01))
    seen_long = frame.aov("history_reflection") > FRAMES - 1.5
    assert seen_long.mean() > 0.5
    # Nine frames can bring it to a ninth; half is left where the image is sought far behind.
    assert relative_mse(found[seen_long], reference[seen_long]) < 0.2 * alone
