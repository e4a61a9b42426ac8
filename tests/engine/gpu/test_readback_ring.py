"""The ring: order, a full ring, sizes, no waiting, no growth, a lost device."""

import time
from typing import Any

import numpy as np
import pytest

from engine.gpu.device import open_device
from engine.gpu.errors import AdapterError
from engine.gpu.readback_ring import ReadbackRing
from engine.gpu.stage import Stage


def send(ring: ReadbackRing, copies: list[tuple[Any, int, int]], tag: Any) -> bool:
    encoder = ring.device.wgpu.create_command_encoder()
    taken = ring.encode(encoder, copies, tag)
    ring.device.wgpu.queue.submit([encoder.finish()])
    ring.submitted()
    return taken


def receive(ring: ReadbackRing, count: int) -> list[tuple[Any, bytes]]:
    """Polls until `count` have arrived."""
    found: list[tuple[Any, bytes]] = []
    end = time.perf_counter() + 60
    while len(found) < count:
        assert time.perf_counter() < end, "nothing arrived within a minute"
        found += ring.poll()
        time.sleep(0.0005)
    return found


def test_what_was_copied_arrives_packed_and_in_order(device: Any, rng: Any) -> None:
    words = rng.integers(0, 1 << 32, 64, dtype=np.uint32)
    one, two = device.upload("one", words), device.upload("two", words[::-1])
    ring = ReadbackRing(device, 64)
    for first in (3, 11, 20):
        assert send(ring, [(one, 4 * first, 12), (two, 8, 4)], ("frame", first))
    for first, (tag, data) in zip((3, 11, 20), receive(ring, 3), strict=True):
        assert tag == ("frame", first)
        expected = [*words[first : first + 3], words[61]]
        assert np.frombuffer(data, np.uint32).tolist() == expected


def test_a_copy_holds_what_the_buffer_held_then(device: Any) -> None:
    buffer = device.buffer("value", 16)
    ring = ReadbackRing(device, 16)
    for value in (5, 6, 7):
        device.write(buffer, np.array([value], np.uint32))
        send(ring, [(buffer, 0, 4)], value)
    assert all(np.frombuffer(data, np.uint32)[0] == tag for tag, data in receive(ring, 3))


def test_a_full_ring_skips_and_counts(device: Any) -> None:
    buffer = device.upload("value", np.arange(4, dtype=np.uint32))
    ring = ReadbackRing(device, 16, slots=2)
    taken = [send(ring, [(buffer, 0, 16)], tag) for tag in range(4)]
    assert taken == [True, True, False, False]
    assert (ring.skipped, ring.in_flight) == (2, 2)
    assert [tag for tag, _ in receive(ring, 2)] == [0, 1]
    assert send(ring, [(buffer, 0, 16)], 4) and [tag for tag, _ in receive(ring, 1)] == [4]
    assert (ring.skipped, ring.in_flight) == (2, 0)


def test_sizes_change_from_copy_to_copy_and_too_large_ones_are_refused(device: Any) -> None:
    buffer = device.upload("values", np.arange(64, dtype=np.uint32))
    ring = ReadbackRing(device, 250)  # rounded up to 256
    for size in (256, 4, 100):
        send(ring, [(buffer, 0, size)], size)
    for tag, data in receive(ring, 3):
        assert data == np.arange(64, dtype=np.uint32).tobytes()[:tag]
    encoder = device.wgpu.create_command_encoder()
    for size in (260, 0):
        with pytest.raises(ValueError, match=f"{size} bytes do not fit a ring of 256"):
            ring.encode(encoder, [(buffer, 0, size)], None)


def test_a_thousand_rounds_neither_grow_nor_wait(device: Any) -> None:
    buffer = device.buffer("values", 256)
    ring = ReadbackRing(device, 256)
    allocated, waits = device.allocated_bytes, device.forced_waits
    sent, got, polls = 0, [], []
    for tag in range(1000):
        sent += send(ring, [(buffer, 0, 256)], tag)
        start = time.perf_counter()
        got += [tag for tag, _ in ring.poll()]
        polls.append(1e3 * (time.perf_counter() - start))
    got += [tag for tag, _ in receive(ring, ring.in_flight)]
    assert len(got) == sent == 1000 - ring.skipped and got == sorted(got)
    assert sent > 100
    assert (device.allocated_bytes, device.forced_waits) == (allocated, waits)
    assert np.median(polls) < 1.0


def test_poll_returns_at_once_while_the_gpu_works(device: Any) -> None:
    # Dispatches that take a while.
    count = 1 << 21
    stage = Stage(device, "probe", "engine/gpu/shaders/probe.wgsl")
    parameters = np.array([0, count, 0, 0], np.uint32)
    resources = {
        "parameters": device.upload("parameters", parameters, "UNIFORM|COPY_DST"),
        "operands": device.buffer("operands", 16 * count),
        "answers": device.buffer("answers", 36 * count),
    }
    ring = ReadbackRing(device, 16)
    encoder = device.wgpu.create_command_encoder()
    scope = encoder.begin_compute_pass()
    for _ in range(5):
        stage.dispatch(scope, resources, count // 64)
    scope.end()
    assert ring.encode(encoder, [(resources["answers"], 0, 4)], "done")
    device.wgpu.queue.submit([encoder.finish()])
    start = time.perf_counter()
    ring.submitted()
    early = ring.poll()
    asked_ms = 1e3 * (time.perf_counter() - start)
    receive(ring, 1)
    whole_ms = 1e3 * (time.perf_counter() - start)
    assert early == [] and asked_ms < 0.5 * whole_ms


def test_a_lost_device_is_an_adapter_error() -> None:
    device = open_device()
    buffer = device.buffer("value", 16)
    ring = ReadbackRing(device, 16)
    encoder = device.wgpu.create_command_encoder()
    assert ring.encode(encoder, [(buffer, 0, 16)], None)
    device.wgpu.queue.submit([encoder.finish()])
    device.wgpu.destroy()
    with pytest.raises(AdapterError, match="the device was lost"):
        ring.submitted()


def test_a_mapping_that_fails_is_an_adapter_error(device: Any) -> None:
    buffer = device.buffer("value", 16)
    ring = ReadbackRing(device, 16)
    send(ring, [(buffer, 0, 16)], None)
    ring._mapping[0].mapping.buffer.destroy()  # what a lost device does to its buffers
    with pytest.raises(AdapterError, match="the device was lost"):
        receive(ring, 1)
