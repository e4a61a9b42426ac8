"""Blocks of up to four on the GPU, from triangles to guest bytes: the bytes of the twins."""

from typing import Any

import numpy as np
import pytest
import trimesh

from bvh import oracle
from bvh.build import BuildOptions, build_by_twins
from bvh.gpu.blas_builder import GpuBlasBuilder
from bvh.gpu.build_records import BUILD_STATE
from bvh.gpu.encode import encode_parameters, most_units
from bvh.gpu.encode_records import ENCODE_SUMMARY
from bvh.gpu.fan_encode import TWINS, GpuFanEncode
from bvh.gpu.fan_near import fans_on_cpu
from bvh.gpu.pair_records import triangle_ids
from bvh.rays import make_rays
from bvh.scene_bvh import assemble
from bvh.tlas import BvhInstance
from bvh.validate import validate

CAPACITY = 3000


def mesh(rng: np.random.Generator, count: int) -> tuple[np.ndarray, ...]:
    """(triangles, geometry, primitive, opaque): a ball in runs of three geometries."""
    ball = trimesh.creation.icosphere(subdivisions=4).triangles.astype(np.float32)[:count].copy()
    ball[5::97, 1] = ball[5::97, 2]
    geometry = (np.arange(count) // 50 % 3).astype(np.uint32)
    return ball, geometry, rng.permutation(count).astype(np.uint32), np.array([True, False, True])


@pytest.fixture(scope="module")
def builders(device: Any) -> dict[str, GpuBlasBuilder]:
    return {
        nodes: GpuBlasBuilder(
            device,
            CAPACITY,
            BuildOptions(builder="lbvh", leaf=4, nodes=nodes, pairing="near", reinsertion=0),
        )
        for nodes in ("fp16", "auto")
    }


@pytest.mark.parametrize("nodes", ["fp16", "auto"])
@pytest.mark.parametrize("count", [0, 1, 2, 3, 40, 257, 2999])
def test_bytes_are_the_twins(builders: Any, rng: Any, count: int, nodes: str) -> None:
    given = mesh(rng, count)
    blas = builders[nodes].build(*given)
    expected = build_by_twins(*given, builders[nodes].options, CAPACITY)
    assert np.array_equal(blas.words, expected.words)
    assert np.array_equal(blas.parents, expected.parents)
    for name in ("blocks", "pairs", "fans", "fan_table_bytes", "triangles", "bytes"):
        assert getattr(blas.stats, name) == getattr(expected.stats, name), name
    scene = assemble([blas], ["ball"], [BvhInstance(0)])
    assert validate(scene) == []
    if count > 1000:
        assert blas.stats.fans > 500
        rays = make_rays(np.zeros((500, 3)), rng.normal(size=(500, 3)))
        single = build_by_twins(*given, BuildOptions("lbvh", leaf=1, pairing="near"), CAPACITY)
        plain = assemble([single], ["ball"], [BvhInstance(0)])
        found, wanted = oracle.trace(scene.words, rays), oracle.trace(plain.words, rays)
        for name in ("primitive", "object"):
            assert np.array_equal(getattr(found, name), getattr(wanted, name))
        np.testing.assert_allclose(found.u, wanted.u, atol=1e-5)


def test_the_table_stages_equal_their_twins(device: Any, rng: Any, same_as_twin: Any) -> None:
    """At an offset in a larger buffer, with fewer groups than leaves need."""
    triangles, geometry, primitive, opaque = mesh(rng, 2999)
    ids = triangle_ids(geometry, primitive, opaque)
    state, blocks, _ = fans_on_cpu(triangles, ids)
    kept, base = len(blocks), 12
    units = base + most_units(CAPACITY)
    summary = np.zeros(1, ENCODE_SUMMARY.dtype)
    summary["fits"], summary["leaf_unit"], summary["leaves"] = 1, 777, kept
    arrays: dict[str, Any] = {
        "parameters": encode_parameters(base, most_units(CAPACITY), "fp16", 3),
        "state": state,
        "encode_summary": summary,
        "leaf_order": rng.permutation(kept).astype(np.uint32),
        "blocks": blocks.reshape(-1),
        "triangles": triangles.reshape(-1).view(np.uint32),
        "triangle_ids": ids.reshape(-1),
        "fan_rows": np.zeros(CAPACITY, np.uint32),
        "leaf_count": np.zeros(1, np.uint32),
        "words": np.full(16 * units, 0xDEAD, np.uint32),
        "parent_links": np.full(units, 0xDEAD, np.uint32),
    }
    assert state.dtype == BUILD_STATE.dtype
    stages = GpuFanEncode(device, CAPACITY, "fp16").stages
    assert set(stages) == set(TWINS)

    same_as_twin(stages["mark_fans"], arrays, 2, "fan_rows leaf_count")
    summary["fans"] = arrays["fan_rows"].sum()
    assert summary["fans"][0] > 500
    arrays["fan_rows"] = np.cumsum(arrays["fan_rows"], dtype=np.uint32) - arrays["fan_rows"]
    same_as_twin(stages["write_fans"], arrays, 2, "words")
    same_as_twin(stages["write_fan_groups"], arrays, 2, "words parent_links")
