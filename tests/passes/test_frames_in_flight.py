"""Frames that nobody waits for say the same as frames that are waited for."""

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from passes import hybrid, traverse_passes
from passes.frame_options import FrameOptions
from passes.frame_stats import FrameStats
from passes.gpu_scene import GpuScene
from passes.hybrid import HybridFrame
from passes.node_histogram import BINS, groups, percentiles
from passes.rays import RAY_TYPES
from passes.twins.node_histogram import node_histogram

SIZE = (64, 48)


@pytest.fixture(scope="module")
def scene(device: Any, room: Any) -> GpuScene:
    return GpuScene(device, room)


def wait_for(frame: HybridFrame) -> FrameStats:
    end = time.perf_counter() + 60
    while time.perf_counter() < end:
        stats = frame.poll()
        if stats is not None:
            return stats
        time.sleep(0.0005)
    raise AssertionError("no statistics within a minute")


@pytest.mark.parametrize("count", [False, True])
def test_the_numbers_are_those_of_run(device: Any, room: Any, scene: GpuScene, count: bool) -> None:
    waited, flying = (
        HybridFrame(device, room, FrameOptions(*SIZE, count=count), scene) for _ in range(2)
    )
    for index in range(3):
        expected = waited.run(index, index + 1)
        assert flying.submit(index, index + 1)
        stats = wait_for(flying)
        assert stats.forced_waits == 0 and stats.readback_bytes > 0 and stats.cpu_ms > 0
        for field in ("rays", "objects", "dropped", "valid", "counted", "failures"):
            assert getattr(stats, field) == getattr(expected, field), field
        assert stats.upload_bytes == expected.upload_bytes
        assert list(stats.passes) == list(expected.passes)
    assert waited.result_hash() == flying.result_hash()
    np.testing.assert_array_equal(waited.image(), flying.image())


def test_three_fly_and_the_fourth_is_not_drawn(device: Any, room: Any, scene: GpuScene) -> None:
    frame = HybridFrame(device, room, FrameOptions(*SIZE), scene)
    assert frame.poll() is None
    assert [frame.submit(i, i + 1) for i in range(5)] == [True, True, True, False, False]
    device.wait()
    three = HybridFrame(device, room, FrameOptions(*SIZE), scene)
    three.render(3)
    np.testing.assert_array_equal(frame.image(), three.image())
    wait_for(frame)
    assert frame.submit(3, 4)


def test_the_newest_of_those_that_arrived(device: Any, room: Any, scene: GpuScene) -> None:
    frame = HybridFrame(device, room, FrameOptions(*SIZE), scene)
    shadows = [frame.run(index).rays["shadow"].rays for index in range(3)]
    assert len(set(shadows)) == 3
    for index in range(3):
        frame.submit(index)
    device.wait()
    time.sleep(0.05)  # for the thread that tells
    assert wait_for(frame).rays["shadow"].rays == shadows[2]
    assert frame.poll() is None


def test_many_frames_neither_wait_nor_grow(device: Any, room: Any, scene: GpuScene) -> None:
    frame = HybridFrame(device, room, FrameOptions(16, 12, count=True), scene)
    frame.submit()
    wait_for(frame)
    before = (device.allocated_bytes, device.forced_waits, device.pipelines.made)
    drawn = 0
    for index in range(200):
        drawn += frame.submit(index)
        frame.poll()
    assert drawn > 20
    assert (device.allocated_bytes, device.forced_waits, device.pipelines.made) == before


def test_a_gpu_times_passes_by_timestamps(
    device: Any, room: Any, scene: GpuScene, monkeypatch: Any
) -> None:
    if not device.timestamp_period_ns:
        pytest.fail("the adapter has no timestamps")
    monkeypatch.setattr(device, "info", replace(device.info, adapter_type="DiscreteGPU"))
    frame = HybridFrame(device, room, FrameOptions(*SIZE), scene)
    frame.submit()
    stats = wait_for(frame)
    assert stats.timing_source == "timestamp-query"
    assert all(ms >= 0 for ms in stats.passes.values()) and stats.frame_total_ms > 0
    spent = sum(stats.passes.values())
    assert stats.frame_total_ms == pytest.approx(spent + stats.frame_gaps_ms)


def test_full_queues_are_flagged_and_grow(device: Any, room: Any, scene: GpuScene) -> None:
    frame = HybridFrame(device, room, FrameOptions(*SIZE, queue_fraction=0.05), scene)
    roomy = HybridFrame(device, room, FrameOptions(*SIZE), scene)
    expected = roomy.run()
    seen, read_ms = [], []
    for _ in range(6):
        frame.submit()
        read_ms.append(frame.read_back_ms)
        seen.append(wait_for(frame))
        if seen[-1].valid:
            break
        read_ms.append(frame.read_back_ms)
    assert read_ms == sorted(read_ms) and frame.made > 1, "a frame made anew forgets no time"
    assert not seen[0].valid and seen[0].dropped > 0 and seen[-1].rays == expected.rays
    assert frame.result_hash() == roomy.result_hash()


def test_an_overflowed_stack_is_flagged_and_grows(
    device: Any, room: Any, scene: GpuScene, tmp_path: Path, monkeypatch: Any
) -> None:
    def shader(entries: int) -> str:
        path = tmp_path / f"stack_{entries}.wgsl"
        path.write_text(f"const STACK_SIZE: u32 = {entries}u;\n")
        return str(path)

    right = HybridFrame(device, room, FrameOptions(*SIZE), scene)
    expected = right.run()
    monkeypatch.setattr(hybrid, "STACK_SIZES", (4, 32))
    monkeypatch.setattr(traverse_passes, "stack_shader", shader)
    frame = HybridFrame(device, room, FrameOptions(*SIZE, stack=4), scene)
    frame.submit()
    first = wait_for(frame)
    assert not first.valid and first.stack_overflow
    frame.submit()
    second = wait_for(frame)
    assert frame.options.stack == 32 and second.valid and second.rays == expected.rays
    frame.submit()
    assert wait_for(frame).valid and frame.options.stack == 32


# -- percentiles ---------------------------------------------------------------------------------


@pytest.mark.parametrize("rays", [1, 2, 3, 7, 100, 4999])
def test_percentiles_are_numpys(rng: Any, rays: int) -> None:
    wanted = [*np.linspace(0, 100, 77).tolist(), 99.9]
    for top in (2, 30, 90_000):
        nodes = rng.integers(1, top, rays)
        histogram = np.bincount(nodes, minlength=BINS).astype(np.uint32)
        assert percentiles(histogram, wanted) == np.percentile(nodes, wanted).tolist()


def test_percentiles_of_nothing() -> None:
    assert percentiles(np.zeros(BINS, np.uint32), [50, 95]) == [0.0, 0.0]


def test_counted_frames_have_the_percentiles_of_every_ray(
    device: Any, room: Any, scene: GpuScene
) -> None:
    frame = HybridFrame(device, room, FrameOptions(*SIZE, count=True), scene)
    frame.run(1)
    stats = frame.run()
    for name, ray in stats.rays.items():
        item = next(r for r in RAY_TYPES if r.name == name)
        histogram = device.read(frame.data.resources[f"{name}_node_histogram"])
        assert histogram.sum() == ray.rays  # of this frame alone
        nodes = frame.data.read_slot_counts(item, "nodes")
        sent = nodes[nodes > 0]
        assert len(sent) == ray.rays
        found = [ray.nodes_p50, ray.nodes_p95, ray.nodes_max]
        assert found == np.percentile(sent, [50, 95, 100]).tolist()


@pytest.mark.parametrize("slots_per_pixel", [1, 2])
@pytest.mark.parametrize("size", [(1, 1), (13, 7), (64, 64), (97, 60)])
def test_the_histogram_stage_equals_its_twin(
    device: Any, rng: Any, size: tuple[int, int], slots_per_pixel: int
) -> None:
    from engine.gpu.stage import Stage
    from passes.frame_uniforms import FRAME_UNIFORMS

    record = np.zeros(1, FRAME_UNIFORMS.dtype)
    record["width"], record["height"] = size
    slots = size[0] * size[1] * slots_per_pixel
    # Slots without a ray, few and many nodes, more than bins, and what lies behind the nodes.
    counts = rng.integers(0, 40, slots + 50).astype(np.uint32)
    counts[counts < 8] = 0
    many = rng.random(len(counts)) < 0.1
    counts[many] = rng.integers(500, 900, many.sum())
    counts[:1] = 5000
    twin = np.zeros(900, np.uint32)
    node_histogram(record[0], counts, twin, slots_per_pixel=slots_per_pixel)
    stage = Stage(
        device,
        "node_histogram",
        "passes/shaders/node_histogram.wgsl",
        constants={"SLOTS_PER_PIXEL": slots_per_pixel},
    )
    histogram = device.buffer("histogram", 3600)
    resources = {
        "frame": device.upload("frame", record, "UNIFORM|COPY_DST"),
        "slot_counts": device.upload("slot_counts", counts),
        "histogram": histogram,
    }
    stage.run(resources, groups(slots))
    assert device.read(histogram).tolist() == twin.tolist()
    assert twin[899] >= 1 and twin.sum() == np.count_nonzero(counts[:slots])
