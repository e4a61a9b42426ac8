"""What remembering costs while the camera moves: reflections that few samples find keep most of
their brightness, and what is found again between pixels is not blurred ever more."""

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

FRAMES = 12


def walked(
    make: Callable[..., HybridFrame], scene: Scene, history: int, seeds: int, step: Any
) -> tuple[HybridFrame, list[Any]]:
    """Pictures at the scene's camera, which came there in FRAMES frames of `step` metres (right,
    up, back), and the frame that drew the last."""
    pictures = []
    for seed in range(seeds):
        frame = make(scene, history=history)
        for back in reversed(range(FRAMES)):
            camera = shifted(scene.camera, *(-back * np.array(step)))
            inputs = replace(frame.inputs, camera=camera, seed=100 + seed)
            assert frame.run(FRAMES - back, inputs=inputs).valid
        pictures.append(frame.radiance())
    return frame, pictures


def truth_of(make: Callable[..., HybridFrame], scene: Scene, frame: HybridFrame) -> Any:
    """What `frame` shows, of many samples."""
    truth = make(scene)
    truth.inputs = frame.inputs
    assert truth.render(64, 1000).valid
    return truth.radiance()


def test_reflections_that_few_rays_find_keep_their_brightness(
    make: Callable[..., HybridFrame], kit: SimpleNamespace
) -> None:
    """A rough wall of metal, and behind the camera a bright panel that one in some rays meets."""
    panel = kit.quad((-1.0, -1.0, 8), (0, 2, 0), (2, 0, 0), 1)
    scene = kit.scene(
        [kit.quad((-6, -6, 0), (12, 0, 0), (0, 12, 0)), panel],
        [
            Material("wall", (0.9, 0.9, 0.9, 1.0), 1.0, 0.4),
            Material("panel", roughness=1.0, emissive=(20.0, 20.0, 20.0)),
        ],
        eye=(0, 0, 5),
        light=kit.lamp((0, 0, 40.0), 0.1, facing=(0, 0, 1), radiance=(1e-3,) * 3),
        sky=(0.2, 0.2, 0.2),
    )
    frame, pictures = walked(make, scene, 16, 3, (0.04, 0.0, 0.0))
    expected = truth_of(make, scene, frame).mean()
    bias = np.mean([p.mean() for p in pictures]) / expected - 1
    # Clamped to what is around, as other light is, it would be a third too dark.
    assert -0.23 < bias < 0.05


def test_more_frames_blur_shadows_little(
    make: Callable[..., HybridFrame], kit: SimpleNamespace
) -> None:
    """Bars close above a floor: their shadows are sharp, and some about as narrow as a pixel."""
    bars = [kit.quad((-3 + 0.5 * i, 0.3, 3), (0.12, 0, 0), (0, 0, -9), 1) for i in range(13)]
    scene = kit.scene(
        [kit.quad((-6, 0, 6), (12, 0, 0), (0, 0, -16)), *bars],
        [kit.grey(0.8), kit.grey(0.5)],
        eye=(0.0, 1.8, 5.0),
        target=(0.0, 0.4, 0.0),
        light=kit.lamp((1.5, 5.0, 0.0), 0.15, radiance=(200.0,) * 3),
        sky=(0.02, 0.02, 0.02),
    )
    for step in ((0.03, 0.0, 0.0), (0.0, 0.0, -0.04)):
        found = []
        for history in (4, 16):
            frame, pictures = walked(make, scene, history, 1, step)
            reference = truth_of(make, scene, frame)
            found.append(relative_mse(pictures[0], reference))
        # Which blurs at each step, without end: 1.8 and 2.3 times the error.
        assert found[1] < 1.65 * found[0]
