"""Bytes of nodes, spelled out by hand."""

import numpy as np
import pytest

from bvh.build import BuildOptions, build_blas
from bvh.encode import AUTO_INFLATION, choose_half
from bvh.tree import EMPTY


def _words(*values: float) -> list[int]:
    return np.array(values, np.float32).view(np.uint32).tolist()


def test_one_triangle_container() -> None:
    triangle = np.array([[[1, 2, 3], [4, 2, 3], [1, 6, 3]]], np.float32)
    blas = build_blas(
        triangle, np.array([2], np.uint32), np.array([9], np.uint32), np.ones(3, bool),
        BuildOptions(),
    )  # fmt: skip
    assert len(blas.words) * 4 == 128 + 128 + 64
    root = blas.words[32:64].tolist()
    assert root[:4] == [256 >> 3, 0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF]
    assert root[4:10] == _words(1, 2, 3, 4, 6, 3)
    assert root[10:28] == [0x7FC00000] * 18
    assert root[28:] == [0] * 4
    block = blas.words[64:80].tolist()
    assert block[:9] == _words(1, 2, 3, 4, 2, 3, 1, 6, 3)
    assert block[9:12] == _words(1, 6, 3)  # V2 again
    assert block[12:] == [0x01000002, 9, 0xFFFFFFFF, 0x9]
    assert blas.parents.tolist() == [0xFFFFFFFF] * 4 + [0x15]


def test_a_pair_and_its_opacity() -> None:
    corners = np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]], np.float32)
    triangles = corners[[[0, 1, 2], [0, 2, 3]]]
    blas = build_blas(
        triangles, np.zeros(2, np.uint32), np.array([5, 6], np.uint32), np.zeros(1, bool),
        BuildOptions(),
    )  # fmt: skip
    assert blas.words[32] == (256 >> 3) | 1
    block = blas.words[64:80].tolist()
    # Triangle 0 turned so that its edge 2-0 is V1-V2; V3 is the other triangle's third corner.
    assert block[:12] == _words(1, 0, 0, 1, 1, 0, 0, 0, 0, 0, 1, 0)
    # Triangle 0: vertex 0 in slot 2 -> 4. Triangle 1 is V1 V3 V2 = 2, 3, 0: vertex 0 in slot 2.
    assert block[12:] == [0, 5, 6, 0x0404]


def _slots(size: float, offset: float) -> np.ndarray:
    boxes = np.zeros((2, 4, 2, 3), np.float32)
    boxes[:, :2, 0] = offset
    boxes[:, :2, 1] = offset + size
    boxes[:, 2:] = np.nan
    return boxes


CHILDREN = np.array([[1, ~2, EMPTY, EMPTY], [~0, ~1, EMPTY, EMPTY]], np.int32)


@pytest.mark.parametrize(
    ("size", "offset", "nodes", "expected"),
    [
        (1.0, 3.0, "auto", True),  # exact in halves
        (0.7, 0.1, "auto", True),
        (0.001, 100.3, "auto", False),  # far smaller than the spacing of halves there
        (0.001, 100.3, "fp16", True),
        (1.0, 65504.0, "fp16", False),  # would become infinite
        (1.0, 3.0, "fp32", False),
    ],
)
def test_which_nodes_become_fp16(size: float, offset: float, nodes: str, expected: bool) -> None:
    half = choose_half(_slots(size, offset), CHILDREN, nodes)
    assert half.tolist() == [False, expected]  # the root never


def test_auto_threshold_is_the_documented_one() -> None:
    """A cube of side s from 1.0, s a little under one spacing of halves (2^-10): its far side
    rounds up to one spacing, so the area grows by (2^-10 / s)^2."""
    assert AUTO_INFLATION == 0.25
    spacing = 2.0**-10
    assert choose_half(_slots(0.91 * spacing, 1.0), CHILDREN, "auto")[1]  # 1 / 0.91^2 = 1.21
    assert not choose_half(_slots(0.88 * spacing, 1.0), CHILDREN, "auto")[1]  # 1.29
