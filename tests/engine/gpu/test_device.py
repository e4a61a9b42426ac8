"""Device: choosing an adapter, what it refuses and how it says so, buffers."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from engine.gpu import device as module
from engine.gpu.device import Device, list_adapters, open_device
from engine.gpu.errors import AdapterError, LimitError


def test_an_unknown_adapter_lists_what_there_is() -> None:
    with pytest.raises(AdapterError) as caught:
        open_device("Voodoo 2")
    message = str(caught.value)
    assert caught.value.exit_code == 3 and "\n" not in message
    assert message.startswith("no adapter matches 'Voodoo 2'")
    for index, info in enumerate(list_adapters()):
        assert f"{index}: {info.adapter}" in message


@pytest.mark.parametrize("name", ["99", ""])
def test_adapters_by_number_and_name(name: str) -> None:
    adapters = list_adapters()
    assert adapters
    if name:
        with pytest.raises(AdapterError, match="no adapter matches '99'"):
            open_device(name)
    else:
        by_index = open_device("0")
        by_name = open_device(adapters[0].adapter.upper())
        assert by_index.info == by_name.info == adapters[0] == open_device().info


def test_no_driver_is_one_line_with_what_to_install(monkeypatch: Any) -> None:
    monkeypatch.setattr(module, "_ranked_adapters", lambda: [])
    with pytest.raises(AdapterError, match="no adapter: install a Vulkan driver") as caught:
        open_device()
    assert caught.value.exit_code == 3


@pytest.mark.parametrize("name", [None, "0", "SOFT"])
def test_opengl_alone_is_one_line_with_what_to_install(monkeypatch: Any, name: str | None) -> None:
    """As where the Vulkan loader finds no driver and Mesa has its OpenGL one."""
    info = dict(device="soft", vendor="", adapter_type="CPU", description="d")
    adapter = SimpleNamespace(info={**info, "backend_type": "OpenGL"})
    monkeypatch.setattr(module, "_ranked_adapters", lambda: [adapter])
    with pytest.raises(AdapterError, match="OpenGL is not enough, a Vulkan driver is") as caught:
        open_device(name)
    assert caught.value.exit_code == 3 and "mesa-vulkan-drivers" in str(caught.value)


def test_vulkan_on_a_cpu_is_opened_before_a_card_by_opengl(monkeypatch: Any) -> None:
    info = dict(device="any", vendor="", description="d")
    kinds = (("DiscreteGPU", "OpenGL"), ("CPU", "Vulkan"))
    adapters = [
        SimpleNamespace(info={**info, "adapter_type": kind, "backend_type": backend})
        for kind, backend in kinds
    ]
    monkeypatch.setattr(module, "_ranked_adapters", lambda: adapters)
    monkeypatch.setattr(module, "Device", lambda adapter: adapter)
    assert open_device() is adapters[1]


def test_a_gpu_comes_before_a_cpu_and_vulkan_before_opengl(monkeypatch: Any) -> None:
    class Fake:
        def __init__(self, name: str, kind: str, backend: str) -> None:
            self.info = dict(
                device=name, vendor="", adapter_type=kind, backend_type=backend, description="d"
            )

    class Gpu:
        @staticmethod
        def enumerate_adapters_sync() -> list[Fake]:
            return [
                Fake("soft", "CPU", "OpenGL"),
                Fake("soft", "CPU", "Vulkan"),
                Fake("strange", "NewKind", "Vulkan"),
                Fake("card", "DiscreteGPU", "OpenGL"),
                Fake("card", "DiscreteGPU", "Vulkan"),
            ]

    class Wgpu:
        gpu = Gpu

    monkeypatch.setattr(module, "_import_wgpu", lambda: Wgpu)
    order = [(info.adapter, info.backend) for info in list_adapters()]
    assert order == [
        ("card", "Vulkan"),
        ("card", "OpenGL"),
        ("soft", "Vulkan"),
        ("soft", "OpenGL"),
        ("strange", "Vulkan"),
    ]


def test_a_buffer_beyond_the_binding_limit_is_refused_before_allocation(
    device: Device, monkeypatch: Any
) -> None:
    limit = 128 * 1024 * 1024
    monkeypatch.setitem(device.limits, "max-storage-buffer-binding-size", limit)

    class Forbidden:
        def create_buffer(self, **_: Any) -> None:
            raise AssertionError("allocated")

    real, before = device.wgpu, device.allocated_bytes
    monkeypatch.setattr(device, "wgpu", Forbidden())
    with pytest.raises(LimitError) as caught:
        device.buffer("the bvh buffer", limit + 1)
    message = str(caught.value)
    assert "the bvh buffer" in message and "\n" not in message
    assert f"{limit + 16:,} bytes" in message and f"{limit:,} bytes" in message
    assert device.info.adapter in message and caught.value.exit_code == 2
    assert device.allocated_bytes == before
    monkeypatch.setattr(device, "wgpu", real)
    device.check_binding("exactly the limit", limit)


def test_the_largest_buffer_counts_too(device: Device, monkeypatch: Any) -> None:
    monkeypatch.setitem(device.limits, "max-buffer-size", 1000)
    with pytest.raises(LimitError, match=r"x needs 1,008 bytes.* 1,000 bytes"):
        device.buffer("x", 1001)


@pytest.mark.parametrize("dtype,count", [(np.uint8, 7), (np.uint16, 5), (np.float32, 3)])
def test_any_array_comes_back_as_it_went(device: Device, dtype: Any, count: int) -> None:
    values = np.arange(1, 2 * count + 1, dtype=dtype)[::2]  # not contiguous
    buffer = device.upload("values", values)
    assert device.read(buffer, dtype, count=count).tolist() == values.tolist()
    raw = device.read(buffer, np.uint8)
    assert buffer.size % 16 == 0 and not raw[values.nbytes :].any()


def test_an_empty_array_has_a_buffer_that_can_be_bound(device: Device) -> None:
    assert device.upload("nothing", np.zeros(0, np.uint32)).size >= 4
    assert len(device.read(device.buffer("b", 64), np.uint32, offset=64)) == 0


def test_traffic_is_counted(device: Device) -> None:
    up, down, waits = device.upload_bytes, device.readback_bytes, device.forced_waits
    buffer = device.upload("b", np.zeros(8, np.uint32))
    device.write(buffer, np.ones(2, np.uint32), offset=8)
    assert device.upload_bytes - up == 40
    assert device.read(buffer, count=4).tolist() == [0, 0, 1, 1]
    assert (device.readback_bytes - down, device.forced_waits - waits) == (16, 1)


def test_limits_and_features_are_the_adapters(device: Device) -> None:
    assert device.limits["max-storage-buffers-per-shader-stage"] >= 8
    assert device.features <= set(module.WANTED)
    by_timestamps = "timestamp-query" in device.features and not device.info.is_cpu
    assert device.timing_source == ("timestamp-query" if by_timestamps else "wall-clock")
    assert ("timestamp-query" in device.features) == (device.timestamp_period_ns > 0)
