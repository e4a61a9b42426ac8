from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bvh.brute_force import closest
from bvh.build import BuildOptions, build_blas
from bvh.builders.lbvh import LbvhConfig
from bvh.encode import encode, make_image, pack_blocks
from bvh.gpu.build_records import BUILD_STATE, make_parameters
from bvh.gpu.collapse import GpuCollapse
from bvh.gpu.lbvh import GpuLbvh
from bvh.gpu.trace_rays import RayTracer, Variant
from bvh.header import KIND_BLAS
from bvh.pairing import single_blocks
from bvh.rays import MISS_ID, make_rays
from bvh.scene_bvh import assemble
from bvh.tlas import BvhInstance
from bvh.transforms.collapse import collapse_greedy
from bvh.tree import EMPTY, STACK_LIMIT, Tree, check_tree, depth_first, stack_bound
from bvh.triangles import keep_usable, triangle_bounds
from bvh.validate import validate
from engine.gpu.stage import submit_pass

CAPACITY = 50_000


@pytest.fixture(scope="module")
def builders(device: Any) -> tuple[GpuLbvh, GpuCollapse]:
    """For the whole file: every use after the first finds dirty scratch."""
    return GpuLbvh(device, CAPACITY), GpuCollapse(device, CAPACITY)


def _boxes(rng: np.random.Generator, count: int) -> np.ndarray:
    low = rng.random((count, 3))
    size = 10.0 ** rng.uniform(-4, -0.5, (count, 1)) * rng.random((count, 3))
    return np.stack([low, low + size], axis=1).astype(np.float32)


def _wide(builders: Any, bounds: np.ndarray) -> Tree:
    """Build and collapse in one pass."""
    lbvh, item = builders
    lbvh.build_boxes(bounds)
    submit_pass(item.device, lambda scope: item.encode(scope, lbvh.tree_buffers))
    return item.read(lbvh.tree_buffers)


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 6, 17, 257, 2049, CAPACITY])
def test_sound_depth_first_and_as_the_host_does_it(builders: Any, rng: Any, count: int) -> None:
    bounds = _boxes(rng, count)
    wide = _wide(builders, bounds)
    assert check_tree(wide, bounds) == []
    assert (depth_first(wide.children)[0] == np.arange(len(wide.children))).all()
    assert stack_bound(wide.children) <= STACK_LIMIT
    used = wide.children != EMPTY
    assert (used.sum(axis=1) >= min(count, 2)).all() and used[:, 0].all()
    host = collapse_greedy(builders[0].read())
    # Areas in float32 may order two children the other way round.
    assert abs(len(wide.children) - len(host.children)) <= 1 + len(host.children) // 1000
    if count < 1000:
        assert (wide.bounds == host.bounds[np.argsort(depth_first(host.children)[0])]).all()


def _deep() -> np.ndarray:
    """Points that part one bit at a time, 40 of each: codes of 63 bits would make 68 levels."""
    points = [np.zeros(3)]
    for level in range(21):
        points += list(np.eye(3) * 2.0**-level)
    corners = np.repeat(np.array(points, np.float32), 40, axis=0)
    return np.stack([corners, corners], axis=1)


def _deep_builders(device: Any, count: int) -> tuple[GpuLbvh, GpuCollapse]:
    return GpuLbvh(device, count, LbvhConfig(21, 0)), GpuCollapse(device, count)


@pytest.mark.parametrize("deep", [False, True])
def test_stages_equal_their_twins(device: Any, builders: Any, rng: Any, deep: bool) -> None:
    """Every dispatch of a collapse, against the twins run over the same buffers."""
    bounds = _deep() if deep else _boxes(rng, 3001)
    count = len(bounds)
    lbvh, item = _deep_builders(device, count) if deep else builders
    wide = _wide((lbvh, item), bounds)
    buffers = {**lbvh.tree_buffers, **item.resources}
    stages = item.stages
    dtypes = dict.fromkeys(buffers, np.uint32) | {"children": np.int32, "bounds": np.float32}
    dtypes |= {"slots": np.int32, "wide_children": np.int32}
    arrays = {
        name: device.read(buffer, dtypes[name])
        for name, buffer in buffers.items()
        if name != "state"
    }
    arrays["state"] = device.read(buffers["state"], BUILD_STATE.dtype, count=1)
    gpu = {name: arrays[name].copy() for name in item.resources}
    for name in item.resources:
        arrays[name][:] = -1 if arrays[name].dtype == np.int32 else 0xFFFFFFFF
    for level in range(item.max_depth + 1):
        arrays["parameters"] = make_parameters(count, 1, 0, level=level)
        stages["collapse"].run_cpu(arrays)
    stages["mark_preorder"].run_cpu(arrays)
    arrays["order"][:] = np.cumsum(arrays["order"]) - arrays["order"]
    stages["place_wide"].run_cpu(arrays)
    nodes, marked = count - 1, np.flatnonzero(arrays["marks"][: count - 1])
    assert (gpu["marks"][:nodes] == arrays["marks"][:nodes]).all()
    assert (gpu["order"][:nodes] == arrays["order"][:nodes]).all()
    slots = [a["slots"].reshape(-1, 4)[marked] for a in (gpu, arrays)]
    assert (slots[0] == slots[1]).all()
    size = len(wide.children)
    assert len(marked) == size
    assert (gpu["places"][:size] == arrays["places"][:size]).all()
    assert (gpu["wide_children"][: 4 * size] == arrays["wide_children"][: 4 * size]).all()


def test_deep_trees_keep_to_the_stack(device: Any) -> None:
    """Opening every node twice would leave up to three waiting a level."""
    bounds = _deep()
    wide = _wide(_deep_builders(device, len(bounds)), bounds)
    assert check_tree(wide, bounds) == []
    assert stack_bound(wide.children) <= STACK_LIMIT
    # Left to itself, greedy opens an inner child wherever there is room for it.
    used = (wide.children != EMPTY).sum(axis=1)
    assert ((used == 2) & (wide.children >= 0).any(axis=1)).any()


@pytest.mark.parametrize("nodes", ["fp32", "auto"])
def test_hits_of_guest_bytes_equal_brute_force(
    device: Any, builders: Any, rng: Any, nodes: str
) -> None:
    """The GPU's wide tree encoded as it is, validated and traced on the GPU."""
    centre = rng.random((900, 1, 3)) * 4
    triangles = (centre + 0.25 * rng.normal(size=(900, 3, 3))).astype(np.float32)
    every, zeros = np.arange(900, dtype=np.uint32), np.zeros(900, np.uint32)
    boxes = triangle_bounds(triangles)
    tree = _wide(builders, boxes)
    opaque = np.ones(1, np.bool_)
    leaves, types = pack_blocks(single_blocks(900), keep_usable(triangles, zeros, every), opaque)
    image = make_image(
        tree,
        boxes,
        leaves,
        types,
        kind=KIND_BLAS,
        nodes=nodes,
        primitive_count=900,
        geometry_count=1,
    )
    words, parents = encode(image)
    blas = build_blas(triangles, zeros, every, opaque, BuildOptions(builder="lbvh", reinsertion=0))
    blas = replace(blas, words=words, parents=parents, bounds=image.bounds)
    scene = assemble([blas], ["mesh"], [BvhInstance(0, np.eye(4))])
    assert validate(scene) == []
    rays = make_rays(rng.random((500, 3)) * 4, rng.normal(size=(500, 3)))
    expected = closest(triangles, rays)
    got = RayTracer(device, scene.words, Variant("test")).trace(rays)
    assert got.failures == ()
    hit = np.isfinite(expected.t)
    assert 100 < hit.sum() < 500
    assert ((got.hits["object"] != MISS_ID) == hit).all()
    assert np.allclose(got.hits["t"][hit], expected.t[hit], rtol=1e-4)
    other = got.hits["primitive"][hit] != expected.triangle[hit]
    assert np.allclose(got.hits["t"][hit][other], expected.t[hit][other], rtol=1e-6)
