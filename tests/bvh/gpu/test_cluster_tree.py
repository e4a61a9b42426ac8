from typing import Any

import numpy as np
import pytest

from bvh.gpu.cluster_encode import cluster_encode, wide_tree
from bvh.gpu.cluster_records import (
    CLUSTER_NODE,
    CLUSTER_SEGMENT,
    NARROW,
    SEGMENT,
    TREE_RECORD,
    make_cluster_parameters,
    node_capacity,
)
from bvh.gpu.cluster_tree import cluster_tree
from bvh.gpu.small_sort import small_sort
from bvh.gpu.two_float import Two, add, multiply, reciprocal, two_cross, two_product
from bvh.header import unpack_header
from bvh.transforms.collapse import collapse_best
from bvh.tree import (
    MAX_DEPTH,
    STACK_LIMIT,
    Tree,
    check_tree,
    depth_first,
    half_area,
    leaf_slots,
    stack_bound,
    tree_levels,
)
from engine.gpu.stage import Stage

TWINS = {"small_sort": small_sort, "cluster_tree": cluster_tree, "cluster_encode": cluster_encode}


@pytest.fixture(scope="module", params=[64, 256])
def stages(device: Any, request: pytest.FixtureRequest) -> dict[str, Stage]:
    slots = {"lanes": f"bvh/gpu/shaders/lanes_{request.param}.wgsl"}
    return {
        name: Stage(device, name, f"bvh/gpu/shaders/{name}.wgsl", twin=twin, slots=slots)
        for name, twin in TWINS.items()
    }


def _boxes(rng: np.random.Generator, count: int, kind: str) -> np.ndarray:
    if kind == "equal":
        return np.tile(np.array([[1, 2, 3], [2, 3, 5]], np.float32), (count, 1, 1))
    if kind == "chain":  # distances that grow: every round has one mutual pair
        low = np.zeros((count, 3))
        low[:, 0] = 1.2 ** (np.arange(count) % 300)
        return np.stack([low, low], axis=1).astype(np.float32)
    low = rng.random((count, 3)) * 100 - 50
    size = 10.0 ** rng.uniform(-4, 1, (count, 1)) * rng.random((count, 3))
    return np.stack([low, low + size], axis=1).astype(np.float32)


def _build(
    device: Any,
    stages: dict[str, Stage],
    rng: np.random.Generator,
    counts: list[int],
    boxes: np.ndarray,
    **fields: int,
) -> dict[str, np.ndarray]:
    """Order, trees and bytes of one tree a segment on both sides, from dirty buffers; compares
    all of them."""
    number, total = len(counts), sum(counts)
    segments = np.zeros(number + 1, CLUSTER_SEGMENT.dtype)
    segments["count"][:-1], segments["first"][1:] = counts, np.cumsum(counts)
    trees = np.zeros(number, TREE_RECORD.dtype)
    room = np.array([-(-(4 + 2 * max(c, 1) + c) // 4) * 4 for c in counts])
    trees["base_unit"], trees["primitives"] = np.cumsum(room) - room, counts
    trees["geometries"], trees["limit_unit"] = 1, room.sum()
    spare = max(total, 1)
    dirt = rng.integers(0, 2**32, 24 * node_capacity(total, number), np.uint32)
    cpu = {
        "order": rng.integers(0, 2**32, spare, np.uint32),
        "boxes": np.append(boxes.reshape(-1), np.zeros(6, np.float32)),
        "segments": segments,
        "nodes": dirt.view(CLUSTER_NODE.dtype),
        "leaf_parents": rng.integers(0, 2**32, spare, np.uint32),
        "roots": rng.integers(-(2**31), 2**31, spare + 1).astype(np.int32),
        "trees": trees,
        "leaves": rng.integers(0, 2**24, 16 * spare, np.uint32),
        "words": np.zeros(16 * room.sum(), np.uint32),
        "parents": np.zeros(room.sum(), np.uint32),
        "parameters": make_cluster_parameters(
            segments=number,
            radius=fields.pop("radius", 8),
            roots=1,
            max_levels=fields.pop("max_levels", MAX_DEPTH),
            finish=1,
            leaf_units=1,
            align_units=4,
            **{"parts": 1, **fields},
        ),
    }
    gpu = {
        name: device.upload(name, value, "UNIFORM|COPY_DST" if name == "parameters" else
                            "STORAGE|COPY_SRC|COPY_DST")
        for name, value in cpu.items()
    }  # fmt: skip
    for name, stage in stages.items():
        stage.run(gpu, number * (fields.get("parts", 1) if name == "cluster_encode" else 1))
        stage.run_cpu(cpu)
    for name in ("order", "segments", "nodes", "leaf_parents", "roots", "words", "parents"):
        want = np.ascontiguousarray(cpu[name]).reshape(-1).view(np.uint32)
        assert (device.read(gpu[name], count=len(want)) == want).all(), name
    return cpu


def _binary(root: int, nodes: np.ndarray, first: int) -> Tree:
    """The tree below `root` before the collapse, leaves counted from `first`."""
    order, stack = [], [root]
    while stack:
        order.append(stack.pop())
        stack += [int(nodes[side][order[-1]]) for side in ("left", "right")
                  if nodes[side][order[-1]] >= 0]  # fmt: skip
    rank = {node: i for i, node in enumerate(order)}
    record = nodes[order]
    children = np.stack([record["left"], record["right"]], axis=1)
    leaf = leaf_slots(children)
    children[leaf] += np.int32(first)
    inner = children >= 0
    children[inner] = [rank[int(child)] for child in children[inner]]
    return Tree(children, np.stack([record["low"], record["high"]], axis=1))


@pytest.mark.parametrize("kind", ["random", "equal", "chain"])
@pytest.mark.parametrize("node_format", [0, 1, 2])
def test_twins_and_trees(device: Any, stages: Any, rng: Any, kind: str, node_format: int) -> None:
    counts = [0, 1, 2, 3, 5, 0, 129, 257, 100, SEGMENT]
    boxes = _boxes(rng, sum(counts), kind)
    cpu = _build(device, stages, rng, counts, boxes, node_format=node_format, parts=2)
    for i, count in enumerate(counts):
        segment = cpu["segments"][i]
        first = int(segment["first"])
        mine = boxes[first : first + count]
        wide, half = wide_tree(int(segment["root"]), cpu["nodes"])
        if not count:
            assert not leaf_slots(wide.children).any()
            continue
        wide.children[leaf_slots(wide.children)] += np.int32(first)
        assert check_tree(wide, mine) == []
        assert stack_bound(wide.children) <= STACK_LIMIT
        assert not half[0]
        assert half.any() or not node_format or count < 100 or kind == "chain"
        binary = _binary(int(segment["root"]), cpu["nodes"], first)
        assert check_tree(binary, mine) == []
        assert len(tree_levels(binary.children)) <= min(MAX_DEPTH, int(segment["levels"]))
        header = unpack_header(cpu["words"][16 * int(cpu["trees"]["base_unit"][i]) :])
        assert header.leaf_count == count and header.nodes_fp16 == half.sum()
        assert header.depth == len(tree_levels(wide.children))
        # The cut is as good as the host's over the same binary tree.
        if kind == "random" and not (cpu["nodes"]["shares"] & NARROW).any():
            host = collapse_best(binary)
            ours, theirs = half_area(wide.bounds).sum(), half_area(host.bounds).sum()
            assert ours == pytest.approx(theirs, rel=1e-5)


@pytest.mark.parametrize("radius", [1, 3, 6, 11])
def test_other_radii(device: Any, stages: Any, rng: Any, radius: int) -> None:
    counts = [2, 9, 100]
    _build(device, stages, rng, counts, _boxes(rng, sum(counts), "random"), radius=radius)


def test_few_levels_are_kept_to(device: Any, stages: Any, rng: Any) -> None:
    boxes = _boxes(rng, SEGMENT, "chain")
    cpu = _build(device, stages, rng, [SEGMENT], boxes, max_levels=12)
    binary = _binary(int(cpu["segments"]["root"][0]), cpu["nodes"], 0)
    assert check_tree(binary, boxes) == []
    assert len(tree_levels(binary.children)) <= 12


def test_a_deep_tree_opens_fewer_children(device: Any, stages: Any, rng: Any) -> None:
    boxes = _boxes(rng, 300, "chain")
    cpu = _build(device, stages, rng, [300], boxes)
    wide, _ = wide_tree(int(cpu["segments"]["root"][0]), cpu["nodes"])
    assert stack_bound(wide.children) <= STACK_LIMIT
    stack = cpu["nodes"]["stack"][: int(cpu["segments"]["created"][0])]
    assert ((stack & 255) <= (stack >> 24) + STACK_LIMIT - MAX_DEPTH).all()


def test_depth_first_and_not_past_the_end(device: Any, stages: Any, rng: Any) -> None:
    boxes = _boxes(rng, 60, "random")
    cpu = _build(device, stages, rng, [60], boxes)
    words, base = cpu["words"], unpack_header(cpu["words"])
    wide, _ = wide_tree(int(cpu["segments"]["root"][0]), cpu["nodes"])
    rank = depth_first(wide.children)[0]
    pointers = words[32:36] >> 3
    assert pointers[pointers < base.leaf_unit].min() == 4 and rank[0] == 0
    gpu = {name: device.upload(name, value) for name, value in cpu.items() if name != "parameters"}
    cpu["trees"]["limit_unit"] = -(-base.size_units // 4) * 4 - 1
    gpu["parameters"] = device.upload("parameters", cpu["parameters"], "UNIFORM|COPY_DST")
    device.write(gpu["trees"], cpu["trees"])
    device.write(gpu["words"], np.full(len(words), 7, np.uint32))
    stages["cluster_encode"].run(gpu, 1)
    assert (device.read(gpu["words"]) == 7).all()


def test_two_float_against_float64(rng: np.random.Generator) -> None:
    x, y, z = (rng.normal(size=(1000, 3)).astype(np.float32) for _ in range(3))

    def value(a: Two) -> np.ndarray:
        return a.high.astype(np.float64) + a.low

    wide = [v.astype(np.float64) for v in (x, y, z)]
    assert (value(two_product(x, y)) == wide[0] * wide[1]).all()
    product = two_product(x, y)
    total = add(product, two_product(y, z))
    exact = wide[0] * wide[1] + wide[1] * wide[2]
    size = np.abs(wide[0] * wide[1]) + np.abs(wide[1] * wide[2])
    assert (np.abs(value(total) - exact) <= 2.0**-44 * size).all()
    assert np.abs(value(reciprocal(product)) * value(product) - 1).max() < 2.0**-42
    assert np.abs(value(multiply(product, total)) / (value(product) * value(total)) - 1).max() < (
        2.0**-42
    )
    cross = np.abs(value(two_cross(x, y)) - np.cross(wide[0], wide[1])).max()
    assert cross < 2.0**-40
