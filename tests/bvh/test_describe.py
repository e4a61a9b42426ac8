import json

import numpy as np
import pytest

from bvh.build import BuildOptions, build_blas
from bvh.describe import describe
from bvh.scene_bvh import assemble
from bvh.tlas import BvhInstance


def test_by_hand() -> None:
    """Two unit right triangles in the planes z = 0 and z = 1, and one pair beside them."""
    one = [[0, 0, 0], [1, 0, 0], [0, 1, 0]]
    far = [[4, 0, 0], [5, 0, 0], [4, 1, 0]]
    other = [[5, 0, 0], [5, 1, 0], [4, 1, 0]]
    triangles = np.array([one, (np.array(one) + [0, 0, 1]), far, other], np.float32)
    ids = np.arange(4, dtype=np.uint32)
    blas = build_blas(triangles, 0 * ids, ids, np.ones(1, bool), BuildOptions())
    table = describe(assemble([blas], ["mesh"], [BvhInstance(0), BvhInstance(0)]))
    mesh = table["blas"][0]
    assert mesh["name"] == "mesh"
    assert (mesh["nodes_fp32"], mesh["nodes_fp16"], mesh["leaves"]) == (1, 0, 3)
    assert mesh["leaf_histogram"] == [0, 2, 1, 0, 0]
    assert mesh["fill_histogram"] == [0, 0, 0, 1, 0]
    assert mesh["depth_histogram"] == [3]
    assert mesh["bytes"] == 128 + 128 + 3 * 64 == blas.stats.bytes
    assert mesh["bytes_per_primitive"] == mesh["bytes"] / 4
    # Root 5 x 1 x 1: 5 + 1 + 5 = 11; three flat unit squares.
    assert mesh["sah"] == pytest.approx((11 + 3) / 11) == pytest.approx(blas.stats.sah)
    assert mesh["sibling_overlap"] == 0
    assert table["tlas"]["primitives"] == table["instances"] == 2
    assert table["tlas"]["leaves"] == 2
    # Two instances at the same place: the whole box is shared by both.
    assert table["tlas"]["sibling_overlap"] == pytest.approx(0.5)
    json.dumps(table, allow_nan=False)


def test_fp16_shows_in_sah(rng: np.random.Generator) -> None:
    triangles = (rng.random((300, 1, 3)) + rng.normal(size=(300, 3, 3)) * 0.01 + 50).astype("f4")
    ids = np.arange(300, dtype=np.uint32)
    rows = []
    for nodes in ("fp32", "fp16"):
        options = BuildOptions(nodes=nodes)
        blas = build_blas(triangles, 0 * ids, ids, np.ones(1, bool), options)
        table = describe(assemble([blas], ["m"], [BvhInstance(0)], options))["blas"][0]
        assert sum(table["depth_histogram"]) == table["leaves"] == blas.stats.blocks
        assert sum(table["fill_histogram"]) == table["nodes_fp32"] + table["nodes_fp16"]
        rows.append((table["sah"], blas.stats.sah))
    assert rows[0][0] == pytest.approx(rows[0][1])
    assert rows[1][0] > 1.02 * rows[1][1]


def test_empty_scene() -> None:
    table = describe(assemble([], [], []))
    assert table["blas"] == []
    assert table["tlas"]["sah"] == 0
    assert table["tlas"]["bounds"] == []
    json.dumps(table, allow_nan=False)
