"""Each ray type's traversal kernel by itself: what it is built with, and that hits stay."""

from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bvh.build import BuildOptions
from bvh.gpu.default_kernel import CPU, GPU
from engine.gpu.device import AdapterInfo
from engine.gpu.errors import UserError
from passes import hybrid, traverse_passes
from passes.frame_options import FrameOptions
from passes.gpu_scene import GpuScene
from passes.hybrid import HybridFrame
from passes.mixed_passes import mixed_kernel
from passes.prepare import prepare
from passes.ray_kernel import AS_FRAME, LOOP_COUNTS, LOOPS, SORTS, STACKS, RayKernel
from passes.rays import RAY_TYPES, REFLECTION, SHADOW, with_every_ray
from passes.stage_passes import StagePasses
from passes.traverse_passes import traversal
from treeline.report_context import traversal_loops

SIZE = (24, 18)
RECORDS = Path(__file__).resolve().parents[2] / "benchmarks" / "records"


@pytest.fixture(scope="module")
def scene(device: Any, room: Any) -> GpuScene:
    return GpuScene(device, room)


def built(scene: GpuScene, options: FrameOptions, ray: Any) -> tuple[bool, str, str]:
    slots, constants = traversal(scene, options, ray)
    return bool(constants["SORT"]), loops_of(constants), slots["stack"]


def loops_of(constants: Any) -> str:
    return LOOP_COUNTS[int(constants["WHILE_WHILE"]) + int(constants["UNDER_MASK"])]


@pytest.mark.parametrize("ray", RAY_TYPES, ids=lambda ray: ray.name)
def test_a_kernel_is_that_of_its_ray_type_alone(scene: GpuScene, ray: Any) -> None:
    plain = FrameOptions(*SIZE, sort_shadow=True, loops="two", stack=64)
    frame_built = (True, "two", "bvh/shaders/stack_64.wgsl")
    options = plain.with_kernel(ray.name, RayKernel("off", "one", "16"))
    for other in RAY_TYPES:
        expected = (False, "one", "bvh/shaders/stack_16.wgsl") if other is ray else frame_built
        assert built(scene, options, other) == expected
        assert built(scene, plain, other) == frame_built
    assert built(scene, options, None) == frame_built
    assert options.with_kernel(ray.name, RayKernel()) == plain


def adapter(kind: str) -> AdapterInfo:
    return AdapterInfo("card", kind, "Vulkan", "driver")


@pytest.mark.parametrize("kind", ["CPU", "DiscreteGPU", "IntegratedGPU", "VirtualGPU", "Unknown"])
def test_the_default_is_the_adapters_kind(
    scene: GpuScene, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In every kernel of a frame: of one type, of two mixed, of primary rays."""
    monkeypatch.setattr(scene.device, "info", adapter(kind))
    plain, expected = FrameOptions(*SIZE), "three" if kind == "CPU" else "one"
    for ray in (*RAY_TYPES, None):
        assert built(scene, plain, ray)[1] == expected
    make = StagePasses(scene.device, scene, plain)
    assert loops_of(mixed_kernel(make, REFLECTION, SHADOW)[1]) == expected
    # Types that were given different ones: the frame's serve both.
    apart = StagePasses(scene.device, scene, plain.with_kernel(SHADOW.name, RayKernel(loops="two")))
    assert loops_of(mixed_kernel(apart, REFLECTION, SHADOW)[1]) == expected
    for loops in LOOP_COUNTS:
        asked = plain.with_kernel(SHADOW.name, RayKernel(loops=loops))
        assert built(scene, asked, SHADOW)[1] == loops
        assert built(scene, asked, REFLECTION)[1] == expected
        assert built(scene, replace(plain, loops=loops), SHADOW)[1] == loops
    told = traversal_loops(plain.with_kernel(SHADOW.name, RayKernel(loops="two")), adapter(kind))
    assert told == {"reflection": expected, "shadow": "two"}


@pytest.mark.parametrize("default", [CPU, GPU])
def test_the_records_of_a_default_are_there(default: Any) -> None:
    for name in default.records:
        assert name in default.reason
        assert (RECORDS / f"{name}.json").is_file()


@pytest.mark.parametrize("passes", ["own", "mixed"])
def test_other_kernels_find_the_same(device: Any, room: Any, scene: GpuScene, passes: str) -> None:
    right = HybridFrame(device, room, FrameOptions(*SIZE), scene)
    right.run()
    rays = right.data.read_records(REFLECTION)
    hits = right.data.read_results(REFLECTION, rays)
    lit = device.read(right.data.resources[SHADOW.results])
    choices = [("off", "one"), ("on", "two")] if passes == "own" else [("off", "two")]
    for number, (sort, loops) in enumerate(choices):
        options = FrameOptions(*SIZE, passes=passes)
        options = options.with_kernel(REFLECTION.name, RayKernel(sort, loops, "16"))
        other = choices[(number + 1) % len(choices)]
        options = options.with_kernel(SHADOW.name, RayKernel(*other, "64"))
        frame = HybridFrame(device, room, options, scene)
        assert frame.run().valid and frame.options.kernels == options.kernels
        found = frame.data.read_records(REFLECTION)
        assert (np.sort(found["pixel"]) == np.sort(rays["pixel"])).all()
        results = frame.data.read_results(REFLECTION, found)
        order, place = np.argsort(rays["pixel"]), np.argsort(found["pixel"])
        # The order of visits decides between coplanar triangles only, at equal t.
        np.testing.assert_array_equal(hits["t"][order], results["t"][place])
        np.testing.assert_array_equal(device.read(frame.data.resources[SHADOW.results]), lit)


@pytest.mark.parametrize("change", [{}, {"passes": "mixed"}, {"any_hit_mode": "queue"}])
def test_loops_change_neither_hits_nor_counts(
    device: Any, room: Any, scene: GpuScene, change: dict[str, str]
) -> None:
    """A ray visits the same nodes in the same order, in timed and counted kernels."""
    found = {}
    for loops, count in product(LOOP_COUNTS, (False, True)):
        options = FrameOptions(*SIZE, loops=loops, count=count, gbuffer="rays", **change)
        frame = HybridFrame(device, room, options, scene)
        stats = frame.run()
        assert stats.valid
        found[loops, count] = frame.result_hash(), frame.image().tobytes(), stats.rays
    assert len({(hits, image) for hits, image, _ in found.values()}) == 1
    assert all(numbers.nodes for numbers in found["one", True][2].values())
    for loops in LOOP_COUNTS[1:]:
        assert found["one", True][2] == found[loops, True][2]


@pytest.mark.parametrize("leaf", [2, 4])
def test_loops_count_the_same_among_leaves(device: Any, hall: Any, leaf: int) -> None:
    """Pairs and fans of alpha-tested triangles, of which one or more are asked, by every ray
    type."""
    if leaf != 2:
        hall = prepare(hall.scene, BuildOptions(builder="lbvh", reinsertion=0, leaf=leaf))
    on_gpu = GpuScene(device, hall)
    found = []
    for loops in LOOP_COUNTS:
        options = with_every_ray(FrameOptions(64, 36, loops=loops, count=True, gbuffer="rays"))
        frame = HybridFrame(device, hall, options, on_gpu)
        stats = frame.run()
        assert stats.valid and stats.rays["shadow"].any_hits
        found.append((frame.result_hash(), stats.rays))
    assert found[0] == found[1] == found[2]


def test_an_own_stack_that_overflows_gives_way_to_the_frames(
    device: Any, room: Any, scene: GpuScene, tmp_path: Any, monkeypatch: Any
) -> None:
    def shader(entries: int) -> str:  # four entries in place of 16
        path = tmp_path / f"stack_{entries}.wgsl"
        path.write_text(f"const STACK_SIZE: u32 = {4 if entries == 16 else entries}u;\n")
        return str(path)

    right = HybridFrame(device, room, FrameOptions(*SIZE), scene)
    right.run()
    monkeypatch.setattr(traverse_passes, "stack_shader", shader)
    options = FrameOptions(*SIZE).with_kernel(REFLECTION.name, RayKernel("off", stack="16"))
    frame = HybridFrame(device, room, options, scene)
    assert frame.run().valid
    assert frame.options.kernels == ((REFLECTION.name, RayKernel("off")),)
    assert frame.options.stack == 32
    assert frame.render(2).valid
    fresh = HybridFrame(device, room, options, scene)
    assert fresh.render(2).valid
    np.testing.assert_array_equal(fresh.image(), frame.image())


def test_stacks_grow_from_the_types_own_to_the_last() -> None:
    options = FrameOptions(1, 1).with_kernel("shadow", RayKernel(stack="64"))
    sizes = []
    larger = options.with_larger_stack()
    while larger is not None:
        sizes.append(larger.stack)
        assert not larger.kernels
        larger = larger.with_larger_stack()
    assert sizes == [64, 128]
    assert FrameOptions(1, 1).with_larger_stack(hybrid.STACK_SIZES) == FrameOptions(1, 1, stack=64)


@pytest.mark.parametrize("field, known", [("sort", SORTS), ("loops", LOOPS), ("stack", STACKS)])
def test_an_unknown_value_is_refused(field: str, known: tuple[str, ...]) -> None:
    assert known[0] == AS_FRAME
    with pytest.raises(UserError, match=f"unknown {field} 'odd', there are frame, "):
        RayKernel(**{field: "odd"})
