import numpy as np
import pytest

from bvh.build import BuildOptions, build_blas, build_tree
from bvh.header import unpack_header
from bvh.tree import check_tree, stack_bound
from engine.gpu.errors import UserError


def _blas(triangles: np.ndarray, **options: object):
    count = len(triangles)
    return build_blas(
        triangles,
        np.zeros(count, np.uint32),
        np.arange(count, dtype=np.uint32),
        np.array([True]),
        BuildOptions(**options),  # type: ignore[arg-type]
    )


def _soup(rng: np.random.Generator, count: int) -> np.ndarray:
    centre = rng.random((count, 1, 3)) * 4
    return (centre + rng.normal(size=(count, 3, 3)) * 0.1).astype(np.float32)


def test_empty_blas_is_valid() -> None:
    blas = _blas(np.empty((0, 3, 3), np.float32))
    assert len(blas.words) * 4 == 256
    assert (blas.words[32:36] == 0xFFFFFFFF).all()
    assert (blas.words[36:60] == 0x7FC00000).all()
    assert blas.stats.blocks == blas.stats.nodes_fp16 == 0
    assert blas.stats.nodes_fp32 == blas.stats.depth == 1
    assert (blas.bounds[0] > blas.bounds[1]).all()


def test_dropped_triangles_are_counted(rng: np.random.Generator) -> None:
    triangles = _soup(rng, 20)
    triangles[3] = triangles[3, 0]
    triangles[7, 1, 1] = np.nan
    triangles[8, 1, 1] = np.inf
    blas = _blas(triangles)
    assert (blas.stats.dropped_degenerate, blas.stats.dropped_nonfinite) == (1, 2)
    assert blas.stats.triangles == 17
    assert unpack_header(blas.words).primitive_count == 17


def test_statistics_agree_with_the_header(rng: np.random.Generator) -> None:
    for options in ({"leaf": 1}, {"nodes": "fp16"}, {"nodes": "fp32", "collapse": "greedy"}):
        blas = _blas(_soup(rng, 500), **options)
        header = unpack_header(blas.words)
        stats = blas.stats
        assert (stats.nodes_fp16, stats.nodes_fp32) == (header.nodes_fp16, header.nodes_fp32)
        assert stats.blocks == header.leaf_count
        assert stats.bytes == 4 * len(blas.words) == header.size_bytes
        assert stats.depth == header.depth
        assert (blas.bounds == header.bounds).all()
        slots = stats.nodes_fp16 + stats.nodes_fp32 - 1 + stats.blocks
        assert stats.fill == pytest.approx(slots / (stats.nodes_fp16 + stats.nodes_fp32))
        assert stats.triangles_per_block == stats.triangles / stats.blocks
        assert header.geometry_count == blas.geometry_count == 1
    assert _blas(_soup(rng, 500), nodes="fp16").stats.nodes_fp32 == 1
    assert _blas(_soup(rng, 500), leaf=1).stats.blocks == 500


def test_emitted_descriptor_is_exact(rng: np.random.Generator) -> None:
    blas = _blas(_soup(rng, 100))
    units = len(blas.words) // 16
    assert blas.words[20:24].tolist() == [0, 0x83000000, units - 1, 0x81000000]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"builder": "magic"}, "unknown builder 'magic'; known: sah"),
        ({"nodes": "fp8"}, "unknown node format 'fp8'"),
        ({"leaf": 3}, "leaf must be 1, 2 or 4"),
        ({"collapse": "no"}, "unknown collapse 'no'"),
    ],
)
def test_wrong_options(options: dict, message: str) -> None:
    with pytest.raises(UserError, match=message) as caught:
        BuildOptions(**options)
    assert caught.value.exit_code == 2


def test_wrong_arrays_are_programming_errors() -> None:
    triangle = np.array([[[0, 0, 0], [1, 0, 0], [0, 1, 0]]], np.float32)
    one = np.zeros(1, np.uint32)
    with pytest.raises(ValueError, match="differ in length"):
        build_blas(triangle, np.zeros(2, np.uint32), one, np.ones(1, bool), BuildOptions())
    with pytest.raises(ValueError, match="geometry 1"):
        build_blas(triangle, one + 1, one, np.ones(1, bool), BuildOptions())


def _tower(count: int) -> np.ndarray:
    x = np.ldexp(1.0, np.linspace(-110, 110, count).astype(int))[:, None, None]
    return np.concatenate([x, x * 1.5], axis=1).repeat(3, axis=2).astype(np.float32)


def _shells(count: int) -> np.ndarray:
    size = np.linspace(0.1, 1.0, count)[:, None, None]
    return np.concatenate([-size, size], axis=1).repeat(3, axis=2).astype(np.float32)


@pytest.mark.parametrize("bounds", [_tower(4000), _shells(700)], ids=["tower", "nested shells"])
@pytest.mark.parametrize("collapse", ["best", "greedy"])
def test_no_ray_can_need_a_deep_stack(bounds: np.ndarray, collapse: str) -> None:
    """All boxes of the shells contain the origin: a ray from there does meet every sibling."""
    for rounds in (0, 30):
        tree = build_tree(bounds, BuildOptions(collapse=collapse, reinsertion=rounds))
        assert check_tree(tree, bounds) == []
        assert stack_bound(tree.children) <= 56
