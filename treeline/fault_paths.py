"""The ways to do what the faults in engine/gpu/faults.py are about: as programs do it at first,
and as this one does. Each is self-contained: it makes what it needs and says whether it worked.
"""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from bvh.gpu.litmus import LEAVES, LEAVES_ON_A_CPU, RUNS, run_litmus
from engine.gpu.device import Device, open_device
from engine.gpu.errors import AdapterError
from engine.gpu.probe import probe
from engine.gpu.shader import REMAINDER, ROOT, SIGNED_REMAINDER
from engine.gpu.timer import PassTimer

LIVE, LIVE_ON_A_CPU = 100, 24  # pipelines with a stack; a CPU driver takes its time to compile them
SLOWER = 1.5  # from which factor on a kernel is slower
BINDINGS = 8  # storage buffers that WebGPU guarantees a stage


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one path did: whether it *works*, so that nothing happened of what the fault's symptom
    says; None where the machine cannot try it."""

    works: bool | None
    detail: str


@dataclass(frozen=True, slots=True)
class Path:
    """One way to do what a fault is about; the last one of a fault is its workaround."""

    name: str
    run: Callable[[str | None], Outcome]
    isolated: bool = False


def _arrivals(chain: bool) -> Callable[[str | None], Outcome]:
    def run(adapter: str | None) -> Outcome:
        device = open_device(adapter)
        leaves = LEAVES_ON_A_CPU if device.info.is_cpu else LEAVES
        result = run_litmus(device, leaves, RUNS, chain)
        return Outcome(result.passed, str(result))

    return run


def _contraction(form: str) -> Callable[[str | None], Outcome]:
    def run(adapter: str | None) -> Outcome:
        fused = probe(open_device(adapter)).contracts[form]
        return Outcome(not fused, "one rounding" if fused else "two roundings")

    return run


REMAINDER_KERNEL = """
@group(0) @binding(0) var<storage, read> given: array<vec2i>;
@group(0) @binding(1) var<storage, read_write> found: array<u32>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) {
    if (id.x < arrayLength(&given)) {
        found[id.x] = positive_remainder(given[id.x].x, u32(given[id.x].y));
    }
}
"""


def _remainder(source: str) -> Callable[[str | None], Outcome]:
    """v modulo n by the function of that file, of numbers that no compiler knows."""

    def run(adapter: str | None) -> Outcome:
        device = open_device(adapter)
        values = [*range(-64, 65), -(2**31), -(2**31) + 1, 2**31 - 1]
        given = np.array([(v, n) for n in range(1, 33) for v in values], np.int32)
        code = (ROOT / source).read_text("utf-8")
        pipeline = _compute_pipeline(device, code + REMAINDER_KERNEL)
        buffers = [device.upload("given", given), device.buffer("found", 4 * len(given))]
        _dispatch(device, pipeline, buffers, -(-len(given) // 64))
        found = device.read(buffers[1], np.uint32)
        v, n = given.astype(np.int64).T
        wrong = np.flatnonzero(found != np.remainder(v, n))
        if not len(wrong):
            return Outcome(True, f"{len(given):,} remainders are right")
        first = f"{v[wrong[0]]} modulo {n[wrong[0]]} gives {found[wrong[0]]}"
        return Outcome(False, f"{len(wrong):,} of {len(given):,} are wrong: {first}")

    return run


STACK_KERNEL = """
@group(0) @binding(0) var<storage, read_write> values: array<u32>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) {
    var stack: array<u32, 64>;
    var top = 0u;
    var x = id.x + SEEDu;
    for (var i = 0u; i < 256u; i += 1u) {
        x = x * 747796405u + 2891336453u;
        if ((x >> 31u) == 1u && top < 63u) { stack[top] = x; top += 1u; }
        else if (top > 0u) { top -= 1u; x ^= stack[top]; }
    }
    values[id.x] = x;
}
"""


def _live_stacks(bounded: bool) -> Callable[[str | None], Outcome]:
    """Times one kernel alone, then with many others alive, or made and dropped one by one."""

    def run(adapter: str | None) -> Outcome:
        device = open_device(adapter)
        groups = 64 if device.info.is_cpu else 65535
        first = _compute_pipeline(device, STACK_KERNEL.replace("SEED", "0"))
        values = device.buffer("values", 4 * 64 * groups)
        alone = _least_ms(device, first, values, groups)
        kept = []
        count = LIVE_ON_A_CPU if device.info.is_cpu else LIVE
        for seed in range(1, count + 1):
            made = _compute_pipeline(device, STACK_KERNEL.replace("SEED", str(seed)))
            if not bounded:
                kept.append(made)
        factor = _least_ms(device, first, values, groups) / alone
        how = "after" if bounded else "beside"
        return Outcome(factor < SLOWER, f"{factor:.2f} times as long {how} {count} others")

    return run


def _compute_pipeline(device: Device, code: str) -> Any:
    module = device.wgpu.create_shader_module(code=code)
    return device.wgpu.create_compute_pipeline(
        layout="auto", compute={"module": module, "entry_point": "main"}
    )


def _dispatch(device: Device, pipeline: Any, buffers: list[Any], groups: int) -> None:
    """Submits the pipeline over the buffers, in the order of their bindings."""
    entries = [{"binding": i, "resource": {"buffer": b}} for i, b in enumerate(buffers)]
    group = device.wgpu.create_bind_group(layout=pipeline.get_bind_group_layout(0), entries=entries)
    encoder = device.wgpu.create_command_encoder()
    scope = encoder.begin_compute_pass()
    scope.set_pipeline(pipeline)
    scope.set_bind_group(0, group)
    scope.dispatch_workgroups(groups)
    scope.end()
    device.wgpu.queue.submit([encoder.finish()])


def _least_ms(device: Device, pipeline: Any, values: Any, groups: int, repeats: int = 9) -> float:
    """Least of several."""
    # A CPU driver's work is this process': its own time does not see who else wants the cores.
    clock = time.process_time if device.info.is_cpu else time.perf_counter
    times = []
    for _ in range(repeats):
        start = clock()
        _dispatch(device, pipeline, [values], groups)
        device.wait()
        times.append(1e3 * (clock() - start))
    return min(times[1:])


def _unwritten_query(all_of_them: bool) -> Callable[[str | None], Outcome]:
    """Resolves two passes' queries after one of them ran; then asks the device for something."""

    def run(adapter: str | None) -> Outcome:
        device = open_device(adapter)
        timer = PassTimer(device, 2)
        if not timer.enabled:
            return Outcome(None, "this adapter has no timestamps")
        if all_of_them:
            timer.writes(1)  # given to no pass
        encoder = device.wgpu.create_command_encoder()
        encoder.begin_compute_pass(timestamp_writes=timer.writes(0)).end()
        timer.resolve(encoder)
        device.wgpu.queue.submit([encoder.finish()])
        timer.read_ms()
        back = device.read(device.upload("asked", np.arange(4, dtype=np.uint32)))
        alive = back.tolist() == [0, 1, 2, 3]
        return Outcome(alive, "the device answers" if alive else "the device answers wrongly")

    return run


def _late_timestamps(by_wall_clock: bool) -> Callable[[str | None], Outcome]:
    """A pass that follows a cleared texture: its time by timestamps, or waited for, against the
    wall clock's of the same pass alone."""

    def run(adapter: str | None) -> Outcome:
        device = open_device(adapter)
        groups = 256 if device.info.is_cpu else 65535
        pipeline = _compute_pipeline(device, STACK_KERNEL.replace("SEED", "0"))
        values = device.buffer("values", 4 * 64 * groups)
        alone = _least_ms(device, pipeline, values, groups)
        timer = PassTimer(device, 1)
        if by_wall_clock or not timer.enabled:
            again = _least_ms(device, pipeline, values, groups)
            source = "wall clock"
        else:
            again, source = _after_clear_ms(device, timer, pipeline, values, groups), "timestamps"
        share = again / alone
        return Outcome(share > 0.5, f"{share:.0%} of its time by {source}")

    return run


def _after_clear_ms(
    device: Device, timer: PassTimer, pipeline: Any, values: Any, groups: int
) -> float:
    texture = device.wgpu.create_texture(
        size=(64, 64, 1), format="rgba8unorm", usage="RENDER_ATTACHMENT"
    )
    group = device.wgpu.create_bind_group(
        layout=pipeline.get_bind_group_layout(0),
        entries=[{"binding": 0, "resource": {"buffer": values}}],
    )
    encoder = device.wgpu.create_command_encoder()
    attachment = {"view": texture.create_view(), "load_op": "clear", "store_op": "store"}
    encoder.begin_render_pass(color_attachments=[attachment]).end()
    scope = encoder.begin_compute_pass(timestamp_writes=timer.writes(0))
    scope.set_pipeline(pipeline)
    scope.set_bind_group(0, group)
    scope.dispatch_workgroups(groups)
    scope.end()
    timer.resolve(encoder)
    device.wgpu.queue.submit([encoder.finish()])
    begin, end = timer.read_ms()[0]
    return float(end - begin)


def _window(ask_first: bool) -> Callable[[str | None], Outcome]:
    """Opens a window where there is no display."""

    def run(adapter: str | None) -> Outcome:
        from engine.view.display import require_display

        for name in ("DISPLAY", "WAYLAND_DISPLAY"):
            os.environ.pop(name, None)
        try:
            if ask_first:
                require_display()
                return Outcome(None, "a window can be opened without a display here")
            from rendercanvas.glfw import GlfwRenderCanvas

            GlfwRenderCanvas(size=(64, 64), title="no display")
        except AdapterError as error:
            return Outcome(True, f"refused: {str(error).split(';')[0]}")
        except Exception as error:
            return Outcome(True, f"an exception: {' '.join(str(error).split())}")
        return Outcome(None, "a window can be opened without a display here")

    return run


def _bindings(above: bool) -> Callable[[str | None], Outcome]:
    """Sums up storage buffers in one stage: works if it is right, or refused with an error."""

    def run(adapter: str | None) -> Outcome:
        device = open_device(adapter)
        limit = device.limits["max-storage-buffers-per-shader-stage"]
        count = limit + 1 if above else BINDINGS
        if count > 1000:
            return Outcome(None, f"the adapter binds {limit:,} storage buffers")
        lines = [
            f"@group(0) @binding({i}) var<storage, read_write> b{i}: array<u32>;"
            for i in range(count)
        ]
        total = " + ".join(f"b{i}[0]" for i in range(1, count))
        body = f"@compute @workgroup_size(1) fn main() {{ b0[0] = {total}; }}"
        try:
            pipeline = _compute_pipeline(device, "\n".join([*lines, body]))
            buffers = [device.upload(f"b{i}", np.full(4, i, np.uint32)) for i in range(count)]
            _dispatch(device, pipeline, buffers, 1)
            right = int(device.read(buffers[0])[0]) == count * (count - 1) // 2
        except Exception as error:
            return Outcome(above, f"{count} buffers refused: {' '.join(str(error).split())[:80]}")
        return Outcome(right, f"{count} buffers {'right' if right else 'wrong, and no error'}")

    return run


PATHS: dict[str, tuple[Path, ...]] = {
    "arrival-counters": (
        Path("relaxed atomics", _arrivals(chain=False)),
        Path("exchange chain", _arrivals(chain=True)),
    ),
    "live-stacks": (
        Path("all kept", _live_stacks(bounded=False), isolated=True),
        Path("dropped after use", _live_stacks(bounded=True), isolated=True),
    ),
    "contraction": (
        Path("one expression", _contraction("plain")),
        Path("named product", _contraction("named")),
        Path("barrier", _contraction("barrier")),
    ),
    "signed-remainder": (
        Path("signed", _remainder(SIGNED_REMAINDER)),
        Path("unsigned", _remainder(REMAINDER)),
    ),
    "unwritten-query": (
        Path("all resolved", _unwritten_query(all_of_them=True), isolated=True),
        Path("written ones resolved", _unwritten_query(all_of_them=False), isolated=True),
    ),
    "late-timestamps": (
        Path("timestamps", _late_timestamps(by_wall_clock=False), isolated=True),
        Path("wall clock", _late_timestamps(by_wall_clock=True), isolated=True),
    ),
    "window-abort": (
        Path("window at once", _window(ask_first=False), isolated=True),
        Path("display asked for first", _window(ask_first=True), isolated=True),
    ),
    "bindings-above-limit": (
        Path("above the limit", _bindings(above=True), isolated=True),
        Path("guaranteed number", _bindings(above=False), isolated=True),
    ),
}
