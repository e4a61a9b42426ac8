"""The encoder on the GPU against its twins and against `bvh.encode`, byte for byte."""

from typing import Any

import numpy as np
import pytest

from bvh.builders.lbvh import LbvhConfig, build
from bvh.encode import encode, make_image, pack_blocks
from bvh.gpu.build_records import group_count
from bvh.gpu.encode import GpuEncode, encode_parameters, most_units
from bvh.gpu.encode_records import ENCODE_SUMMARY
from bvh.gpu.pair_records import host_blocks, triangle_ids
from bvh.gpu.pairing import pair_on_cpu
from bvh.header import KIND_BLAS
from bvh.layout import round_half_outward
from bvh.transforms.collapse import collapse_best
from bvh.tree import depth_first, leaf_slots, tree_levels
from bvh.triangles import TriangleSet
from engine.gpu import shader
from engine.gpu.errors import LimitError
from engine.gpu.stage import Stage, submit_pass

CAPACITY = 6000
GEOMETRIES = 5
OUTPUTS = ("words", "parent_links")


@pytest.fixture(scope="module")
def encoders(device: Any) -> dict[str, GpuEncode]:
    """For the whole file: every use after the first finds dirty scratch."""
    return {nodes: GpuEncode(device, CAPACITY, nodes) for nodes in ("fp32", "fp16", "auto")}


def _triangles(rng: np.random.Generator, count: int, reach: float = 20.0) -> np.ndarray:
    """A soup of many sizes, every second triangle the other half of a quad."""
    size = 10.0 ** rng.uniform(-5, -0.5, (count, 1, 1))
    triangles = reach * (rng.random((count, 1, 3)) + size * rng.normal(size=(count, 3, 3)) + 0.2)
    other = triangles[: count // 2 * 2 : 2]
    triangles[1::2] = other[:, [0, 2, 1]]
    triangles[1::2, 0] = other[:, 1] + other[:, 2] - other[:, 0]
    # Any corner may be the one opposite the shared edge.
    corner = (np.arange(3) + np.arange(count)[:, None] // 3) % 3
    triangles = np.take_along_axis(triangles, corner[:, :, None], axis=1).astype(np.float32)
    triangles[5::37, 0] = triangles[5::37, 1]
    return triangles


def _scene(rng: np.random.Generator, triangles: np.ndarray, leaf: int, base: int = 0) -> Any:
    """(arrays of every binding, host's tree and leaves) of a soup; binary nodes are numbered at
    random."""
    count = len(triangles)
    geometry = (np.arange(count) // 2 % GEOMETRIES).astype(np.uint32)
    primitive = rng.permutation(count).astype(np.uint32)
    opaque = np.arange(GEOMETRIES) % 2 > 0
    ids = triangle_ids(geometry, primitive, opaque)
    state, blocks, boxes = pair_on_cpu(triangles, ids, leaf, count)
    tree = collapse_best(build(boxes, LbvhConfig()))
    inner, leaves = depth_first(tree.children)
    order = np.argsort(inner)
    old = tree.children[order]
    wide = np.where(old >= 0, inner[np.maximum(old, 0)], old).astype(np.int32)
    nodes = len(wide)
    below = leaf_slots(wide)
    counts = below.sum(axis=1)
    for level in reversed(tree_levels(wide)):
        child = wide[level]
        counts[level] += np.where(child >= 0, counts[np.maximum(child, 0)], 0).sum(axis=1)
    # A node's first leaf is its parent's, after what stands to the left.
    first = np.zeros(nodes, np.int64)
    for level in tree_levels(wide):
        size = np.where(wide[level] >= 0, counts[np.maximum(wide[level], 0)], below[level])
        at = first[level][:, None] + np.cumsum(size, axis=1) - size
        first[wide[level][wide[level] >= 0]] = at[wide[level] >= 0]
    places = 1 + rng.permutation(nodes + 6)[:nodes].astype(np.uint32)
    places[0] = 0
    ranges = np.zeros((nodes + 7, 2), np.uint32)
    ranges[places] = np.stack([first, first + np.maximum(counts, 1) - 1], axis=1)
    bounds = np.full((nodes + 7, 2, 3), 9e9, np.float32)
    bounds[places] = tree.bounds[order]
    units = base + most_units(CAPACITY)
    arrays = {
        "state": state,
        "wide_summary": np.array([nodes, len(tree_levels(wide)), 0], np.uint32),
        "wide_children": wide.reshape(-1),
        "places": places,
        "ranges": ranges.reshape(-1),
        "bounds": bounds.reshape(-1),
        "boxes": boxes.reshape(-1),
        "leaf_order": np.argsort(leaves).astype(np.uint32),
        "blocks": blocks.reshape(-1),
        "triangles": triangles.reshape(-1).view(np.uint32),
        "triangle_ids": ids.reshape(-1),
        "words": np.full(16 * units, 0xDEAD, np.uint32),
        "parent_links": np.full(units, 0xDEAD, np.uint32),
    }
    kept = TriangleSet(triangles, geometry, primitive, 0, 0)
    packed = pack_blocks(host_blocks(blocks), kept, opaque)
    return arrays, (tree, boxes, *packed)


def _host(arrays: Any, host: Any, nodes: str) -> tuple[np.ndarray, np.ndarray]:
    tree, boxes, leaves, types = host
    image = make_image(
        tree,
        boxes,
        leaves,
        types,
        kind=KIND_BLAS,
        nodes=nodes,
        primitive_count=int(arrays["state"]["triangles"][0]),
        geometry_count=GEOMETRIES,
    )
    return encode(image)


def _run(device: Any, item: GpuEncode, arrays: Any, base: int, capacity: int) -> Any:
    buffers = {name: device.upload(name, array) for name, array in arrays.items()}
    item.set_count(max(len(arrays["boxes"]) // 6, 1))
    item.set_output(base, capacity, GEOMETRIES)
    submit_pass(device, lambda scope: item.encode(scope, buffers))
    return [device.read(buffers[name], count=len(arrays[name])) for name in OUTPUTS]


@pytest.mark.parametrize("nodes", ["fp32", "fp16", "auto"])
@pytest.mark.parametrize("leaf", [1, 2])
@pytest.mark.parametrize("count", [0, 1, 2, 3, 257, 4001])
def test_bytes_are_the_hosts(
    device: Any, encoders: Any, rng: Any, count: int, leaf: int, nodes: str
) -> None:
    arrays, host = _scene(rng, _triangles(rng, count), leaf)
    words, links = _run(device, encoders[nodes], arrays, 0, most_units(CAPACITY))
    expected_words, expected_links = _host(arrays, host, nodes)
    units = len(expected_links)
    assert int(encoders[nodes].read_summary()["units"][0]) == units
    assert (words[: 16 * units] == expected_words).all()
    assert (links[:units] == expected_links).all()
    assert (words[16 * units :] == 0xDEAD).all() and (links[units:] == 0xDEAD).all()
    if count > 1000 and nodes == "auto":
        share = int(encoders[nodes].read_summary()["nodes_fp16"][0]) / len(host[0].children)
        assert 0.05 < share < 0.95


@pytest.mark.parametrize("nodes", ["fp32", "auto"])
def test_stages_equal_their_twins(encoders: Any, rng: Any, nodes: str, same_as_twin: Any) -> None:
    """Each fed the twins' results before it, at an offset in a larger buffer."""
    arrays, _ = _scene(rng, _triangles(rng, 3001), 2, base=12)
    arrays |= {
        "parameters": encode_parameters(12, most_units(CAPACITY), nodes, GEOMETRIES),
        "node_units": np.zeros(len(arrays["places"]), np.uint32),
        "node_count": np.zeros(1, np.uint32),
        "unit_total": np.zeros(1, np.uint32),
        "fan_total": np.zeros(1, np.uint32),
        "encode_summary": np.zeros(1, ENCODE_SUMMARY.dtype),
    }
    stages = encoders[nodes].stages
    groups = 2  # fewer than nodes need: lanes stride

    def same(name: str, groups: int, outputs: str) -> None:
        stage = stages[name]
        for binding in stage.bindings:
            if binding.type == "array<vec2u>" and binding.name in ("bounds", "boxes"):
                arrays[binding.name] = arrays[binding.name].view(np.uint32)
        same_as_twin(stage, arrays, groups, outputs)

    same("choose_formats", groups, "node_units node_count")
    arrays["unit_total"][0] = arrays["node_units"].sum()
    arrays["node_units"] = np.cumsum(arrays["node_units"], dtype=np.uint32) - arrays["node_units"]
    same("write_header", 1, "words encode_summary")
    same("link_nodes", groups, "words parent_links")
    same("pack_boxes", groups, "words")
    same("write_blocks", groups, "words")


def test_writes_nothing_where_it_does_not_fit(device: Any, encoders: Any, rng: Any) -> None:
    arrays, host = _scene(rng, _triangles(rng, 500), 2)
    units = len(_host(arrays, host, "auto")[1])
    words, links = _run(device, encoders["auto"], arrays, 0, units - 1)
    assert (words == 0xDEAD).all() and (links == 0xDEAD).all()
    with pytest.raises(LimitError, match=f"needs {64 * units:,} bytes.* {64 * units - 64:,}$"):
        encoders["auto"].read_summary()
    words, _ = _run(device, encoders["auto"], arrays, 0, units)
    assert words[0] != 0xDEAD and (words[16 * units :] == 0xDEAD).all()


def test_a_place_in_a_larger_buffer(device: Any, encoders: Any, rng: Any) -> None:
    """Pointers count from the container's start; only the descriptor knows the place."""
    arrays, host = _scene(rng, _triangles(rng, 300), 2, base=40)
    words, links = _run(device, encoders["auto"], arrays, 40, most_units(CAPACITY))
    expected, expected_links = _host(arrays, host, "auto")
    got = words[16 * 40 : 16 * 40 + len(expected)].copy()
    assert got[20] == 10 and expected[20] == 0
    got[20] = 0
    assert (got == expected).all()
    assert (links[40 : 40 + len(expected_links)] == expected_links).all()
    assert (words[: 16 * 40] == 0xDEAD).all() and (links[:40] == 0xDEAD).all()
    with pytest.raises(ValueError, match="256 bytes"):
        encoders["auto"].set_output(2, 100, 1)


def test_half_never_beyond_its_range(device: Any, encoders: Any, rng: Any) -> None:
    arrays, host = _scene(rng, _triangles(rng, 900, reach=1e5), 1)
    words, _ = _run(device, encoders["fp16"], arrays, 0, most_units(CAPACITY))
    expected, _ = _host(arrays, host, "fp16")
    assert (words[: len(expected)] == expected).all()
    summary = encoders["fp16"].read_summary()
    assert 0 < int(summary["nodes_fp16"][0]) < int(summary["nodes"][0]) - 1


def _awkward(rng: np.random.Generator) -> np.ndarray:
    """Floats around every edge of binary16: its range, its denormals, halfway between two."""
    halves = np.arange(0x7C00, dtype=np.uint16).view(np.float16).astype(np.float32)
    bits = halves.view(np.uint32)
    near = np.concatenate([bits, bits + 1, np.maximum(bits, 1) - 1, bits + 0x1000])
    small = np.array([0, 1, 0x7FFFFF, 0x800000, 0x33000000, 0x33800000, 0x33800001], np.uint32)
    large = np.array([0x477FE000, 0x477FE001, 0x477FFFFF, 0x47800000, 0x7F7FFFFF], np.uint32)
    soup = rng.integers(0, 0x7F800000, 4096, dtype=np.uint32)
    every = np.concatenate([near, small, large, soup])
    return np.concatenate([every, every | np.uint32(0x80000000)]).view(np.float32)


HALF_KERNEL = """
#import "bvh/gpu/shaders/half_bounds.wgsl"
@group(0) @binding(0) var<storage, read> values: array<f32>;
@group(0) @binding(1) var<storage, read_write> halves: array<vec2u>;
@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3u) {
    if (id.x >= arrayLength(&values)) { return; }
    halves[id.x] = vec2u(half_down(values[id.x]), half_up(values[id.x]));
}
"""


def test_half_rounding_is_exact(device: Any, rng: Any, monkeypatch: Any) -> None:
    read = shader._read
    monkeypatch.setattr(
        shader, "_read", lambda path: HALF_KERNEL if path == "test.wgsl" else read(path)
    )
    values = _awkward(rng)
    buffers = {
        "values": device.upload("values", values),
        "halves": device.buffer("halves", 8 * len(values)),
    }
    Stage(device, "half", "test.wgsl").run(buffers, group_count(len(values)))
    got = device.read(buffers["halves"], count=2 * len(values)).reshape(-1, 2)
    low, high = round_half_outward(values, values)
    assert (got[:, 0] == low).all() and (got[:, 1] == high).all()
