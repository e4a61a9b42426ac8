"""The pose in which skinned meshes stand."""

import numpy as np
import pytest

from engine.gpu.errors import UserError
from engine.scene.load import load_scene
from engine.scene.skin import blend_matrices, skin_normals, skin_positions


def _matrix(linear, offset=(0, 0, 0)):
    matrix = np.eye(4)
    matrix[:3, :3] = linear
    matrix[:3, 3] = offset
    return matrix


def _add_skin(glb, corners, joints=((0,) * 4, (1, 0, 0, 0), (0, 1, 0, 0)), **node):
    weights = [[1, 0, 0, 0], [1, 0, 0, 0], [0.5, 0.5, 0, 0]]
    mesh = glb.mesh(
        glb.primitive(
            corners,
            NORMAL=glb.accessor([[0, 0, 1]] * 3),
            JOINTS_0=glb.accessor(joints, "u1"),
            WEIGHTS_0=glb.accessor(weights),
        )
    )
    first = glb.node(translation=[0, 10, 0])
    half = np.sqrt(0.5)
    second = glb.node(rotation=[half, 0, 0, half], translation=[0, 0, 20])  # 90 degrees about x
    # bind pose: both joints one metre along x
    bind = np.eye(4)
    bind[0, 3] = -1
    inverse_bind = glb.accessor(np.stack([bind.T, bind.T]).reshape(2, 16))
    glb.add("skins", {"joints": [first, second], "inverseBindMatrices": inverse_bind})
    glb.node(mesh=mesh, skin=0, name="figure", **node)


def test_figure_stands_where_its_joints_are(glb, write, corners):
    _add_skin(glb, corners, translation=[100, 100, 100])  # its own transform takes no part
    scene = load_scene(write(glb))
    (instance,) = scene.instances
    assert instance.lifetime == "deforming"
    np.testing.assert_array_equal(instance.transform, np.eye(4))
    mesh = scene.meshes[0]
    # by hand: p - (1, 0, 0), then joint 0: + (0, 10, 0); joint 1: (x, -z, y) + (0, 0, 20)
    expected = [[-1, 10, 0], [0, 0, 20], np.mean([[-1, 11, 0], [-1, 0, 21]], axis=0)]
    np.testing.assert_allclose(mesh.positions, expected, atol=1e-6)
    half = np.sqrt(0.5)
    np.testing.assert_allclose(mesh.normals, [[0, 0, 1], [0, -1, 0], [0, -half, half]], atol=1e-6)


def test_joint_beyond_the_skin_is_an_error(glb, write, corners):
    _add_skin(glb, corners, joints=((2, 0, 0, 0),) * 3)
    with pytest.raises(UserError, match="uses joint 2 of a skin with 2"):
        load_scene(write(glb))


def test_weights_are_brought_to_sum_one():
    move = _matrix(np.eye(3), (2, 0, 0))
    joints = np.array([[0, 1], [1, 0]])
    weights = np.array([[3.0, 1.0], [0.0, 0.0]])
    blended = blend_matrices(np.stack([np.eye(4), move]), joints, weights)
    posed = skin_positions(np.zeros((2, 3)), blended)
    np.testing.assert_allclose(posed, [[0.5, 0, 0], [2, 0, 0]])


@pytest.mark.parametrize("diagonal", [(2, 1, 1), (-1, 1, 1), (3, -2, 0.5), (1, 1, 0)])
def test_normals_stay_perpendicular(diagonal, rng):
    turn, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    linear = turn @ np.diag(diagonal)
    a, b = rng.normal(size=(2, 3))
    normal = np.cross(a, b)
    (posed,) = skin_normals(normal[None], _matrix(linear)[None])
    assert abs(posed @ (linear @ a)) < 1e-9 and abs(posed @ (linear @ b)) < 1e-9
    if np.linalg.det(linear) != 0:
        assert posed @ (np.linalg.inv(linear).T @ normal) > 0, "mirroring must not turn it inside"
