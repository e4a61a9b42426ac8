"""Every workaround asks its switch, and does nothing once it is turned off."""

import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from engine.gpu import pipelines
from engine.gpu.device import Device
from engine.gpu.errors import UserError
from engine.gpu.faults import FAULTS, SWITCH, turned_off, works_around
from engine.gpu.shader import ShaderError, compose, without_barrier
from engine.gpu.stage import Stage, read_bindings
from engine.gpu.timer import PassTimer

ROOT = Path(__file__).resolve().parents[3]
SOURCES = [p for d in ("engine", "bvh", "passes", "treeline") for p in (ROOT / d).rglob("*.py")]


def test_each_switch_is_read_where_the_fault_says() -> None:
    asked: dict[str, set[str]] = {fault.name: set() for fault in FAULTS}
    for path in SOURCES:
        for name in re.findall(r'works_around\("([\w-]+)"\)', path.read_text("utf-8")):
            asked[name].add(str(path.relative_to(ROOT)))
    assert asked == {fault.name: set(fault.where) for fault in FAULTS}


def test_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(SWITCH, raising=False)
    assert turned_off() == frozenset() and works_around("contraction")
    monkeypatch.setenv(SWITCH, "contraction, live-stacks")
    assert not works_around("contraction") and works_around("window-abort")
    monkeypatch.setenv(SWITCH, "contractions")
    with pytest.raises(UserError, match="no fault is named 'contractions'; known: arrival"):
        turned_off()
    with pytest.raises(ValueError, match="no fault is named 'x'"):
        works_around("x")


def test_where_a_fault_is_expected() -> None:
    expected = {
        adapter: [f.name for f in FAULTS if f.expected_on(adapter)]
        for adapter in ("NVIDIA H200 (DiscreteGPU, Vulkan, 580.159.04)", "llvmpipe (CPU, Vulkan)")
    }
    h200, llvmpipe = expected.values()
    assert {"arrival-counters", "live-stacks", "contraction"} <= set(h200) - set(llvmpipe)
    assert "late-timestamps" in set(llvmpipe) - set(h200)


def test_barriers_are_taken_out(monkeypatch: pytest.MonkeyPatch, device: Any) -> None:
    taken = 0
    for path in (p for d in ("engine", "bvh") for p in (ROOT / d).rglob("*.wgsl")):
        for line in path.read_text("utf-8").splitlines():
            if re.search(r"bitcast<[^>]*f(32)?>\(bitcast<.*\^", line):
                plain = without_barrier(line)
                assert "^" not in plain and plain.count("(") == plain.count(")"), line
                taken += 1
    assert taken >= 15
    assert without_barrier("let x = a ^ b;") == "let x = a ^ b;"
    path = "bvh/gpu/shaders/morton.wgsl"
    kept = compose(path).code
    monkeypatch.setenv(SWITCH, "contraction")
    assert "^ vec3u(parameters.zero)" in kept and "^ vec3u" not in compose(path).code
    Stage(device, "morton", path)  # compiles without them


def test_only_given_queries_are_resolved(device: Any) -> None:
    timer = PassTimer(device, 3)
    if not timer.enabled:
        pytest.skip("this adapter has no timestamps")
    encoder = device.wgpu.create_command_encoder()
    for index in (0, 2):
        encoder.begin_compute_pass(timestamp_writes=timer.writes(index)).end()
    timer.resolve(encoder)
    device.wgpu.queue.submit([encoder.finish()])
    spans = timer.read_ms()
    assert np.isnan(spans[1]).all() and np.isfinite(spans[[0, 2]]).all()
    assert 0 <= spans[0, 0] <= spans[2, 1] < 60_000


def test_all_queries_are_resolved_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Any] = []
    encoder = SimpleNamespace(
        resolve_query_set=lambda *a: calls.append(a[1:3]),
        copy_buffer_to_buffer=lambda *a: None,
    )
    fake = SimpleNamespace(
        timestamp_period_ns=1.0,
        buffer=lambda *a: None,
        wgpu=SimpleNamespace(create_query_set=lambda **k: None),
    )
    timer = PassTimer(fake, 3)
    timer.writes(1)
    timer.resolve(encoder)
    monkeypatch.setenv(SWITCH, "unwritten-query")
    timer.resolve(encoder)
    assert calls == [(2, 2), (0, 6)]


def test_stacks_are_kept_without_it(
    monkeypatch: pytest.MonkeyPatch, wgsl: Callable[[str], str], device: Any
) -> None:
    text = """@group(0) @binding(0) var<storage, read_write> v: array<u32>;
    override K: u32 = 0u;
    @compute @workgroup_size(1) fn main() {
        var stack: array<u32, 4>; stack[v[1] % 4u] = K; v[0] = stack[0]; }"""
    path = wgsl(text)
    monkeypatch.setattr(pipelines, "LIVE_STACKS", 0)
    for off, kept in (("", 1), ("live-stacks", 4)):
        monkeypatch.setenv(SWITCH, off)
        cache = pipelines.PipelineCache(device.wgpu, device.composer)
        shader = compose(path)
        layout = Stage(device, "layout", path).bind_groups.layout
        for k in range(4):
            cache.compute("stack", shader, layout, {"K": k})
        assert cache.live_stacks == kept


def test_nine_buffers_are_refused(monkeypatch: pytest.MonkeyPatch, wgsl: Any) -> None:
    lines = [f"@group(0) @binding({i}) var<storage, read> b{i}: array<u32>;" for i in range(9)]
    shader = compose(wgsl("\n".join(lines)))
    with pytest.raises(ShaderError, match="more than 8 storage buffers"):
        read_bindings(shader)
    monkeypatch.setenv(SWITCH, "bindings-above-limit")
    assert len(read_bindings(shader)) == 9


def test_a_cpu_drivers_timestamps(monkeypatch: pytest.MonkeyPatch) -> None:
    device = SimpleNamespace(info=SimpleNamespace(is_cpu=True), timestamp_period_ns=1.0)
    source = Device.timing_source.fget
    assert source is not None and source(device) == "wall-clock"
    monkeypatch.setenv(SWITCH, "late-timestamps")
    assert source(device) == "timestamp-query"
