"""Morph targets of files: read, mixed by weights at rest and by clips, then skinned."""

from typing import Any

import numpy as np
import pytest

from engine.gpu.errors import UserError
from engine.scene import gltf_morph
from engine.scene.animation import compose
from engine.scene.load import load_scene
from engine.scene.mesh import unit_rows
from engine.scene.pose import posed

MOVES = np.array([[[0, 0, 1]] * 3, [[0.5, 0, 0], [0, -0.25, 0], [1, 1, 0]]], np.float32)
TURNS = np.array([[[0, 1, 0]] * 3, [[-1, 0, 0], [0, 0, 0], [0, 0, 2]]], np.float32)
NORMALS = np.array([[0, 0, 1], [0, 0, 0], [0.6, 0, 0.8]], np.float32)
KEYS = np.array([[0, 0], [0.5, -1], [1, 2]], np.float32)
TIMES = np.array([0.0, 0.5, 2.0], np.float32)


def _targets(glb: Any) -> list[dict[str, int]]:
    return [
        {"POSITION": glb.accessor(moves), "NORMAL": glb.accessor(turns)}
        for moves, turns in zip(MOVES, TURNS, strict=True)
    ]


def _mesh(glb: Any, corners: Any, weights: Any = None, **attributes: int) -> int:
    primitive = glb.primitive(corners, NORMAL=glb.accessor(NORMALS), **attributes)
    primitive["targets"] = _targets(glb)
    extra = {} if weights is None else {"weights": weights}
    return int(glb.mesh(primitive, name="face", **extra))


def _clip(glb: Any, node: int, path: str = "weights", values: Any = KEYS, **sampler: Any) -> None:
    keys = np.asarray(values)
    output = glb.accessor(keys.reshape(-1) if path == "weights" else keys)
    item = {"input": glb.accessor(TIMES), "output": output, **sampler}
    target = {"node": node, "path": path}
    glb.add(
        "animations",
        {"name": "talk", "samplers": [item], "channels": [{"sampler": 0, "target": target}]},
    )


def _mixed(corners: Any, weights: Any) -> tuple[Any, Any]:
    """By hand; no target gives a direction to a normal that is not stored."""
    positions = corners + np.tensordot(weights, MOVES, 1)
    normals = NORMALS + np.tensordot(weights, TURNS, 1)
    normals[1] = 0
    return positions, unit_rows(normals, 3)


# -- at rest -------------------------------------------------------------------------------------


@pytest.mark.parametrize("weights", [[1.0, 0.0], [0.0, 1.0], [-0.5, 2.5]])
def test_weights_of_mesh_and_node_are_applied(
    glb: Any, write: Any, corners: Any, weights: Any
) -> None:
    mesh = _mesh(glb, corners, weights)
    glb.node(mesh=mesh, name="a", translation=[1, 0, 0])
    glb.node(mesh=mesh, name="b")
    glb.node(mesh=mesh, name="c", weights=[0.25, 0.75])
    glb.node(mesh=_mesh(glb, corners), name="d")
    scene = load_scene(write(glb))
    assert scene.animation is None and not scene.notes
    assert [i.lifetime for i in scene.instances] == ["static"] * 4
    a, b, c, d = (scene.meshes[i.mesh] for i in scene.instances)
    assert a is b and a is not c
    for mesh, mix in ((a, weights), (c, [0.25, 0.75]), (d, [0, 0])):
        positions, normals = _mixed(corners, mix)
        np.testing.assert_allclose(mesh.positions, positions, atol=1e-7)
        np.testing.assert_allclose(mesh.normals, normals, atol=1e-6)


def test_weights_of_zero_change_no_bit(glb: Any, write: Any, corners: Any) -> None:
    corners[0] = -0.0
    glb.node(mesh=_mesh(glb, corners, [0, 0]))
    _clip(glb, 0)
    glb.node(mesh=glb.mesh(glb.primitive(corners, NORMAL=glb.accessor(NORMALS))))
    scene = load_scene(write(glb))
    assert scene.animation is not None
    still = posed(scene, scene.animation.clip(), 0.0)
    plain = scene.meshes[1]
    (base,) = scene.animation.skinned
    assert base.positions.tobytes() == plain.positions.tobytes()
    for mesh in (scene.meshes[0], still.meshes[0]):
        assert (mesh.positions == plain.positions).all()
        assert mesh.normals.tobytes() == plain.normals.tobytes()


def test_quantised_and_sparse_targets(glb: Any, write: Any, corners: Any) -> None:
    primitive = glb.primitive(corners)
    short = glb.accessor(np.array([[0, 0, 127], [127, 0, 0], [0, -127, 0]]), "i1", normalized=True)
    sparse = glb.add(
        "accessors",
        {
            "componentType": 5126,
            "type": "VEC3",
            "count": 3,
            "sparse": {
                "count": 1,
                "indices": {"bufferView": glb.view(b"\x02"), "componentType": 5121},
                "values": {"bufferView": glb.view(np.float32([4, 5, 6]).tobytes())},
            },
        },
    )
    primitive["targets"] = [{"POSITION": short}, {"POSITION": sparse}]
    glb.node(mesh=glb.mesh(primitive, weights=[0.5, 2]))
    (mesh,) = load_scene(write(glb)).meshes
    moves = np.array([[0, 0, 0.5], [0.5, 0, 0], [8, 9.5, 12]])
    np.testing.assert_allclose(mesh.positions, corners + moves, atol=1e-6)
    assert not mesh.normals.any()


# -- by clips ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["STEP", "LINEAR", "CUBICSPLINE"])
def test_clips_change_weights(glb: Any, write: Any, corners: Any, kind: str) -> None:
    """A scaled, moving node: morphed in its own space, then placed."""
    glb.node(mesh=_mesh(glb, corners, [0.5, 0.5]), scale=[2, 1, 1], name="face")
    values = KEYS if kind != "CUBICSPLINE" else np.stack([KEYS + 7, KEYS, KEYS - 5], axis=1)
    _clip(glb, 0, values=values, interpolation=kind)
    _clip(glb, 0, "translation", [[0, 0, 0], [0, 3, 0], [0, 3, 1]])
    scene = load_scene(write(glb))
    assert scene.animation is not None and not scene.notes
    assert [i.lifetime for i in scene.instances] == ["deforming"]
    clip, other = scene.animation.clips
    assert scene.animation.moving_instances(clip) == ()
    size = compose(np.zeros((1, 3)), np.array([[0, 0, 0, 1.0]]), np.array([[2.0, 1, 1]]))[0, :3, :3]

    def check(mesh: Any, weights: Any, move: Any = (0, 0, 0)) -> None:
        positions, normals = _mixed(corners, weights)
        np.testing.assert_allclose(mesh.positions, positions @ size + move, atol=1e-6)
        there = unit_rows(normals @ np.linalg.inv(size), 3)
        np.testing.assert_allclose(mesh.normals, there, atol=1e-6)

    check(scene.meshes[0], [0.5, 0.5])
    check(posed(scene, other, 0.5).meshes[0], [0.5, 0.5], (0, 3, 0))
    for time in (0.0, 0.2, 0.5, 1.1, 2.0):
        first, at = (0, time / 0.5) if time < 0.5 else (1, (time - 0.5) / 1.5)
        a, b = KEYS[first].astype(float), KEYS[first + 1].astype(float)
        mix = (1 - at) * a + at * b
        if kind == "STEP":
            mix = b if at == 1 else a
        elif kind == "CUBICSPLINE":
            span = 1.5 if first else 0.5
            basis = np.array([2 * at**3 - 3 * at**2 + 1, at**3 - 2 * at**2 + at])
            ends = np.array([3 * at**2 - 2 * at**3, at**3 - at**2])
            mix = basis @ [a, span * (a - 5)] + ends @ [b, span * (b + 7)]
        check(posed(scene, clip, time).meshes[0], mix)


def test_quantised_weights(glb: Any, write: Any, corners: Any) -> None:
    glb.node(mesh=_mesh(glb, corners))
    _clip(glb, 0)
    keys = np.array([0, 0, 255, 0, 0, 51])
    glb.json["animations"][0]["samplers"][0]["output"] = glb.accessor(keys, "u1", normalized=True)
    animation = load_scene(write(glb)).animation
    assert animation is not None
    for time, mix in ((0.0, [0, 0]), (0.5, [1, 0]), (2.0, [0, 0.2])):
        np.testing.assert_allclose(animation.morph_weights(animation.clip(), time)[0], mix)
    np.testing.assert_allclose(animation.morph_weights()[0], [0, 0])


@pytest.mark.parametrize("animated", [False, True])
def test_morphed_first_then_skinned(glb: Any, write: Any, corners: Any, animated: bool) -> None:
    skinned = {
        "JOINTS_0": glb.accessor([[0, 1, 0, 0]] * 3, "u1"),
        "WEIGHTS_0": glb.accessor([[1, 0, 0, 0], [0, 1, 0, 0], [0.5, 0.5, 0, 0]]),
    }
    mesh = _mesh(glb, corners, [0.5, 2.0], **skinned)
    turned = [0, 0, np.sin(np.pi / 4), np.cos(np.pi / 4)]
    glb.node(name="low")
    glb.node(name="high", rotation=turned, translation=[0, 0, 1])
    glb.add("skins", {"joints": [0, 1]})
    glb.node(mesh=mesh, skin=0, translation=[9, 9, 9])  # its node does not matter
    if animated:
        _clip(glb, 2)
    scene = load_scene(write(glb))
    assert scene.animation is not None and len(scene.animation.skins) == 1
    high = np.array([[0, -1, 0, 0], [1, 0, 0, 0], [0, 0, 1, 1], [0, 0, 0, 1.0]])
    joints = np.stack([np.eye(4), high, 0.5 * (np.eye(4) + high)])

    def check(mesh: Any, weights: Any) -> None:
        positions, normals = _mixed(corners, weights)
        there = np.einsum("vij,vj->vi", joints[:, :3, :3], positions) + joints[:, :3, 3]
        np.testing.assert_allclose(mesh.positions, there, atol=1e-6)
        turned = np.einsum("vij,vj->vi", np.linalg.inv(joints[:, :3, :3]).swapaxes(1, 2), normals)
        np.testing.assert_allclose(mesh.normals, unit_rows(turned, 3), atol=1e-6)

    check(scene.meshes[0], [0.5, 2.0])
    assert (scene.animation.skinned[0].morph is not None) == animated
    if animated:
        check(posed(scene, scene.animation.clip(), 0.25).meshes[0], [0.25, -0.5])


def test_morphed_nodes_beside_a_skin(glb: Any, write: Any, corners: Any) -> None:
    """Each hangs on its own node, with its own weights."""
    glb.node(mesh=_mesh(glb, corners), translation=[1, 0, 0])
    glb.node(mesh=0, translation=[2, 0, 0], weights=[0, 1])
    _clip(glb, 0)
    _clip(glb, 1, values=KEYS[::-1])
    glb.node(name="joint", translation=[7, 7, 7])
    glb.add("skins", {"joints": [2]})
    skinned = {
        "JOINTS_0": glb.accessor([[0, 0, 0, 0]] * 3, "u1"),
        "WEIGHTS_0": glb.accessor([[1, 0, 0, 0]] * 3),
    }
    glb.node(mesh=_mesh(glb, corners, **skinned), skin=0)
    scene = load_scene(write(glb))
    assert scene.animation is not None
    first, second = scene.animation.clips
    mixes = (([0, 0], [0, 1]), ([1, 2], [0, 1]), ([0, 0], [0, 0]))
    shown = (scene, posed(scene, first, 2.0), posed(scene, second, 2.0))
    for pose, (a, b) in zip(shown, mixes, strict=True):
        for mesh, mix, move in zip(pose.meshes, (a, b, [0, 0]), (1, 2, 7), strict=True):
            there = _mixed(corners, mix)[0] + (np.full(3, 7) if move == 7 else [move, 0, 0])
            np.testing.assert_allclose(mesh.positions, there, atol=1e-6)


def test_copies_in_a_scene_file(glb: Any, corners: Any, tmp_path: Any) -> None:
    glb.node(name="root", children=[1], translation=[0, 1, 0])
    glb.node(root=False, name="face", mesh=_mesh(glb, corners, [3, 3]))
    _clip(glb, 1)
    (tmp_path / "face.glb").write_bytes(glb.data())
    (tmp_path / "scene.toml").write_text(
        '[files]\nf = "face.glb"\n[[objects]]\nfile = "f"\nclip = "talk"\nstart = 0.25\n'
        "instances = [{translation = [0, 0, 0]}, {translation = [5, 0, 0]}]\n"
        '[[objects]]\nfile = "f"\nname = "still"\nanimate = false\n'
    )
    scene = load_scene(tmp_path / "scene.toml")
    assert scene.animation is not None and len(scene.animation.skinned) == 2
    pose = posed(scene, scene.animation.clip(), 0.1)

    def points(shown: Any, number: int) -> Any:
        item = shown.instances[number]
        at = item.transform
        return shown.meshes[item.mesh].positions @ at[:3, :3].T + at[:3, 3]

    for time, shown in ((0.25, scene), (0.35, pose)):
        positions, _ = _mixed(corners, [time, -2 * time])
        for number, move in ((0, [0, 1, 0]), (1, [5, 1, 0])):
            np.testing.assert_allclose(points(shown, number), positions + move, atol=1e-6)
    still, _ = _mixed(corners, [3, 3])
    np.testing.assert_allclose(points(pose, 2), still + [0, 1, 0], atol=1e-6)


# -- what files get wrong ------------------------------------------------------------------------


def _short(glb: Any) -> None:
    glb.json["meshes"][0]["primitives"][0]["targets"][1]["POSITION"] = glb.accessor(MOVES[0][:2])


def _infinite(glb: Any) -> None:
    bad = glb.accessor(np.full((3, 3), np.inf))
    glb.json["meshes"][0]["primitives"][0]["targets"][0]["NORMAL"] = bad


def _uneven(glb: Any) -> None:
    whole = glb.json["meshes"][0]["primitives"]
    whole.append({**whole[0], "targets": whole[0]["targets"][:1]})


def _keys(glb: Any) -> None:
    glb.json["animations"][0]["samplers"][0]["output"] = glb.accessor(np.ones(5))


def _node_weights(glb: Any) -> None:
    glb.json["nodes"][0]["weights"] = [1, 2, 3]


@pytest.mark.parametrize(
    "damage, message",
    [
        (_short, "3 positions and 2 displacements in morph target 1"),
        (_infinite, "morph target 0 that is not finite"),
        (_uneven, r"primitives of \[1, 2\] morph targets"),
        (_keys, "5 weights for 2 morph targets"),
        (_node_weights, "3 weights for 2 morph targets"),
    ],
)
def test_damage(glb: Any, write: Any, corners: Any, damage: Any, message: str) -> None:
    glb.node(mesh=_mesh(glb, corners))
    _clip(glb, 0)
    damage(glb)
    with pytest.raises(UserError, match=message) as caught:
        load_scene(write(glb))
    assert "\n" not in str(caught.value)


def test_too_many_targets(glb: Any, write: Any, corners: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(gltf_morph, "MAX_TARGETS", 1)
    glb.node(mesh=_mesh(glb, corners))
    with pytest.raises(UserError, match="mesh face has 2 morph targets, and 1 is the most"):
        load_scene(write(glb))
