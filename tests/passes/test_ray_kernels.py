"""Each ray type's traversal kernel by itself: what it is built with, and that hits stay."""

from typing import Any

import numpy as np
import pytest

from engine.gpu.errors import UserError
from passes import hybrid, traverse_passes
from passes.frame_options import FrameOptions
from passes.gpu_scene import GpuScene
from passes.hybrid import HybridFrame
from passes.ray_kernel import AS_FRAME, LOOPS, SORTS, STACKS, RayKernel
from passes.rays import RAY_TYPES, REFLECTION, SHADOW
from passes.traverse_passes import traversal

SIZE = (24, 18)


@pytest.fixture(scope="module")
def scene(device: Any, room: Any) -> GpuScene:
    return GpuScene(device, room)


def built(scene: GpuScene, options: FrameOptions, ray: Any) -> tuple[bool, bool, str]:
    slots, constants = traversal(scene, options, ray)
    return bool(constants["SORT"]), bool(constants["WHILE_WHILE"]), slots["stack"]


@pytest.mark.parametrize("ray", RAY_TYPES, ids=lambda ray: ray.name)
def test_a_kernel_is_that_of_its_ray_type_alone(scene: GpuScene, ray: Any) -> None:
    plain = FrameOptions(*SIZE, sort_shadow=True, while_while=True, stack=64)
    frame_built = (True, True, "bvh/shaders/stack_64.wgsl")
    options = plain.with_kernel(ray.name, RayKernel("off", "one", "16"))
    for other in RAY_TYPES:
        expected = (False, False, "bvh/shaders/stack_16.wgsl") if other is ray else frame_built
        assert built(scene, options, other) == expected
        assert built(scene, plain, other) == frame_built
    assert built(scene, options, None) == frame_built
    assert options.with_kernel(ray.name, RayKernel()) == plain


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
