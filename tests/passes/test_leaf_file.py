"""A leaf with a hole, as a glTF file has it: light falls through at the right texel of a texture of
2 x 2, for pixels, shadows and reflections, whoever tests and wherever.

The truth is here: texture coordinates by hand, texel centres at (i + 0.5) / 2, the image's first
row at v = 0, weights of the four nearest texels, and what lies beyond the texture by its wrap mode.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bvh.build import BuildOptions
from bvh.rays import MISS_ID
from engine.scene.camera import look_at
from engine.scene.load import load_scene

SIZE = (48, 36)
# Only the upper left texel is a hole, so that any swap or flip shows.
ALPHA = np.array([[0.0, 1.0], [1.0, 1.0]])
WRAPS = {"repeat": 10497, "clamp": 33071, "mirror": 33648}
MOVED = {"offset": [0.3, -0.2], "rotation": 0.6, "scale": [1.3, 0.8]}
MARGIN = 2e-3  # of alpha: roundings of float32 coordinates
MODES = [  # who sees first, where rays ask, what of the leaf asks
    ("raster", "inline", "material"),
    ("rays", "inline", "triangle"),
    ("raster", "queue", "triangle"),
    ("rays", "queue", "material"),
]


def texel(i: Any, j: Any, wraps: tuple[str, str]) -> Any:
    """Alpha of column i, row j, beyond the texture, too."""
    found = []
    for at, wrap in zip((i, j), wraps, strict=True):
        found.append(
            {
                "repeat": at % 2,
                "clamp": np.clip(at, 0, 1),
                "mirror": np.array([0, 1, 1, 0])[at % 4],
            }[wrap]
        )
    return ALPHA[found[1], found[0]]


def alpha_at(points: Any, wraps: tuple[str, str], moved: bool) -> Any:
    """Of points [n, 3] on the leaf: its upper left corner is (u, v) = (-1.2, -0.8)."""
    u, v = 3.1 * (points[:, 0] + 1) / 2 - 1.2, 2.7 * (1 - points[:, 1]) / 2 - 0.8
    if moved:  # counter-clockwise on the image, whose v points down
        u, v = MOVED["scale"][0] * u, MOVED["scale"][1] * v
        c, s = np.cos(MOVED["rotation"]), np.sin(MOVED["rotation"])
        u, v = c * u + s * v + MOVED["offset"][0], c * v - s * u + MOVED["offset"][1]
    x, y = 2 * u - 0.5, 2 * v - 0.5
    i, j = np.floor(x).astype(int), np.floor(y).astype(int)
    value = np.zeros(len(points))
    for di in (0, 1):
        for dj in (0, 1):
            weight = np.abs(1 - di - (x - i)) * np.abs(1 - dj - (y - j))
            value += weight * texel(i + di, j + dj, wraps)
    return value


def leaf_file(glb: Any, path: Any, wraps: tuple[str, str], moved: bool) -> Any:
    """A leaf [-1, 1]^2 at z = 0 of 10 x 10 cells, and a shiny wall behind it."""
    pixels = np.full((2, 2, 4), 255)
    pixels[..., 3] = 255 * ALPHA
    glb.add("samplers", {"wrapS": WRAPS[wraps[0]], "wrapT": WRAPS[wraps[1]]})
    info = {"index": glb.add("textures", {"source": glb.image(pixels), "sampler": 0})}
    if moved:
        info["extensions"] = {"KHR_texture_transform": MOVED}
    rough = {"roughnessFactor": 1.0, "metallicFactor": 0.0}
    leaf = {"pbrMetallicRoughness": rough | {"baseColorTexture": info}, "alphaMode": "MASK"}
    glb.add("materials", leaf)
    glb.add("materials", {"pbrMetallicRoughness": {"roughnessFactor": 0.0, "metallicFactor": 0.3}})
    steps = np.linspace(0, 1, 11)
    s, t = (grid.ravel() for grid in np.meshgrid(steps, steps))  # to the right, and down
    corners = np.stack([2 * s - 1, 1 - 2 * t, 0 * s], 1)
    i, j = (grid.ravel() for grid in np.meshgrid(np.arange(10), np.arange(10)))
    a, c = 11 * j + i, 11 * (j + 1) + i
    faces = np.concatenate([np.stack([a, c, c + 1], 1), np.stack([a, c + 1, a + 1], 1)])
    uvs = glb.accessor(np.stack([3.1 * s - 1.2, 2.7 * t - 0.8], 1))
    primitive = glb.primitive(corners, faces, TEXCOORD_0=uvs)
    glb.node(mesh=glb.mesh({**primitive, "material": 0}), name="leaf")
    wall = np.array([[-9, -9, -2], [9, -9, -2], [9, 9, -2], [-9, 9, -2]])
    primitive = glb.primitive(wall, [[0, 1, 2], [0, 2, 3]])
    glb.node(mesh=glb.mesh({**primitive, "material": 1}), name="wall")
    path.write_bytes(glb.data())
    return path


@pytest.mark.parametrize(("gbuffer", "mode", "opacity"), MODES, ids=["-".join(m) for m in MODES])
@pytest.mark.parametrize(
    ("wraps", "moved"),
    [
        (("repeat", "clamp"), False),
        (("mirror", "repeat"), False),
        (("clamp", "mirror"), True),
    ],
    ids=["repeat-clamp", "mirror-repeat", "clamp-mirror-moved"],
)
def test_light_falls_through_the_hole(
    new_glb: Any,
    tmp_path: Any,
    kit: Any,
    draw: Any,
    wraps: tuple[str, str],
    moved: bool,
    gbuffer: str,
    mode: str,
    opacity: str,
) -> None:
    scene = replace(
        load_scene(leaf_file(new_glb(), tmp_path / "leaf.glb", wraps, moved)),
        camera=look_at(np.array([2.2, 0.3, 3.5]), np.array([0.3, 0.0, -0.8]), 0.75),
        light=kit.lamp((0.4, 0.3, 3.0), 0.05, (0, 0, -1), (9, 9, 9)),
    )
    build = BuildOptions("lbvh", reinsertion=0, opacity=opacity)
    drawn = draw(scene, *SIZE, build=build, gbuffer=gbuffer, any_hit_mode=mode, samples=1)
    names = np.array([i.name for i in drawn.prepared.scene.instances] + [""])

    def stopped(origin: Any, end: Any) -> tuple[Any, Any]:
        """Whether the leaf stops rays between two points, and whether that is certain."""
        t = origin[:, 2] / (origin[:, 2] - end[:, 2])
        points = origin + t[:, None] * (end - origin)
        reach = np.abs(points[:, :2]).max(axis=1)
        value = alpha_at(points, wraps, moved)
        crossed = (t > 0) & (t < 1) & (reach < 1)
        certain = (np.abs(reach - 1) > 1e-4) & ((np.abs(value - 0.5) > MARGIN) | ~crossed)
        # Those that start on the leaf meet it nowhere else.
        return crossed & (value >= 0.5), certain & (np.abs(origin[:, 2]) > 1e-3)

    def check(found: Any, origin: Any, end: Any) -> None:
        wanted, certain = stopped(origin, end)
        np.testing.assert_array_equal(found[certain], wanted[certain])
        assert wanted[certain].sum() > 30 and (~wanted & certain).sum() > 30

    camera = scene.camera
    tangent = np.tan(camera.y_fov / 2)
    x = ((np.arange(SIZE[0]) + 0.5) / SIZE[0] * 2 - 1) * tangent * SIZE[0] / SIZE[1]
    y = (1 - (np.arange(SIZE[1]) + 0.5) / SIZE[1] * 2) * tangent
    way = np.stack(np.broadcast_arrays(x[None], y[:, None], -1.0), -1).reshape(-1, 3)
    way = way @ camera.transform[:3, :3].T
    eye = np.broadcast_to(camera.position, way.shape)
    check(names[drawn.aov("object")].reshape(-1) == "leaf", eye, eye + 100 * way)

    rays, lit = drawn.shadows
    check(~lit, rays["origin"].astype(float), drawn.light_points(rays))
    rays, hits = drawn.reflections
    origin = rays["origin"].astype(float)
    found = names[np.where(hits["object"] == MISS_ID, -1, hits["object"].astype(int))]
    check(found == "leaf", origin, origin + 100.0 * rays["direction"])
    assert drawn.stats.valid
