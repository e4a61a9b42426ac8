"""The cache of live pipelines: what is shared, what is dropped, what never is."""

import gc
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from engine.gpu import pipelines as module
from engine.gpu import shader as shader_module
from engine.gpu.device import open_device
from engine.gpu.pipelines import PipelineCache
from engine.gpu.shader import Composer, compose
from engine.gpu.stage import Stage

ADD = """
override STEP: u32 = 1u;
@group(0) @binding(0) var<storage, read_write> sink: array<u32>;
@compute @workgroup_size(4)
fn main(@builtin(local_invocation_index) lane: u32) { BODY sink[lane] += STEP; }
"""
PLAIN = ADD.replace("BODY", "")
STACK = ADD.replace("BODY", "var stack: array<u32, 8>; stack[lane] = lane;")


@pytest.fixture
def fresh(device: Any) -> Any:
    """The session's device with an empty cache of its own."""
    kept = device.pipelines
    device.pipelines = PipelineCache(device.wgpu, Composer())
    yield device
    device.pipelines = kept


Make = Callable[..., Stage]


@pytest.fixture
def stage(fresh: Any, wgsl: Any) -> Make:
    paths = {text: wgsl(text, name) for text, name in ((PLAIN, "plain.wgsl"), (STACK, "s.wgsl"))}

    def make(step: int = 1, text: str = PLAIN, trusted: bool = False) -> Stage:
        return Stage(fresh, f"add {step}", paths[text], constants={"STEP": step}, trusted=trusted)

    return make


def test_stages_of_the_same_things_share_a_pipeline_and_work(fresh: Any, stage: Make) -> None:
    stages = [stage(1), stage(1), stage(5)]
    assert (fresh.pipelines.made, fresh.pipelines.live) == (2, 2)
    assert stages[0]._pipeline is stages[1]._pipeline is not stages[2]._pipeline
    sink = fresh.buffer("sink", 16)
    for item in stages:
        item.run({"sink": sink}, 1)
    assert fresh.read(sink).tolist() == [7] * 4


def test_text_constants_and_checks_tell_pipelines_apart(fresh: Any, stage: Make) -> None:
    kept = [stage(), stage(2), stage(text=STACK), stage(trusted=True)]
    assert fresh.pipelines.made == len(kept) == fresh.pipelines.live


def test_a_pipeline_outlives_its_stage_and_is_not_compiled_again(fresh: Any, stage: Make) -> None:
    native = stage()._pipeline.native
    took = fresh.pipelines.composer.compile_ms
    assert fresh.pipelines.live == 1 and took > 0
    assert stage()._pipeline.native is native and fresh.pipelines.made == 1
    assert fresh.pipelines.composer.compile_ms == took


def test_what_was_used_longest_ago_is_dropped(fresh: Any, stage: Make, monkeypatch: Any) -> None:
    monkeypatch.setattr(module, "LIVE_PIPELINES", 3)
    for step in (1, 2, 3, 1, 4):
        stage(step)
    assert (fresh.pipelines.live, fresh.pipelines.made) == (3, 4)
    for step in (1, 3, 4):
        stage(step)
    assert fresh.pipelines.made == 4
    stage(2)
    assert (fresh.pipelines.live, fresh.pipelines.made) == (3, 5)


class StillDevice:
    """Compiles nothing: threads meet in the cache all the time."""

    def create_pipeline_layout(self, **_: Any) -> None: ...

    def create_compute_pipeline(self, **_: Any) -> object:
        return object()


def test_threads_may_compile_and_count_at_once(wgsl: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(module, "LIVE_PIPELINES", 40)
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    composer = Composer()
    monkeypatch.setattr(composer, "compile", lambda *_: None)
    cache = PipelineCache(StillDevice(), composer)
    shader = compose(wgsl(PLAIN, "plain.wgsl"))
    done = threading.Event()

    def compile_many() -> None:
        for step in range(3000):
            cache.compute("add", shader, None, {"STEP": step % 50})
        done.set()

    try:
        with ThreadPoolExecutor(1) as pool:
            compiled = pool.submit(compile_many)
            while not done.is_set() and not compiled.done():
                assert cache.live_stacks == 0
            compiled.result()
    finally:
        sys.setswitchinterval(before)
    assert cache.live == 40


@pytest.mark.parametrize("on_cpu", [False, True])
def test_a_cpu_driver_keeps_fewer(fresh: Any, stage: Make, monkeypatch: Any, on_cpu: bool) -> None:
    monkeypatch.setattr(module, "LIVE_ON_CPU", 2)
    monkeypatch.setattr(fresh.pipelines, "on_cpu", on_cpu)
    for step in (1, 2, 3, 4):
        stage(step)
    assert fresh.pipelines.live == (2 if on_cpu else 4)


def test_the_device_says_whose_driver_it_is(device: Any) -> None:
    assert device.pipelines.on_cpu == device.info.is_cpu


def test_what_is_in_use_is_never_dropped_but_counted(
    fresh: Any, stage: Make, monkeypatch: Any
) -> None:
    monkeypatch.setattr(module, "LIVE_PIPELINES", 2)
    used = [stage(step) for step in range(1, 5)]
    assert fresh.pipelines.live == 4
    stage(9)
    stage(10)
    assert fresh.pipelines.live == 5  # of those that nobody uses, none but the last
    assert all(stage(step)._pipeline is used[step - 1]._pipeline for step in range(1, 5))
    del used
    stage(11)
    assert fresh.pipelines.live == 2


def test_stacks_have_a_bound_of_their_own(fresh: Any, stage: Make, monkeypatch: Any) -> None:
    monkeypatch.setattr(module, "LIVE_STACKS", 2)
    stage()
    for step in range(1, 5):
        stage(step, STACK)
    assert (fresh.pipelines.live_stacks, fresh.pipelines.live) == (2, 3)
    stage()
    assert fresh.pipelines.made == 5  # the plain one was not in their way


def test_traversal_kernels_count_as_stacks(fresh: Any) -> None:
    for path in ("traverse", "traverse_contract"):
        parts = {
            "stack": "bvh/shaders/stack_32.wgsl",
            "ray_types": "bvh/shaders/one_ray_type.wgsl",
            "accept": "bvh/shaders/accept_all.wgsl",
            "count": "bvh/shaders/count_nothing.wgsl",
            "vote": "bvh/shaders/lanes_alone.wgsl",
            "arithmetic": "bvh/contract/shaders/arithmetic_exact.wgsl",
            "memory": "bvh/contract/shaders/scene_memory.wgsl",
        }
        assert module._STACK.search(compose(f"bvh/shaders/{path}.wgsl", parts).code)
    search = compose("bvh/gpu/shaders/reinsertion/reinsertion_search.wgsl")
    assert module._STACK.search(search.code)


def test_modules_are_bounded(device: Any, wgsl: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(shader_module, "MODULES_KEPT", 2)
    composer = Composer()
    texts = [compose(wgsl(PLAIN + f"// {i}\n", f"{i}.wgsl")) for i in range(3)]
    first = composer.compile(device.wgpu, texts[0])
    composer.compile(device.wgpu, texts[1])
    assert composer.compile(device.wgpu, texts[0]) is first  # used again: not the oldest
    composer.compile(device.wgpu, texts[2])
    assert len(composer._modules) == 2
    assert composer.compile(device.wgpu, texts[0]) is first


def test_a_device_is_given_up_with_its_pipelines() -> None:
    import weakref

    device = open_device()
    cache = weakref.ref(device.pipelines)
    device.wgpu.destroy()
    del device
    gc.collect()
    assert cache() is None


def test_constants_keep_their_values_whatever_their_order(fresh: Any, wgsl: Any) -> None:
    two = wgsl(PLAIN.replace("override", "override OTHER: u32 = 0u;\noverride", 1), "two.wgsl")
    results = []
    for constants in ({"STEP": 3, "OTHER": 4}, {"OTHER": 4, "STEP": 3}, {"STEP": 4, "OTHER": 3}):
        sink = fresh.buffer("sink", 16)
        Stage(fresh, "two", two, constants=constants).run({"sink": sink}, 1)
        results.append(int(fresh.read(sink)[0]))
    assert results == [3, 3, 4] and fresh.pipelines.made == 2
