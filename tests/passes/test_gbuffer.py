"""The G-buffer: rasterised and ray-traced visibility agree, and it holds what the scene says."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from passes.gbuffer import DrawList

# Both see the same triangle from the same float32 vertices, through different arithmetic.
DEPTH_TOLERANCE = 1e-4  # of the depth
NORMAL_TOLERANCE = 2e-3  # octahedral codes have 16 bits; interpolated normals differ by rounding
EDGE_PIXELS = 0.01  # part of the picture whose visible triangle may differ


def near_an_edge(ids: Any) -> Any:
    """Pixels with a neighbour (or themselves) that sees another triangle."""
    padded = np.pad(ids, ((1, 1), (1, 1), (0, 0)), mode="edge")
    differs = np.zeros(ids.shape[:2], bool)
    for y in range(3):
        for x in range(3):
            moved = padded[y : y + ids.shape[0], x : x + ids.shape[1]]
            differs |= (moved != ids).any(-1)
    return differs


def compare(raster: Any, rays: Any, edge_pixels: float = EDGE_PIXELS) -> None:
    ids = [np.stack([d.aov("object"), d.aov("primitive")], -1) for d in (raster, rays)]
    other = (ids[0] != ids[1]).any(-1)
    assert other.mean() <= edge_pixels, other.sum()
    assert (near_an_edge(ids[0]) | near_an_edge(ids[1]))[other].all()
    seen = ~other & (ids[0][..., 0] >= 0)
    assert seen.any()
    depth = [d.aov("depth") for d in (raster, rays)]
    assert (depth[0][seen] > 0).all()
    assert np.isinf(depth[0][ids[0][..., 0] < 0]).all()
    np.testing.assert_allclose(depth[0][seen], depth[1][seen], rtol=DEPTH_TOLERANCE)
    normal = [d.aov("normal") for d in (raster, rays)]
    assert np.abs(normal[0] - normal[1])[seen].max() < NORMAL_TOLERANCE
    for name in ("roughness", "metalness", "base_color"):
        values = [d.aov(name)[seen] for d in (raster, rays)]
        # One step of 8 bits, or a texel's edge that a rounding moves.
        close = np.abs(values[0] - values[1]) < 0.02
        assert close.mean() > 0.995, name
    assert (raster.aov("material") == rays.aov("material"))[seen].all()


def test_raster_and_rays_agree_in_a_room(draw: Any, room: Any) -> None:
    raster, rays = (draw(room, 121, 83, gbuffer=g) for g in ("raster", "rays"))
    compare(raster, rays)
    # Every object of the scene is in the picture, so each kind was compared.
    assert set(np.unique(raster.aov("object"))) >= set(range(len(room.scene.instances)))


def test_raster_and_rays_agree_in_the_hall(draw: Any, hall: Any) -> None:
    raster, rays = (draw(hall, 160, 90, gbuffer=g) for g in ("raster", "rays"))
    # Thousands of triangles are smaller than a pixel here.
    compare(raster, rays, 0.03)


@pytest.mark.parametrize("gbuffer", ["raster", "rays"])
@pytest.mark.parametrize("size", [(40, 20), (20, 40), (1, 1), (17, 9)])
def test_depth_and_normal_of_a_plane_by_hand(
    kit: Any, draw: Any, size: tuple[int, int], gbuffer: str
) -> None:
    width, height = size
    plane = kit.quad((-50, -50, -8), (100, 0, 0), (0, 100, 10))
    drawn = draw(kit.scene([plane], eye=(0, 0, 2), y_fov=0.8), width, height, gbuffer=gbuffer)
    tangent = np.tan(0.4)
    x = (((np.arange(width) + 0.5) / width) * 2 - 1) * tangent * width / height
    y = (1 - ((np.arange(height) + 0.5) / height) * 2) * tangent
    point = np.array([0.0, -50.0, -8.0])
    normal = np.array([0.0, -0.1, 1.0]) / np.hypot(0.1, 1.0)
    direction = np.stack(np.broadcast_arrays(x[None], y[:, None], -1.0), -1)
    depth = ((point - [0, 0, 2]) @ normal) / (direction @ normal)
    np.testing.assert_allclose(drawn.aov("depth"), depth, rtol=1e-5)
    # The plane comes nearer towards +Y, which is the first row's side.
    assert (np.diff(drawn.aov("depth")[:, 0]) > 0).all()
    np.testing.assert_allclose(
        drawn.aov("normal"), np.broadcast_to(normal, (height, width, 3)), atol=1e-4
    )


def test_what_is_close_to_the_eye_is_seen_by_both(kit: Any, draw: Any) -> None:
    near = kit.quad((-0.0003, -0.0003, 4.998), (0.0006, 0, 0), (0, 0.0006, 0))
    wall = kit.quad((-9, -9, 0), (18, 0, 0), (0, 18, 0))
    for gbuffer in ("raster", "rays"):
        drawn = draw(kit.scene([near, wall]), 16, 16, gbuffer=gbuffer)
        assert (drawn.aov("object") == 0).any() and (drawn.aov("object") == 1).any()
        depth = drawn.aov("depth")[drawn.aov("object") == 0]
        np.testing.assert_allclose(depth, 0.002, rtol=1e-3)


def test_materials_are_as_declared(kit: Any, draw: Any) -> None:
    kind = kit.grey(base_color=(0.25, 0.5, 1.0, 1.0), metallic=0.4, roughness=0.2)
    plane = kit.quad((-9, -9, 0), (9, 0, 0), (0, 18, 0), 1)
    drawn = draw(kit.scene([plane], [kit.grey(), kind]), 16, 16)
    left = drawn.aov("object") == 0
    assert left[:, :8].all() and not left[:, 8:].any()
    assert np.allclose(drawn.aov("roughness")[left], 0.2, atol=0.002)
    assert np.allclose(drawn.aov("metalness")[left], 0.4, atol=0.002)
    assert np.allclose(drawn.aov("base_color")[left], [0.25, 0.5, 1.0], atol=0.004)
    assert (drawn.aov("material")[left] == 1).all() and (drawn.aov("material")[~left] == -1).all()
    assert np.isinf(drawn.aov("depth")[~left]).all()


@pytest.mark.parametrize("name", ["wrong", "nodes/wrong"])
def test_an_unknown_aov_lists_what_there_is(kit: Any, draw: Any, name: str) -> None:
    from engine.gpu.errors import UserError

    drawn = draw(kit.scene([kit.quad((0, 0, 0), (1, 0, 0), (0, 1, 0))]), 4, 4)
    with pytest.raises(UserError, match=f"unknown aov '{name}', there are .*nodes/reflection"):
        drawn.aov(name)


def test_copies_of_a_mesh_are_one_draw(hall: Any) -> None:
    draws = DrawList(SimpleNamespace(prepared=hall), 0xFF)
    whole, objects = list(draws.instanced()), draws.objects()
    table = hall.pack.objects
    assert sorted(objects.tolist()) == np.flatnonzero(table["triangle_count"]).tolist()
    assert max(draw.copies for draw in whole) > 10 and len(whole) < len(objects) / 2
    assert [draw.at for draw in whole] == np.cumsum([0, *(d.copies for d in whole)])[:-1].tolist()
    for draw in whole:
        mine = table[objects[draw.at : draw.at + draw.copies]]
        assert (mine["first_triangle"] == draw.first).all()
        assert (mine["triangle_count"] == draw.triangles).all()
