from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

from bvh.brute_force import closest
from bvh.build import BuildOptions, build_blas
from bvh.encode import encode, make_image, pack_blocks
from bvh.gpu.collapse import GpuCollapse
from bvh.gpu.lbvh import GpuLbvh
from bvh.gpu.trace_rays import RayTracer, Variant
from bvh.gpu.tree_order import TreeOrder
from bvh.header import KIND_BLAS
from bvh.pairing import single_blocks
from bvh.rays import MISS_ID, make_rays
from bvh.scene_bvh import assemble
from bvh.tlas import BvhInstance
from bvh.transforms.collapse import collapse_best, collapse_greedy
from bvh.tree import (
    STACK_LIMIT,
    Tree,
    check_tree,
    depth_first,
    half_area,
    stack_bound,
    tree_levels,
)
from bvh.triangles import keep_usable, triangle_bounds
from bvh.validate import validate
from engine.gpu.stage import submit_pass

CAPACITY = 5000
COUNTS = [0, 1, 2, 3, 4, 5, 6, 17, 258, 2049, CAPACITY]
HOST = {"best": collapse_best, "greedy": collapse_greedy}
DTYPES = {"wide_children": np.int32, "steps": np.int32}


class Collapse:
    """Order and collapse; every use after the first finds dirty buffers."""

    def __init__(self, device: Any, mode: str) -> None:
        self.device, self.mode = device, mode
        self.order = TreeOrder(device, CAPACITY)
        self.item = GpuCollapse(device, CAPACITY, mode)

    def run(self, tree_buffers: dict[str, Any]) -> Tree:
        """In one pass, after the build of `tree_buffers`."""
        submit_pass(
            self.device,
            lambda scope: self.order.encode(scope, tree_buffers, ranges=False),
            lambda scope: self.item.encode(scope, tree_buffers, self.order.buffers),
        )
        return self.item.read(tree_buffers)

    def summary(self) -> list[int]:
        return self.device.read(self.item.buffers["wide_summary"], count=3).tolist()


@pytest.fixture(scope="module", params=["best", "greedy"])
def collapse(device: Any, request: Any) -> Collapse:
    return Collapse(device, request.param)


def _upload(device: Any, arrays: dict[str, Any]) -> dict[str, Any]:
    return {name: device.upload(name, array) for name, array in arrays.items()}


def _in_depth_first_order(wide: Tree) -> Tree:
    rank, _ = depth_first(wide.children)
    children = np.where(wide.children >= 0, rank[np.maximum(wide.children, 0)], wide.children)
    order = np.argsort(rank)
    return Tree(children[order].astype(np.int32), wide.bounds[order])


@pytest.mark.parametrize("count", COUNTS)
def test_the_tree_that_the_host_makes(
    collapse: Collapse, binary_tree: Any, as_arrays: Any, rng: Any, count: int
) -> None:
    """Boxes of small integers: areas are exact in float32, so that every choice is the host's, ties
    and the stack's limit included."""
    for shape in ("even", "random", "skewed", "chain"):
        tree, boxes = binary_tree(rng, count, shape, whole=True)
        wide = collapse.run(_upload(collapse.device, as_arrays(tree, count)))
        host = _in_depth_first_order(HOST[collapse.mode](tree))
        assert (wide.children == host.children).all()
        assert collapse.summary() == [
            len(host.children),
            len(tree_levels(host.children)),
            stack_bound(host.children),
        ]
        assert stack_bound(host.children) <= STACK_LIMIT
        if count:
            assert (wide.bounds == host.bounds).all()
            assert check_tree(wide, boxes) == []


def test_real_areas_cost_the_same(
    collapse: Collapse, binary_tree: Any, as_arrays: Any, rng: Any
) -> None:
    for shape in ("even", "random", "chain"):
        tree, boxes = binary_tree(rng, CAPACITY, shape)
        wide = collapse.run(_upload(collapse.device, as_arrays(tree, CAPACITY)))
        host = HOST[collapse.mode](tree)
        assert check_tree(wide, boxes) == []
        assert stack_bound(wide.children) <= STACK_LIMIT
        areas = [float(half_area(t.bounds).sum()) for t in (wide, host)]
        assert areas[0] == pytest.approx(areas[1], rel=1e-5)


@pytest.mark.parametrize("count", [0, 1, 2, 5, 257, 2049])
def test_stages_equal_their_twins(
    collapse: Collapse, binary_tree: Any, as_arrays: Any, rng: Any, count: int
) -> None:
    device, item, order = collapse.device, collapse.item, collapse.order
    for shape in ("random", "chain"):
        tree, _ = binary_tree(rng, count, shape)
        arrays = as_arrays(tree, count)
        collapse.run(_upload(device, arrays))
        walked = {name: order.buffers[name] for name in ("ranges", "leaf_order")}
        buffers = {**item.buffers, **item._scratch, **walked}
        found = {
            name: device.read(b, DTYPES.get(name, np.uint32))
            for name, b in buffers.items()
            if name != "parameters"
        }
        twins = {name: device.read(buffer) for name, buffer in order.buffers.items()} | arrays
        twins |= {name: np.full_like(a, 0x77777777) for name, a in found.items()}
        twins["parameters"] = np.zeros(4, np.uint32)
        item.stages["wide_shapes"].run_cpu(twins)
        item.stages["wide_marks"].run_cpu(twins)
        nodes = len(tree.children)
        flags = twins["order"][:nodes]
        flags[:] = np.cumsum(flags) - flags
        item.stages["place_wide"].run_cpu(twins)
        wide = int(found["wide_summary"][0])
        sizes = {"steps": 4 * nodes, "marks": 2 * nodes, "order": nodes, "places": wide}
        sizes |= {"ranges": 2 * nodes, "leaf_order": count}
        for name, size in (sizes | {"wide_children": 4 * wide, "wide_summary": 4}).items():
            assert (found[name][:size] == twins[name][:size]).all(), name
        # The order's own walk, up instead of down, finds the same leaves.
        submit_pass(device, partial(order.encode, tree_buffers=_upload(device, arrays)))
        for name, buffer in walked.items():
            assert (device.read(buffer)[: sizes[name]] == found[name][: sizes[name]]).all()


def test_stack_limit_decides_in_deep_trees(device: Any, binary_tree: Any, as_arrays: Any) -> None:
    """Some node of a deep tree opens what it would not without the limit."""
    collapse = Collapse(device, "greedy")
    tree, _ = binary_tree(np.random.default_rng(1), CAPACITY, "chain")
    collapse.run(_upload(device, as_arrays(tree, CAPACITY)))
    mark = device.read(collapse.item._scratch["marks"])[: 2 * len(tree.children) : 2]
    shape = device.read(collapse.item._scratch["steps"])[3 : 4 * len(tree.children) : 4]
    wide = mark > 0
    assert ((mark[wide] >> 1 & 63) != (shape[wide] & 63)).any()


def test_modes_that_do_not_exist(device: Any) -> None:
    with pytest.raises(ValueError, match="nearest"):
        GpuCollapse(device, 10, "nearest")


@pytest.mark.parametrize("nodes", ["fp32", "auto"])
def test_hits_of_guest_bytes_equal_brute_force(
    device: Any, collapse: Collapse, rng: Any, nodes: str
) -> None:
    """The GPU's wide tree encoded as it is, validated and traced on the GPU."""
    centre = rng.random((900, 1, 3)) * 4
    triangles = (centre + 0.25 * rng.normal(size=(900, 3, 3))).astype(np.float32)
    every, zeros = np.arange(900, dtype=np.uint32), np.zeros(900, np.uint32)
    boxes = triangle_bounds(triangles)
    lbvh = GpuLbvh(device, 900)
    lbvh.build_boxes(boxes)
    tree = collapse.run(lbvh.tree_buffers)
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
