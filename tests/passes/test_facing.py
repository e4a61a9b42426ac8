"""Normals are turned towards the ray: files hold windings and stored normals that face either
way, and the picture must not depend on it."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest


def changed(scene: Any, winding: bool, normals: bool) -> Any:
    meshes = []
    for mesh in scene.meshes:
        triangles = mesh.triangles[:, [0, 2, 1]] if winding else mesh.triangles
        meshes.append(
            replace(
                mesh,
                triangles=np.ascontiguousarray(triangles),
                normals=-mesh.normals if normals else mesh.normals,
            )
        )
    return replace(scene, meshes=tuple(meshes))


@pytest.mark.parametrize(
    "winding,normals",
    [(True, True), (True, False), (False, True)],
    ids=["both", "winding", "normals"],
)
def test_reversed_windings_and_normals_give_the_same_picture(
    kit: Any, draw: Any, winding: bool, normals: bool
) -> None:
    scene = kit.room()
    plain = draw(scene, 80, 60)
    other = draw(changed(scene, winding, normals), 80, 60)
    assert np.abs(plain.aov("normal") - other.aov("normal")).max() < 2e-3
    assert plain.stats.rays["reflection"].rays == other.stats.rays["reflection"].rays
    # Weights of two exchanged vertices round differently: a texel or an edge may flip.
    close = np.isclose(plain.radiance, other.radiance, rtol=2e-2, atol=2e-3).all(-1)
    assert close.mean() > 0.99, close.mean()
    counts = [d.stats.rays["shadow"].rays for d in (plain, other)]
    assert abs(counts[0] - counts[1]) <= 0.003 * counts[0]
    # The picture is not black: it is lit by the lamp and the sky.
    assert plain.radiance.mean() > 0.2


@pytest.mark.parametrize("gbuffer", ["raster", "rays"])
def test_normals_face_the_viewer(draw: Any, room: Any, gbuffer: str) -> None:
    from engine.scene.upload import decode_normals

    drawn = draw(room, 80, 60, gbuffer=gbuffer)
    camera = room.scene.camera
    covered = drawn.aov("object") >= 0
    tangent = np.tan(camera.y_fov / 2)
    x = ((np.arange(80) + 0.5) / 80 * 2 - 1) * tangent * 80 / 60
    y = (1 - (np.arange(60) + 0.5) / 60 * 2) * tangent
    rays = np.stack(np.broadcast_arrays(x[None, :], y[:, None], -1.0), -1)
    rays = rays @ camera.transform[:3, :3].T
    rays /= np.linalg.norm(rays, axis=-1, keepdims=True)
    surface = drawn.frame.data.read_texture("surface")
    geometric = decode_normals(np.ascontiguousarray(surface[..., 1]).reshape(-1))
    geometric = geometric.reshape(60, 80, 3)
    shading = drawn.aov("normal")
    for normal in (geometric, shading):
        np.testing.assert_allclose(np.linalg.norm(normal[covered], axis=-1), 1, atol=1e-5)
        assert ((normal * rays).sum(-1)[covered] < 1e-4).all()
    assert ((geometric * shading).sum(-1)[covered] > -1e-3).all()


def test_a_single_sheet_is_lit_from_both_sides(kit: Any, draw: Any) -> None:
    sheet = kit.quad((-9, 0, 9), (18, 0, 0), (0, 0, -18))
    lit = []
    for side in (1, -1):
        scene = kit.scene(
            [sheet],
            eye=(0, side * 3, 3),
            light=kit.lamp((0, side * 4, 0), 0.5, (0, -side, 0), (9, 9, 9)),
        )
        drawn = draw(scene, 24, 24, samples=4)
        assert drawn.shadows[1].all()
        lit.append(drawn.radiance.mean())
    assert lit[0] > 0.05 and lit[0] == pytest.approx(lit[1], rel=0.02)


def test_a_mirrored_instance_looks_like_the_mirrored_mesh(kit: Any, draw: Any) -> None:
    from engine.scene.scene import Instance

    ball = kit.sphere((0.4, 0.1, 0.0), 1.0, 0, rings=8)
    flipped = replace(
        ball,
        positions=ball.positions * np.float32([-1, 1, 1]),
        normals=ball.normals * np.float32([-1, 1, 1]),
        triangles=np.ascontiguousarray(ball.triangles[:, [0, 2, 1]]),
    )
    light = kit.lamp((2, 3, 3), 0.1, (-2, -3, -3), (30, 30, 30))
    kinds = [kit.grey(roughness=0.3)]
    by_matrix = kit.scene(
        [ball],
        kinds,
        light=light,
        sky=(0.2, 0.3, 0.4),
        instances=[Instance("b", 0, np.diag([-1.0, 1, 1, 1]), lifetime="deforming")],
    )
    by_vertices = kit.scene([flipped], kinds, light=light, sky=(0.2, 0.3, 0.4))
    pictures = [draw(s, 48, 48).radiance for s in (by_matrix, by_vertices)]
    close = np.isclose(*pictures, rtol=2e-2, atol=2e-3).all(-1)
    assert close.mean() > 0.99 and pictures[0].max() > 0.3
