"""Passes encoded straight into wgpu-native: as wgpu-py's, errors included."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.gpu.compute_scope import ComputePasses
from engine.gpu.stage import Stage
from engine.gpu.timer import PassTimer

COUNT = """
@group(0) @binding(0) var<storage, read_write> sums: array<u32>;
@compute @workgroup_size(1) fn main(@builtin(workgroup_id) group: vec3u) {
    sums[group.x + 8u * group.y] += 1u;
}
"""


@pytest.fixture
def count(device: Any, tmp_path: Path) -> Stage:
    path = tmp_path / "count.wgsl"
    path.write_text(COUNT)
    return Stage(device, "count", str(path))


def test_dispatches_arrive_pass_after_pass(device: Any, count: Stage) -> None:
    sums = device.upload("sums", np.zeros(16, np.uint32))
    arguments = device.upload("arguments", np.array([9, 2, 2, 1], np.uint32), "INDIRECT|COPY_DST")
    passes = ComputePasses()
    for _ in range(2):  # the second time with the descriptors of the first
        encoder = device.wgpu.create_command_encoder()
        scope = passes.begin(encoder, "direct")
        count.dispatch(scope, {"sums": sums}, 3)
        count.dispatch(scope, {"sums": sums}, (1, 2))
        scope.end()
        scope = passes.begin(encoder, "indirect")
        count.dispatch_indirect(scope, {"sums": sums}, arguments, 4)
        scope.end()
        device.wgpu.queue.submit([encoder.finish()])
    assert device.read(sums).tolist() == [6, 4, 2, 0, 0, 0, 0, 0, 4, 2, 0, 0, 0, 0, 0, 0]


def test_an_error_in_a_pass_is_raised_when_its_encoder_ends(device: Any, count: Stage) -> None:
    encoder = device.wgpu.create_command_encoder()
    scope = ComputePasses().begin(encoder, "unbound")
    scope.set_pipeline(count._pipeline.native)
    scope.dispatch_workgroups(1)  # without a bind group
    scope.end()
    with pytest.raises(Exception, match="(?i)bind ?group"):
        encoder.finish()


def test_timestamps_are_those_of_the_timer(device: Any, count: Stage) -> None:
    timer, passes = PassTimer(device, 2), ComputePasses()
    if not timer.enabled:
        return
    sums = device.upload("sums", np.zeros(16, np.uint32))
    encoder = device.wgpu.create_command_encoder()
    for index, label in enumerate(("first", "second")):
        scope = passes.begin(encoder, label, timer.writes(index))
        count.dispatch(scope, {"sums": sums}, 8)
        scope.end()
    timer.resolve(encoder)
    device.wgpu.queue.submit([encoder.finish()])
    spans = timer.read_ms()
    assert spans.shape == (2, 2) and np.isfinite(spans).all()
