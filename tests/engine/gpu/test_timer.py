"""Timestamps of passes, in order and in milliseconds."""

from typing import Any

import numpy as np
import pytest

from engine.gpu.device import open_device
from engine.gpu.stage import Stage
from engine.gpu.timer import PassTimer

SPIN = """
override ROUNDS: u32 = 1u;
@group(0) @binding(0) var<storage, read_write> values: array<u32>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) {
    var x = id.x;
    for (var i = 0u; i < ROUNDS; i += 1u) { x = x * 747796405u + 2891336453u; }
    values[id.x] = x;
}
"""


def test_begin_before_end_and_passes_in_order(wgsl: Any) -> None:
    # A device of its own: once llvmpipe has cleared a texture, it writes the begin of a pass that
    # touches buffers only when the pass has ended.
    device = open_device()
    if "timestamp-query" not in device.features:
        pytest.skip("this adapter has no timestamps")
    path = wgsl(SPIN)
    short = Stage(device, "short", path)
    long = Stage(device, "long", path, constants={"ROUNDS": 100})
    values = device.buffer("values", 4 * 64 * 2048)
    took = np.full(3, np.inf)
    for _ in range(4):  # the first submission compiles, a busy machine may interrupt another
        timer = PassTimer(device, 3)
        encoder = device.wgpu.create_command_encoder()
        for index, item in enumerate((short, long, short)):
            scope = encoder.begin_compute_pass(timestamp_writes=timer.writes(index))
            item.dispatch(scope, {"values": values}, 2048)
            scope.end()
        timer.resolve(encoder)
        device.wgpu.queue.submit([encoder.finish()])
        begin, end = timer.read_ms().T
        assert begin.shape == (3,) and begin[0] == 0
        assert (begin <= end).all() and (begin[1:] >= end[:-1]).all()
        took = np.minimum(took, end - begin)
    # A fast GPU spends most of either on starting it.
    assert took[1] > 1.5 * max(took[0], took[2]), took
    # Milliseconds: 13 million steps take neither a microsecond nor a minute.
    assert 1e-3 < took[1] < 6e4


def test_without_timestamps_times_are_nan(device: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(device, "timestamp_period_ns", 0.0)
    timer = PassTimer(device, 2)
    assert timer.writes(0) is None and device.timing_source == "wall-clock"
    timer.resolve(None)  # nothing to do, so no encoder is needed
    assert np.isnan(timer.read_ms()).all() and timer.read_ms().shape == (2, 2)


def test_no_passes(device: Any) -> None:
    assert PassTimer(device, 0).read_ms().shape == (0, 2)
