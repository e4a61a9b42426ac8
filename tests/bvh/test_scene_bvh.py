import numpy as np

from bvh.build import Blas, BuildOptions, build_blas
from bvh.decode import decode
from bvh.header import unpack_header
from bvh.scene_bvh import assemble
from bvh.tlas import BvhInstance
from bvh.validate import validate


def _mesh(rng: np.random.Generator, count: int) -> Blas:
    triangles = rng.random((count, 3, 3)).astype(np.float32)
    ids = np.arange(count, dtype=np.uint32)
    return build_blas(triangles, 0 * ids, ids, np.ones(1, bool), BuildOptions())


def test_containers_stand_at_aligned_bases(rng: np.random.Generator) -> None:
    blases = [_mesh(rng, count) for count in (1, 0, 300, 7)]
    instances = [BvhInstance(b) for b in (0, 1, 2, 3, 3)]
    scene = assemble(blases, list("abcd"), instances, BuildOptions())
    assert (scene.blas_bases % 256 == 0).all()
    assert unpack_header(scene.words).leaf_count == 4  # the empty BLAS has no instance node
    for i, blas in enumerate(blases):
        words = scene.blas_words(i)
        assert len(words) == len(blas.words)
        same = words == blas.words
        assert same[:20].all()
        assert same[21:].all()
        assert words[20] == scene.blas_bases[i] >> 8  # the descriptor's base
        first = int(scene.blas_bases[i]) // 64
        assert (scene.parents[first : first + len(blas.parents)] == blas.parents).all()
    assert len(scene.parents) * 16 == len(scene.words)
    assert validate(scene) == []


def test_empty_tlas_is_a_root_without_children(rng: np.random.Generator) -> None:
    for blases, instances in (([], []), ([_mesh(rng, 0)], [BvhInstance(0)]), ([_mesh(rng, 3)], [])):
        scene = assemble(blases, ["x"] * len(blases), instances)
        assert (scene.words[32:36] == 0xFFFFFFFF).all()
        assert (scene.words[36:60] == 0x7FC00000).all()
        assert len(scene.tlas_words) * 4 == 256
        assert validate(scene) == []


def test_tlas_nodes_are_fp32(rng: np.random.Generator) -> None:
    instances = []
    for _ in range(40):
        matrix = np.eye(4)
        matrix[:3, 3] = rng.integers(-8, 8, 3)
        instances.append(BvhInstance(0, matrix))
    scene = assemble([_mesh(rng, 5)], ["a"], instances, BuildOptions(nodes="fp16"))
    image = decode(scene.tlas_words)
    assert not image.half.any()
    assert sorted(image.leaves[:, 16].tolist()) == list(range(40))
    assert validate(scene) == []
