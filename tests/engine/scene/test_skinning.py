"""The skinning stage against its twin and against skinning in double precision."""

from typing import Any

import numpy as np
import pytest

from engine.scene.animation import Animation, Skin, SkinnedMesh
from engine.scene.mesh import unit_rows
from engine.scene.records import NO_STORED_NORMAL, VERTEX
from engine.scene.skin import blend_matrices, skin_normals, skin_positions, unit_weights
from engine.scene.skinning import GpuSkinning, SkinTable, make_skin_table, skin
from engine.scene.upload import decode_normals

WORDS = VERTEX.size // 4


def _animation(rng: np.random.Generator, sizes: list[tuple[int, int]]) -> Animation:
    """Skinned meshes of `(vertices, influences)` over three joints each, no clips."""
    skins, meshes = [], []
    for number, (count, width) in enumerate(sizes):
        skins.append(Skin(np.arange(3) + 3 * number, rng.normal(size=(3, 4, 4))))
        weights = unit_weights(rng.random((count, width)) * (rng.random((count, width)) > 0.4))
        normals = unit_rows(rng.normal(size=(count, 3)), count)
        normals[::5] = 0
        joints = rng.integers(0, 3, (count, width))
        positions = rng.normal(size=(count, 3)).astype(np.float32)
        meshes.append(SkinnedMesh(number, number, positions, normals, joints, weights))
    for found in skins:
        found.inverse_bind[:, 3] = [0, 0, 0, 1]
    nodes = 3 * len(sizes)
    return Animation(
        np.full(nodes, -1),
        rng.normal(size=(nodes, 3)),
        rng.normal(size=(nodes, 4)),
        1 + rng.random((nodes, 3)),
        {},
        (),
        tuple(skins),
        tuple(meshes),
        (),
    )


def _both(device: Any, table: SkinTable, matrices: Any, skip: int, records: int) -> tuple[Any, Any]:
    before = np.arange(skip + WORDS * records + 3, dtype=np.uint32)
    stage = GpuSkinning(device, table, vertex_first=skip)
    stage.pose(matrices, {})
    buffer = device.upload("vertices", before)
    encoder = device.wgpu.create_command_encoder()
    scope = encoder.begin_compute_pass()
    stage.encode(scope, {"vertices": buffer})
    scope.end()
    device.wgpu.queue.submit([encoder.finish()])
    expected = before.copy()
    skin(
        stage.parameters(skip),
        table.bind_vertices,
        table.influences,
        matrices,
        expected,
    )
    return device.read(buffer, count=len(before)), expected


@pytest.mark.parametrize("sizes", [[(1, 4)], [(257, 4)], [(300, 8), (5, 4), (770, 1)]])
def test_equals_the_twin_and_double_precision(device: Any, rng: Any, sizes: Any) -> None:
    animation = _animation(rng, sizes)
    firsts = np.cumsum([2] + [count + 3 for count, _ in sizes])  # gaps between the meshes
    offsets = rng.normal(size=(len(sizes), 3))
    table = make_skin_table(animation, firsts[:-1].tolist(), offsets=list(offsets))
    worlds = animation.worlds()
    matrices = table.matrices(animation, worlds)
    got, expected = _both(device, table, matrices, 5, int(firsts[-1]))
    records = got[5:-3].reshape(-1, WORDS)
    twin = expected[5:-3].reshape(-1, WORDS)
    normals = np.zeros(len(records), bool)
    for mesh, first, offset in zip(animation.skinned, firsts, offsets, strict=False):
        rows = slice(first, first + len(mesh.positions))
        normals[rows] = True
        joints = animation.joint_matrices(mesh.skin, worlds)
        blended = blend_matrices(joints, mesh.joints, mesh.weights)
        posed = skin_positions(mesh.positions, blended) - offset
        single = records[rows, :3].copy().view(np.float32)
        np.testing.assert_allclose(single, posed, atol=2e-5)
        exact = unit_rows(skin_normals(mesh.normals, blended), len(posed))
        stored = np.abs(exact).sum(axis=1) > 0
        assert ((records[rows, 3] == NO_STORED_NORMAL) == ~stored).all()
        close = decode_normals(records[rows, 3].copy())[stored]
        assert (np.einsum("ij,ij->i", close, exact[stored]) > 1 - 1e-6).all()
    # Nothing but positions and normals of the targets is written.
    untouched = np.ones(len(got), bool)
    touched = untouched[5:-3].reshape(-1, WORDS)
    touched[normals, :4] = False
    assert (got[untouched] == np.arange(len(got))[untouched]).all()
    assert (records[:, :3] == twin[:, :3]).all()
    codes = [
        np.ascontiguousarray(r[normals, 3]).view(np.int16).astype(int) for r in (records, twin)
    ]
    assert np.abs(codes[0] - codes[1]).max() <= 1


def test_flattened_joint_and_empty_table(device: Any, rng: Any) -> None:
    animation = _animation(rng, [(40, 2)])
    table = make_skin_table(animation, [0])
    matrices = np.zeros((3, 3, 4), np.float32)
    matrices[:, 0, 3] = 7
    got, expected = _both(device, table, matrices, 0, 40)
    assert (got == expected).all()
    records = got[:-3].reshape(-1, WORDS)
    assert (records[:, 3] == NO_STORED_NORMAL).all()
    np.testing.assert_allclose(records[:, 0].copy().view(np.float32), 7, rtol=1e-6)
    # Along the axes, where a component is exactly zero: the folded half has one code, too.
    table.bind_vertices["normal"][:6] = np.concatenate([np.eye(3), -np.eye(3)])
    matrices[:, :, :3] = np.eye(3)
    got, expected = _both(device, table, matrices, 0, 40)
    assert (got == expected).all()
    axes = decode_normals(got[:48].reshape(6, WORDS)[:, 3].copy())
    np.testing.assert_allclose(axes, table.bind_vertices["normal"][:6], atol=1e-4)
    nothing = make_skin_table(_animation(rng, []), [])
    before = np.arange(16, dtype=np.uint32)
    stage = GpuSkinning(device, nothing)
    buffer = device.upload("vertices", before)
    encoder = device.wgpu.create_command_encoder()
    scope = encoder.begin_compute_pass()
    stage.encode(scope, {"vertices": buffer})
    scope.end()
    device.wgpu.queue.submit([encoder.finish()])
    assert (device.read(buffer) == before).all()


def test_alike_are_vertices_of_one_place_and_one_influence(rng: Any) -> None:
    animation = _animation(rng, [(6, 2)])
    mesh = animation.skinned[0]
    for row, same in ((1, 0), (4, 2)):
        mesh.positions[row] = mesh.positions[same]
        mesh.joints[row], mesh.weights[row] = mesh.joints[same], mesh.weights[same]
    mesh.positions[5], mesh.joints[5] = mesh.positions[3], mesh.joints[3]
    mesh.weights[3], mesh.weights[5] = [0.5, 0.5], [0.25, 0.75]
    numbers = make_skin_table(animation, [2]).alike(10)
    assert numbers[3] == numbers[2] and numbers[6] == numbers[4] and numbers[7] != numbers[5]
    assert len(np.unique(numbers)) == 8
