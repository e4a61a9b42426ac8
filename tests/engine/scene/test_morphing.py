"""The morphing stage against its twin and against double precision, and skinning behind it."""

from typing import Any

import numpy as np
import pytest

from engine.gpu.errors import LimitError
from engine.scene.animation import Animation, Skin, SkinnedMesh
from engine.scene.mesh import unit_rows
from engine.scene.morph import MorphTargets, morphed
from engine.scene.morphing import GpuMorphing, morph
from engine.scene.records import VERTEX
from engine.scene.skinning import GpuSkinning, SkinTable, make_skin_table, skin

WORDS = VERTEX.size // 4


def _animation(rng: Any, sizes: list[tuple[int, int]]) -> Animation:
    """Meshes of `(vertices, targets)`, each on a node of its own."""
    meshes = []
    for node, (count, targets) in enumerate(sizes):
        shape = (targets, count, 3)
        moves, turns = (rng.normal(size=shape).astype(np.float32) for _ in range(2))
        moves[:, ::4] = 0
        normals = unit_rows(rng.normal(size=(count, 3)), count)
        positions = rng.normal(size=(count, 3)).astype(np.float32)
        influences = np.zeros((count, 1), np.int64), np.ones((count, 1))
        targeted = MorphTargets(node, moves, turns) if targets else None
        meshes.append(SkinnedMesh(node, node, positions, normals, *influences, targeted))
    nodes = len(sizes)
    return Animation(
        np.full(nodes, -1),
        rng.normal(size=(nodes, 3)),
        rng.normal(size=(nodes, 4)),
        1 + rng.random((nodes, 3)),
        {},
        (),
        tuple(Skin(np.array([node]), np.eye(4)[None]) for node in range(nodes)),
        tuple(meshes),
        (),
        {i: rng.normal(size=targets) * 2 for i, (_, targets) in enumerate(sizes) if targets},
    )


def _run(device: Any, encode: Any) -> None:
    encoder = device.wgpu.create_command_encoder()
    scope = encoder.begin_compute_pass()
    encode(scope)
    scope.end()
    device.wgpu.queue.submit([encoder.finish()])


def _morphed(table: SkinTable, weights: Any) -> Any:
    """The bind vertices, by the twin."""
    assert table.morph is not None
    t, bound = table.morph, table.bind_vertices.copy()
    parameters = np.array([(len(t.vertices), 0)], [("count", "u4"), ("zero", "u4")])
    morph(parameters, t.vertices, t.meshes, t.displacements, t.weights(weights), bound)
    return bound


@pytest.mark.parametrize("sizes", [[(1, 1)], [(300, 5), (7, 0), (261, 2)]])
def test_equals_the_twin_and_double_precision(device: Any, rng: Any, sizes: Any) -> None:
    animation = _animation(rng, sizes)
    firsts = np.cumsum([0] + [count for count, _ in sizes])
    table = make_skin_table(animation, firsts[:-1].tolist())
    assert table.morph is not None
    for weights in (animation.weights, {k: 0 * w for k, w in animation.weights.items()}):
        bound = device.upload("bound", table.bind_vertices)
        stage = GpuMorphing(device, table.morph, bound)
        stage.pose(weights)
        _run(device, stage.encode)
        got = device.read(bound).view(table.bind_vertices.dtype)[: firsts[-1]]
        assert got.tobytes() == _morphed(table, weights).tobytes()
        if not any(w.any() for w in weights.values()):
            assert got.tobytes() == table.bind_vertices.tobytes()
        for mesh, first in zip(animation.skinned, firsts, strict=False):
            part = got[first : first + len(mesh.positions)]
            for key, base in (("position", mesh.positions), ("normal", mesh.normals)):
                exact = base.astype(float)
                if mesh.morph is not None:
                    mix = weights[mesh.morph.node]
                    moves = mesh.morph.positions if key == "position" else mesh.morph.normals
                    exact = morphed(base, moves, mix)
                    by_hand = base + np.einsum("k,kvi->vi", mix, moves.astype(float))
                    np.testing.assert_allclose(exact, by_hand, atol=1e-12)
                np.testing.assert_allclose(part[key], exact, atol=1e-5)


def test_skinning_follows_pose_after_pose(device: Any, rng: Any) -> None:
    """A pose forgets the one before."""
    animation = _animation(rng, [(40, 3), (30, 0)])
    table = make_skin_table(animation, [0, 40])
    matrices = table.matrices(animation, animation.worlds())
    stage = GpuSkinning(device, table)
    buffer = device.buffer("vertices", VERTEX.size * 70)
    for weights in ({0: rng.normal(size=3)}, animation.weights, {0: np.zeros(3)}):
        stage.pose(matrices, weights)
        _run(device, lambda scope: stage.encode(scope, {"vertices": buffer}))
        expected = np.zeros(WORDS * 70, np.uint32)
        bound = _morphed(table, weights)
        skin(stage.parameters(0), bound, table.influences, matrices, expected)
        got = device.read(buffer, count=len(expected)).reshape(-1, WORDS)
        assert (got[:, :3] == expected.reshape(-1, WORDS)[:, :3]).all()


def test_alike_are_vertices_of_equal_displacements(rng: Any) -> None:
    animation = _animation(rng, [(6, 2), (6, 2)])
    one, other = animation.skinned
    assert one.morph is not None and other.morph is not None
    one.positions[:] = one.positions[0]
    other.positions[:] = one.positions[0]
    for mesh in (one, other):
        mesh.morph.positions[:] = 0
        mesh.morph.positions[:, 3:5] = [[[1, 2, 3]], [[0, 0, 5]]]
        mesh.morph.positions[1, 5] = [0, 0, 5]
    one.morph.positions[0, 2] = -0.0
    numbers = make_skin_table(animation, [0, 6]).alike(13)
    first, second = numbers[:6], numbers[6:12]
    # Nothing displaces 0 to 2; 3 and 4 go one way, 5 another.
    assert len(set(first[:3])) == 1 and first[3] == first[4]
    assert len({*first}) == 3 and not {*first} & {*second}  # nor are two joints one
    # On one joint, what is displaced by other weights still parts.
    table = make_skin_table(animation, [0, 6])
    table.influences[:] = table.influences[0]
    numbers = table.alike(13)
    assert numbers[6] == numbers[0] and numbers[9] != numbers[3] and numbers[11] != numbers[5]


def test_what_is_too_large_is_refused_by_name(device: Any, rng: Any, monkeypatch: Any) -> None:
    table = make_skin_table(_animation(rng, [(40, 3)]), [0])
    assert table.morph is not None
    bound = device.upload("bound", table.bind_vertices)
    limits = {**device.limits, "max-storage-buffer-binding-size": 24 * 40 * 3 - 16}
    monkeypatch.setattr(device, "limits", limits)
    with pytest.raises(LimitError, match="morph/targets needs 2,880 bytes"):
        GpuMorphing(device, table.morph, bound)
