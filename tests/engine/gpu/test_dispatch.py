"""More than 65,535 workgroups: folded into two dimensions, directly and through an indirect
dispatch, and every group runs on the GPU."""

from typing import Any

import numpy as np
import pytest

from engine.gpu.device import WORKGROUPS_PER_DIMENSION, fold_groups
from engine.gpu.stage import Stage
from passes.queue import GROUP_SIZE, QUEUE_HEADER

MANY = 2 * WORKGROUPS_PER_DIMENSION + 1
MARK = """
@group(0) @binding(0) var<storage, read_write> seen: array<u32>;
@compute @workgroup_size(1)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u) {
    let index = group.y * groups.x + group.x;
    if (index < arrayLength(&seen)) { seen[index] += 1u; }
}
"""


@pytest.mark.parametrize("groups", [1, 2, 65534, 65535, 65536, 65537, 131070, 131071, 16_777_216])
def test_folded_counts_cover_and_waste_less_than_a_row(groups: int) -> None:
    x, y, z = fold_groups(groups)
    assert max(x, y, z) <= WORKGROUPS_PER_DIMENSION
    assert 0 <= x * y * z - groups < y


@pytest.mark.parametrize("groups", [1, 65535, 65536, MANY])
def test_every_group_of_a_dispatch_runs_once(device: Any, stage: Any, groups: int) -> None:
    seen = device.upload("seen", np.zeros(groups, np.uint32))
    stage(MARK).run({"seen": seen}, groups)
    assert (device.read(seen, count=groups) == 1).all()


def indirect(device: Any, stage: Any, arguments: Any, groups: int) -> Any:
    """How often each group ran when the counts came from the buffer `arguments`."""
    item = stage(MARK)
    seen = device.upload("seen", np.zeros(groups, np.uint32))
    encoder = device.wgpu.create_command_encoder()
    scope = encoder.begin_compute_pass()
    item.dispatch_indirect(scope, {"seen": seen}, arguments)
    scope.end()
    device.wgpu.queue.submit([encoder.finish()])
    return device.read(seen, count=groups)


@pytest.mark.parametrize("groups", [0, 1, 65535, 65536, MANY])
def test_every_group_of_an_indirect_dispatch_runs_once(
    device: Any, stage: Any, groups: int
) -> None:
    """The arguments come from the frame's own stage."""
    header = np.zeros(1, QUEUE_HEADER.dtype)
    header["count"] = max(0, groups * GROUP_SIZE - 5)
    header["capacity"] = 0xFFFFFFFF
    arguments = device.buffer("arguments", 12, "STORAGE|INDIRECT|COPY_SRC|COPY_DST")
    writer = Stage(device, "arguments", "passes/shaders/arguments.wgsl")
    writer.run({"queue": device.upload("queue", header), "arguments": arguments}, 1)
    x, y, z = (int(n) for n in device.read(arguments, count=3))
    assert max(x, y, z) <= WORKGROUPS_PER_DIMENSION and groups <= x * y * z < groups + max(1, y)
    assert (indirect(device, stage, arguments, max(groups, 1)) == min(groups, 1)).all()


@pytest.mark.parametrize(
    "count,capacity,groups", [(0, 64, 0), (1, 64, 1), (64, 64, 1), (65, 128, 2), (1000, 64, 1)]
)
def test_arguments_of_a_queue(device: Any, count: int, capacity: int, groups: int) -> None:
    """What was dropped past the capacity is not dispatched."""
    header = np.zeros(1, QUEUE_HEADER.dtype)
    header["count"], header["capacity"] = count, capacity
    arguments = device.buffer("arguments", 12)
    writer = Stage(device, "arguments", "passes/shaders/arguments.wgsl")
    writer.run({"queue": device.upload("queue", header), "arguments": arguments}, 1)
    assert device.read(arguments, count=3).tolist() == [groups, 1, 1]


def test_an_unfolded_indirect_dispatch_does_nothing(device: Any, stage: Any) -> None:
    """Why the fold exists. A driver that ran the groups after all would make it needless."""
    counts = np.array([WORKGROUPS_PER_DIMENSION + 1, 1, 1, 0], np.uint32)
    arguments = device.upload("arguments", counts, "INDIRECT|COPY_DST")
    assert not indirect(device, stage, arguments, WORKGROUPS_PER_DIMENSION + 1).any()
