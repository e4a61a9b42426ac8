"""Stand-ins of a scene file by ray type: a coarse one for reflections, a plain one for shadows.
Each ray meets the one that it is for and never another."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bvh.rays import MISS_ID
from treeline import scenes

SCENE = """
[files]
tile = "tile.obj"
[camera]
position = [0, 4, 7]
target = [0, 0.8, 0]
fov = 50
[environment]
zenith = 0.1
horizon = 0.1
ground = 0.1
[[lights]]
center = [2, 4, -4]
target = [0, 0, 0]
size = [0.2, 0.2]
radiance = 900
[[objects]]
file = "tile"
name = "floor"
scale = 6
[[objects]]
file = "tile"
name = "fine"
translation = [0, 1.0, 0]
euler = [90, 0, 0]
hidden_from = ["reflection", "shadow"]
[[objects]]
file = "tile"
name = "coarse"
translation = [0, 1.4, 0]
euler = [90, 0, 0]
scale = 1.3
visible_to = ["reflection"]
[[objects]]
file = "tile"
name = "proxy"
translation = [0, 0.9, 0]
euler = [90, 0, 0]
scale = 0.8
visible_to = ["shadow"]
"""
# Centre above the floor and half size of each: all stand in the plane z = 0.
PLACES = {"fine": (1.0, 1.0), "coarse": (1.4, 1.3), "proxy": (0.9, 0.8)}
TILE = """mtllib tile.mtl
usemtl shiny
v -1 0 -1
v 1 0 -1
v 1 0 1
v -1 0 1
f 1 4 3 2
"""


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder: Path = tmp_path_factory.mktemp("detail")
    (folder / "tile.mtl").write_text("newmtl shiny\nKd 0.6 0.6 0.6\nNs 900\n")
    (folder / "tile.obj").write_text(TILE)
    (folder / "scene.toml").write_text(SCENE)
    return scenes.load(folder / "scene.toml")


def crosses(name: str, origin: Any, direction: Any, reach: float) -> tuple[Any, Any]:
    """Whether rays cross that tile before `reach`, and whether that is certain."""
    height, half = PLACES[name]
    t = -origin[:, 2] / direction[:, 2]
    at = origin + t[:, None] * direction
    outside = np.maximum(np.abs(at[:, 0]), np.abs(at[:, 1] - height)) - half
    return (t > 1e-4) & (t < reach) & (outside < 0), np.abs(outside) > 1e-3


@pytest.mark.parametrize("gbuffer", ["raster", "rays"])
@pytest.mark.parametrize("mode", ["inline", "queue"])
def test_each_ray_type_meets_its_own(draw: Any, scene: Any, gbuffer: str, mode: str) -> None:
    drawn = draw(scene, 48, 36, gbuffer=gbuffer, any_hit_mode=mode, roughness_cutoff=1.0)
    names = np.array([i.name for i in drawn.prepared.scene.instances] + [""])
    objects = names[drawn.aov("object")]
    assert set(np.unique(objects)) == {"", "floor", "fine"} and (objects == "fine").sum() > 30

    rays, hits = drawn.reflections
    met = names[np.where(hits["object"] == MISS_ID, -1, hits["object"].astype(int))]
    from_floor = objects.reshape(-1)[rays["pixel"]] == "floor"
    origin, direction = (rays[n].astype(float)[from_floor] for n in ("origin", "direction"))
    wanted, certain = crosses("coarse", origin, direction, np.inf)
    np.testing.assert_array_equal((met[from_floor] == "coarse")[certain], wanted[certain])
    assert wanted.sum() > 20 and set(met) <= {"", "floor", "coarse"}

    rays, lit = drawn.shadows
    own = (rays["slot"] % 2 == 0) & (objects.reshape(-1)[rays["slot"] // 2] == "floor")
    origin = rays["origin"].astype(float)[own]
    wanted, certain = crosses("proxy", origin, drawn.light_points(rays)[own] - origin, 1.0)
    np.testing.assert_array_equal(~lit[own][certain], wanted[certain])
    assert wanted.sum() > 20
