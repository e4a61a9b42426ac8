import numpy as np
import pytest

from bvh.build import BuildOptions, build_blas
from bvh.decode import decode, decode_triangles
from bvh.encode import encode
from bvh.scene_bvh import SceneBvh, assemble
from bvh.tlas import BvhInstance


def _soup(rng: np.random.Generator, count: int) -> np.ndarray:
    centre = rng.random((count, 1, 3)) * 4
    return (centre + rng.normal(size=(count, 3, 3)) * 0.1).astype(np.float32)


@pytest.mark.parametrize("nodes", ["auto", "fp16", "fp32"])
@pytest.mark.parametrize("count", [0, 1, 2, 5, 400])
def test_decode_then_encode_gives_the_same_bytes(
    nodes: str, count: int, rng: np.random.Generator
) -> None:
    triangles = _soup(rng, count)
    triangles[1::2, 0], triangles[1::2, 1] = (
        triangles[: count // 2 * 2 : 2, 1],
        triangles[: count // 2 * 2 : 2, 0],
    )  # every second triangle shares an edge with the one before
    geometry = (np.arange(count) // 100).astype(np.uint32)
    blas = build_blas(
        triangles, geometry, np.arange(count, dtype=np.uint32), np.ones(5, bool),
        BuildOptions(nodes=nodes),
    )  # fmt: skip
    move = np.eye(4)
    move[:3, 3] = [3, -2, 9]
    bvh = assemble([blas], ["soup"], [BvhInstance(0), BvhInstance(0, move)], BuildOptions())
    for words, parents in (
        (bvh.blas_words(0), bvh.parents[int(bvh.blas_bases[0]) // 64 :]),
        (bvh.tlas_words, bvh.parents),
    ):
        again, links = encode(decode(words))
        assert (again == words).all()
        assert (links == parents[: len(links)]).all()


def test_triangles_come_back(rng: np.random.Generator) -> None:
    triangles = _soup(rng, 300)
    triangles[1::2, 0], triangles[1::2, 1] = triangles[::2, 1], triangles[::2, 0]
    blas = build_blas(
        triangles, np.zeros(300, np.uint32), np.arange(300, dtype=np.uint32), np.ones(1, bool),
        BuildOptions(),
    )  # fmt: skip
    assert blas.stats.pairs > 100
    image = decode(blas.words)
    rows = decode_triangles(image.leaves, image.leaf_types)
    order = np.argsort(rows.primitive)
    assert rows.primitive[order].tolist() == list(range(300))
    assert (rows.positions[order] == triangles).all()
    assert rows.opaque.all()


def test_foreign_bytes_are_refused(small_scene: SceneBvh) -> None:
    words = small_scene.tlas_words.copy()
    words[0] ^= 1
    with pytest.raises(ValueError, match="magic"):
        decode(words)
    words = small_scene.blas_words(0).copy()
    words[32] = 0xFFFFFFE5  # a box node far outside
    with pytest.raises(ValueError, match="box node pointer"):
        decode(words)


@pytest.fixture
def small_scene(rng: np.random.Generator) -> SceneBvh:
    triangles = _soup(rng, 50)
    blas = build_blas(
        triangles, np.zeros(50, np.uint32), np.arange(50, dtype=np.uint32), np.ones(1, bool),
        BuildOptions(),
    )  # fmt: skip
    return assemble([blas], ["soup"], [BvhInstance(0)], BuildOptions())
