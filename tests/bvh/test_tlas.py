import numpy as np
import pytest

from bvh.build import Blas, BuildOptions, build_blas
from bvh.layout import InstanceFlags
from bvh.scene_bvh import assemble
from bvh.tlas import BvhInstance, instance_matrices, world_bounds
from engine.gpu.errors import UserError


@pytest.fixture
def mesh(rng: np.random.Generator) -> Blas:
    triangles = rng.random((40, 3, 3)).astype(np.float32)
    ids = np.arange(40, dtype=np.uint32)
    return build_blas(triangles, ids % 4, ids, np.ones(4, bool), BuildOptions())


def _transform(rng: np.random.Generator) -> np.ndarray:
    matrix = np.eye(4)
    matrix[:3, :3] = np.linalg.qr(rng.normal(size=(3, 3)))[0] * rng.uniform(0.1, 5, 3)
    matrix[:3, 3] = rng.normal(size=3) * 100
    return matrix


def test_instance_node_bytes(mesh: Blas) -> None:
    matrix = np.eye(4)
    matrix[:3, :3] = [[0, -2, 0], [4, 0, 0], [0, 0, 8]]
    matrix[:3, 3] = [1, 2, 3]
    flags = InstanceFlags.FORCE_OPAQUE | InstanceFlags.FLIP_FACING
    instance = BvhInstance(1, matrix, 0x5A, 0x123456, 0xABCDEF, flags, "turned")
    scene = assemble([mesh, mesh], ["a", "b"], [instance], BuildOptions())
    base = int(scene.blas_bases[1])
    assert scene.words[32] == (256 >> 3) | 6
    node = scene.words[64:96]
    assert node[:2].tolist() == [((base + 128) >> 3) | 5, 0]
    assert node[2] == 0x5AABCDEF
    assert node[3] == 0xD0123456
    expected = np.array([[0, 0.25, 0, -0.5], [-0.5, 0, 0, 0.5], [0, 0, 0.125, -0.375]], np.float32)
    assert (node[4:16].view(np.float32).reshape(3, 4) == expected).all()
    assert node[16:20].tolist() == [0, base // 64, 4, 0]
    assert (node[20:32].view(np.float32).reshape(3, 4) == matrix[:3].astype(np.float32)).all()
    assert scene.parents[4:6].tolist() == [0x15, 0xFFFFFFFF]


def test_identity_keeps_bounds_exactly(mesh: Blas) -> None:
    scene = assemble([mesh], ["a"], [BvhInstance(0)], BuildOptions())
    assert (scene.words[36:42].view(np.float32) == mesh.bounds.reshape(-1)).all()


def test_world_bounds_are_conservative_and_tight(rng: np.random.Generator) -> None:
    for _ in range(50):
        instance = BvhInstance(0, _transform(rng))
        forward, backward = instance_matrices([instance])
        bounds = np.sort(rng.normal(size=(1, 2, 3)), axis=1).astype(np.float32)
        box = world_bounds(bounds, forward, backward)[0].astype(np.float64)
        corners = np.array(
            [[bounds[0, i, 0], bounds[0, j, 1], bounds[0, k, 2]]
             for i in range(2) for j in range(2) for k in range(2)], np.float64,
        )  # fmt: skip
        ahead = corners @ forward[0, :, :3].T.astype(np.float64) + forward[0, :, 3]
        back = backward[0].astype(np.float64)
        recovered = np.linalg.solve(back[:, :3], (corners - back[:, 3]).T).T
        for points in (ahead, recovered):
            assert (points.min(axis=0) >= box[0]).all()
            assert (points.max(axis=0) <= box[1]).all()
        slack = max((ahead.min(axis=0) - box[0]).max(), (box[1] - ahead.max(axis=0)).max())
        assert slack < 1e-5 * np.abs(ahead).max() + 1e-5
        # Room for the roundings of a ray that is carried into object space.
        size = np.abs(forward[0, :, :3]) @ np.abs(bounds[0]).max(axis=0) + np.abs(forward[0, :, 3])
        room = np.minimum(ahead.min(axis=0) - box[0], box[1] - ahead.max(axis=0))
        assert (room >= 2.0**-23 * 0.9 * size).all()


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (np.diag([1.0, 0.0, 1.0, 1.0]), "singular"),
        (np.array([[1, 2, 3, 0], [2, 4, 6, 0], [0, 0, 1, 0], [0, 0, 0, 1.0]]), "singular"),
        (np.array([[1, 1, 0, 0], [1, 1, 1e-12, 0], [0, 0, 1, 0], [0, 0, 0, 1.0]]), "singular"),
        (np.diag([1e-39, 1.0, 1.0, 1.0]), "singular"),
        (np.diag([np.nan, 1.0, 1.0, 1.0]), "not finite"),
        (np.diag([1e39, 1.0, 1.0, 1.0]), "not finite"),
        (np.diag([1.0, 1.0, 1.0, 2.0]), "last row"),
        (np.eye(3), "4x4"),
    ],
)
def test_bad_transforms_name_the_instance(mesh: Blas, matrix: np.ndarray, message: str) -> None:
    instances = [BvhInstance(0), BvhInstance(0, matrix, name="lamp")]
    with pytest.raises(UserError, match=rf"instance 1 'lamp'.*{message}") as caught:
        assemble([mesh], ["a"], instances, BuildOptions())
    assert caught.value.exit_code == 2


def test_very_thin_and_mirrored_transforms_are_fine(mesh: Blas) -> None:
    thin = np.diag([1.0, 1e-6, 1e6, 1.0])
    mirrored = np.diag([-1.0, 1.0, 1.0, 1.0])
    assemble([mesh], ["a"], [BvhInstance(0, thin), BvhInstance(0, mirrored)], BuildOptions())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"blas": 1}, "BLAS 1, there are 1"),
        ({"mask": 256}, "mask 256"),
        ({"first_object": 1 << 24}, "first_object 16777216"),
        ({"custom_index": -1}, "custom_index -1"),
    ],
)
def test_bad_fields(mesh: Blas, change: dict, message: str) -> None:
    instance = BvhInstance(**{"blas": 0, "name": "x", **change})
    with pytest.raises(UserError, match=message):
        assemble([mesh], ["a"], [instance], BuildOptions())


def test_beyond_float32(mesh: Blas) -> None:
    far = np.diag([3e38, 1.0, 1.0, 1.0])
    far[0, 3] = 3e38
    with pytest.raises(UserError, match="float32's range"):
        assemble([mesh], ["a"], [BvhInstance(0, far)], BuildOptions())
