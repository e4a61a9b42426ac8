"""The frames of the tests of light that is remembered."""

from collections.abc import Callable
from typing import Any

import pytest

from bvh.build import BuildOptions
from engine.scene.scene import Scene
from passes.gpu_scene import GpuScene
from passes.hybrid import FrameOptions, HybridFrame
from passes.prepare import PreparedScene, prepare
from tests.passes.history.remembered import SIZE

FAST = BuildOptions(builder="lbvh", reinsertion=0)


@pytest.fixture(scope="module")
def make(device: Any) -> Callable[..., HybridFrame]:
    """make(scene, **FrameOptions fields): a frame whose primary rays are traced."""
    on_gpu: dict[int, tuple[PreparedScene, GpuScene]] = {}

    def maker(scene: Scene | PreparedScene, **options: Any) -> HybridFrame:
        if id(scene) not in on_gpu:
            prepared = scene if isinstance(scene, PreparedScene) else prepare(scene, FAST)
            on_gpu[id(scene)] = prepared, GpuScene(device, prepared)
        prepared, placed = on_gpu[id(scene)]
        settings = FrameOptions(*SIZE, gbuffer="rays", **options)
        return HybridFrame(device, prepared, settings, placed)

    return maker
