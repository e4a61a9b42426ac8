"""The G-buffer against pyrender, a rasteriser that nobody here wrote: depth and objects."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bvh.build import BuildOptions
from engine.gpu.errors import AdapterError
from passes.hybrid import FrameOptions, HybridFrame
from passes.prepare import prepare
from treeline.raster_oracle import OracleView, compare, render_oracle
from treeline.scenes import load

SIZE = (320, 180)
# Pixels that may differ: silhouettes that pass a pixel's centre within float32's rounding, and
# grazing triangles, where OpenGL's 24-bit depth is coarse.
ALLOWED = 1e-3


@pytest.fixture(scope="module")
def pyrender() -> Any:
    return pytest.importorskip("pyrender", reason="the raster oracle needs the package pyrender")


def both_views(device: Any, scene: Any, gbuffer: str) -> tuple[Any, OracleView, Any, Any]:
    prepared = prepare(scene, BuildOptions())
    frame = HybridFrame(device, prepared, FrameOptions(*SIZE, gbuffer=gbuffer))
    frame.run(0)
    try:
        oracle = render_oracle(prepared.scene, *SIZE)
    except AdapterError as error:
        pytest.skip(str(error))
    return prepared.scene, oracle, frame.aov("depth"), frame.aov("object")


@pytest.mark.parametrize("gbuffer", ["raster", "rays"])
@pytest.mark.parametrize("name", ["house.glb", "spaceship.glb", "CesiumMilkTruck.glb", "spot.obj"])
def test_depth_and_objects_agree(
    pyrender: Any, device: Any, shared_scenes: Path, name: str, gbuffer: str
) -> None:
    scene, oracle, depth, objects = both_views(device, load(shared_scenes / name), gbuffer)
    found = compare(scene, oracle, depth, objects)
    assert np.isfinite(oracle.depth).any()
    assert found.compared > 0.9 * found.pixels
    assert found.silhouette + found.depth <= ALLOWED * found.compared, found
    assert found.object <= ALLOWED * found.compared, found


def test_a_wrong_view_is_noticed(pyrender: Any, device: Any, shared_scenes: Path) -> None:
    scene, oracle, depth, objects = both_views(device, load(shared_scenes / "spot.obj"), "raster")
    hits = int(np.isfinite(depth).sum())
    farther = compare(scene, oracle, depth * np.float32(1.01), objects)
    assert farther.depth > 0.9 * hits
    moved = compare(scene, oracle, np.roll(depth, 1, axis=1), objects)
    assert moved.silhouette + moved.depth > ALLOWED * moved.compared
    other = compare(scene, oracle, depth, np.where(objects >= 0, objects * 0 - 1, objects))
    assert other.object > 0.9 * hits
