"""Corners gathered from vertex records are the builder's input, whatever lies around them."""

from typing import Any

import numpy as np

from bvh.gpu.gather_triangles import GpuGather
from engine.gpu.stage import submit_pass


def test_equals_the_twin(device: Any, rng: Any) -> None:
    vertices = rng.integers(0, 1 << 32, 5 + 8 * 100, np.uint32)
    triangles = [rng.integers(0, 100, (n, 3), np.uint32) for n in (90, 0, 17)]
    stage = GpuGather(device, triangles, vertex_words=8, vertex_first=5)
    buffers = {
        "positions": device.upload("positions", vertices),
        "triangles": device.buffer("triangles", 36 * 110),
    }
    submit_pass(device, lambda scope: stage.encode(scope, buffers))
    got = device.read(buffers["triangles"])
    flat = np.concatenate(triangles)
    expected = vertices[5:].reshape(-1, 8)[flat, :3].reshape(-1)
    assert (got[: len(expected)] == expected).all() and not got[len(expected) :].any()
    twin = np.zeros(len(got), np.uint32)
    corners = device.read(stage.resources["corner_vertices"])
    arrays = {"parameters": stage.record, "corner_vertices": corners}
    stage.stage.run_cpu({**arrays, "positions": vertices, "triangles": twin})
    assert (twin == got).all()
