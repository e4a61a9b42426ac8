"""Scenes that move, and frames of them at a time."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bvh.build import BuildOptions
from engine.scene.camera import look_at
from engine.scene.light import RectLight
from engine.scene.load import load_scene
from engine.scene.scene import Instance, Scene
from passes.frame_stats import FrameStats
from passes.gpu_scene import GpuScene
from passes.hybrid import FrameOptions, HybridFrame
from passes.prepare import PreparedScene, prepare

SIZE = (96, 54)
FAST = BuildOptions(builder="lbvh", reinsertion=0)


@pytest.fixture(scope="package")
def scene_of(shared_scenes: Any) -> Callable[[str], Scene]:
    scenes: dict[str, Scene] = {}

    def load(name: str) -> Scene:
        if name not in scenes:
            scenes[name] = load_scene(shared_scenes / f"{name}.glb")
        return scenes[name]

    return load


@pytest.fixture(scope="package")
def stage(scene_of: Callable[[str], Scene], kit: Any) -> Scene:
    """The fox between a mirror that it stands on and a light: shadow and reflection on the floor
    are its own."""
    fox = scene_of("Fox")
    assert fox.animation is not None
    low, high = fox.bounds()
    size = float((high - low).max())
    middle = 0.5 * (low + high)
    corner = np.array([middle[0] - 2 * size, low[1] - 0.02 * size, middle[2] - 2 * size])
    floor = kit.quad(corner, [0, 0, 4 * size], [4 * size, 0, 0], material=len(fox.materials))
    light = RectLight(
        center=np.array([middle[0] + size, high[1] + 2 * size, middle[2]]),
        half_u=np.array([0.1 * size, 0.0, 0.0]),
        half_v=np.array([0.0, 0.0, 0.1 * size]),
        radiance=np.full(3, 200.0),
    )
    eye = middle + size * np.array([1.4, 1.1, 1.2])
    return replace(
        fox,
        name="stage",
        materials=(*fox.materials, kit.mirror(base_color=(0.7, 0.7, 0.7, 1.0), roughness=0.1)),
        meshes=(*fox.meshes, floor),
        instances=(*fox.instances, Instance("floor", len(fox.meshes), np.eye(4))),
        camera=look_at(eye, middle, fox.camera.y_fov),
        light=light,
        animation=replace(fox.animation, instance_nodes=(*fox.animation.instance_nodes, 0)),
    )


@pytest.fixture(scope="package")
def make_frame(device: Any) -> Callable[..., HybridFrame]:
    """make_frame(scene or prepared scene, its GpuScene or None, **FrameOptions) -> HybridFrame."""

    def make(
        scene: Scene | PreparedScene, on_gpu: GpuScene | None = None, **options: Any
    ) -> HybridFrame:
        prepared = scene if isinstance(scene, PreparedScene) else prepare(scene, FAST)
        return HybridFrame(device, prepared, FrameOptions(*SIZE, **options), on_gpu)

    return make


@pytest.fixture(scope="package")
def show() -> Callable[..., FrameStats]:
    """show(frame, clip, time in seconds, **FrameInputs) draws the scene at that time."""

    def draw(frame: HybridFrame, clip: str | None, time: float = 0.0, **more: Any) -> FrameStats:
        stats = frame.run(0, inputs=replace(frame.inputs, clip=clip, time=time, **more))
        assert stats.valid
        return stats

    return draw
