"""Modules without run-time checks give the same results over valid data."""

from typing import Any

import numpy as np
import pytest

from bvh.build import BuildOptions, build_blas
from bvh.gpu.trace_rays import RayTracer, Variant
from bvh.rays import make_rays
from bvh.scene_bvh import assemble
from bvh.tlas import BvhInstance

LOOP = """
@group(0) @binding(0) var<storage, read> links: array<u32>;
@group(0) @binding(1) var<storage, read_write> length: array<u32>;
@compute @workgroup_size(8)
fn main(@builtin(global_invocation_id) id: vec3u) {
    var at = id.x;
    var steps = 0u;
    loop {
        if (at == 0u) { break; }
        at = links[at];
        steps += 1u;
    }
    length[id.x] = steps;
}
"""


def test_a_loop_over_indices(device: Any, stage: Any, rng: Any) -> None:
    links = np.array([rng.integers(0, max(1, i)) for i in range(64)], np.uint32)
    expected = np.zeros(64, int)
    for i in range(1, 64):
        expected[i] = 1 + expected[links[i]]
    for trusted in (False, True):
        length = device.buffer("length", 256)
        stage(LOOP, trusted=trusted).run(
            {"links": device.upload("links", links), "length": length}, 8
        )
        assert device.read(length)[:64].tolist() == expected.tolist()


@pytest.mark.parametrize("nodes", ["fp16", "fp32"])
def test_traversal(device: Any, rng: Any, nodes: str) -> None:
    corners = (rng.random((300, 1, 3)) + 0.1 * rng.random((300, 3, 3))).astype(np.float32)
    ids = np.arange(300, dtype=np.uint32)
    blas = build_blas(corners, 0 * ids, ids, np.array([True]), BuildOptions(nodes=nodes))
    bvh = assemble([blas], ["soup"], [BvhInstance(0)])
    rays = make_rays(
        rng.random((2000, 3)) - [0, 0, 2], rng.normal(size=(2000, 3)) * 0.2 + [0, 0, 1]
    )
    plain, trusted = (
        RayTracer(device, bvh.words, Variant("t"), trusted=trusted).trace(rays).hits
        for trusted in (False, True)
    )
    assert (plain["object"] == 0).mean() > 0.05
    assert plain.tobytes() == trusted.tobytes()
