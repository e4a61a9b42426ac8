"""What cannot be right is flagged or repaired, never silently wrong: full queues, small stacks,
corrupt bytes, more than the adapter offers."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bvh.gpu.trace_rays import FAILURES, RayTracer, Variant, stack_shader
from bvh.layout import INVALID_POINTER, ROOT_POINTER
from bvh.rays import make_rays
from engine.gpu.errors import LimitError, UserError
from passes import hybrid, traverse_passes
from passes.frame_options import FrameOptions
from passes.gpu_scene import GpuScene
from passes.hybrid import HybridFrame
from passes.rays import REFLECTION

SIZE = (72, 54)


@pytest.fixture(scope="module")
def whole(draw: Any, room: Any) -> Any:
    """The room without any trouble."""
    drawn = draw(room, *SIZE)
    assert drawn.stats.valid and not drawn.stats.dropped and drawn.stats.failures == ()
    return drawn


@pytest.mark.parametrize("fraction", [0.0, 0.1, 0.4])
def test_dropped_records_make_a_frame_invalid_and_the_next_one_whole(
    device: Any, room: Any, whole: Any, fraction: float
) -> None:
    frame = HybridFrame(device, room, FrameOptions(*SIZE, queue_fraction=fraction))
    first = frame.run(0)
    assert not first.valid and first.dropped > 0
    assert any("dropped by full queues" in text for text in first.failures)
    assert first.dropped == sum(r.dropped for r in first.rays.values())
    reflection, true = first.rays["reflection"], whole.stats.rays["reflection"]
    # Nothing is lost from the sum, and no more was traced than fits.
    assert reflection.rays + reflection.dropped == true.rays
    assert reflection.rays == max(1, int(fraction * SIZE[0] * SIZE[1]))
    assert len(frame.data.read_records(REFLECTION)) == reflection.rays
    second = frame.run(0)
    assert second.valid and second.dropped == 0
    assert second.rays["shadow"].rays == whole.stats.rays["shadow"].rays
    assert frame.result_hash() == whole.frame.result_hash()
    np.testing.assert_array_equal(frame.image(), whole.frame.image())


def test_a_picture_of_several_samples_begins_again_after_one_overflowed(
    device: Any, room: Any
) -> None:
    frame = HybridFrame(device, room, FrameOptions(*SIZE, queue_fraction=0.1))
    assert frame.render(3).valid
    roomy = HybridFrame(device, room, FrameOptions(*SIZE))
    roomy.render(3)
    np.testing.assert_array_equal(frame.image(), roomy.image())


@pytest.fixture
def small_stacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """small_stacks(4, 32): the frame starts with the first size and may grow to the others."""

    def use(*sizes: int) -> None:
        def shader(entries: int) -> str:
            path = tmp_path / f"stack_{entries}.wgsl"
            path.write_text(f"const STACK_SIZE: u32 = {entries}u;\n")
            return str(path)

        monkeypatch.setattr(hybrid, "STACK_SIZES", sizes)
        monkeypatch.setattr(traverse_passes, "stack_shader", shader)

    return use


@pytest.mark.parametrize("gbuffer", ["raster", "rays"])
def test_an_overflowed_stack_is_drawn_again_with_a_larger_one(
    device: Any, room: Any, draw: Any, small_stacks: Any, gbuffer: str
) -> None:
    right = draw(room, *SIZE, gbuffer=gbuffer)
    small_stacks(4, 32)
    frame = HybridFrame(device, room, FrameOptions(*SIZE, gbuffer=gbuffer, stack=4))
    stats = frame.run(0)
    assert stats.valid and frame.options.stack == 32
    assert frame.result_hash() == right.frame.result_hash()
    np.testing.assert_array_equal(frame.aov("primitive"), right.aov("primitive"))


def test_a_picture_begins_again_where_a_later_sample_overflows_its_stacks(
    device: Any, room: Any, small_stacks: Any
) -> None:
    few = (8, 6)  # rays, so that not every sample has one that needs the largest stack
    roomy = HybridFrame(device, room, FrameOptions(*few, count=True))
    needed = [max(r.stack_max for r in roomy.run(i).rays.values()) for i in range(16)]
    stack = max(needed) + 1  # a kernel asks for room for three entries at once
    small_stacks(stack)
    fixed = HybridFrame(device, room, FrameOptions(*few, stack=stack))
    valid = [fixed.run(i).valid for i in range(16)]
    first = next(i for i in range(15) if valid[i] and not valid[i + 1])
    small_stacks(stack, 32)
    frame = HybridFrame(device, room, FrameOptions(*few, stack=stack))
    # What overflowed is in the mean already: all samples are drawn again.
    assert frame.render(2, first).valid and frame.options.stack == 32
    roomy.render(2, first)
    np.testing.assert_array_equal(frame.image(), roomy.image())


@pytest.mark.parametrize("entries", [4, 8, 16])
def test_a_stack_that_cannot_grow_is_flagged_or_enough(
    device: Any, room: Any, whole: Any, small_stacks: Any, entries: int
) -> None:
    small_stacks(entries)
    frame = HybridFrame(device, room, FrameOptions(*SIZE, stack=entries))
    stats = frame.run(0)
    if stats.valid:
        assert entries > 4
        assert frame.result_hash() == whole.frame.result_hash()
    else:
        assert entries < 16
        assert stats.failures == (FAILURES[1],) and stats.stack_overflow


def test_overflows_are_counted(device: Any, room: Any, draw: Any, small_stacks: Any) -> None:
    needed = max(r.stack_max for r in draw(room, *SIZE, count=True).stats.rays.values())
    small_stacks(5)
    stats = HybridFrame(device, room, FrameOptions(*SIZE, stack=5, count=True)).run(0)
    assert needed > 5 and not stats.valid
    assert sum(r.overflows for r in stats.rays.values()) > 0
    assert all(r.stack_max <= 5 for r in stats.rays.values())


# -- corrupt bytes, through the kernel over plain rays ------------------------------------------


@pytest.fixture(scope="module")
def rays(room: Any) -> Any:
    rng = np.random.default_rng(3)
    origins = rng.uniform([-4, 0.2, -2], [4, 4, 6], (512, 3))
    return make_rays(origins, rng.normal(size=(512, 3)))


def trace(device: Any, words: Any, rays: Any, **settings: Any) -> Any:
    stack = settings.pop("stack", 64)
    return RayTracer(device, words, Variant("corrupt", **settings), stack=stack).trace(rays)


def children(words: Any, base: int) -> Any:
    """The four child pointers of the root of the container at byte `base` (a view)."""
    at = (base + (ROOT_POINTER & ~7) * 8) // 4
    return words[at : at + 4]


def test_sound_bytes_fail_nothing(device: Any, room: Any, rays: Any) -> None:
    got = trace(device, room.bvh.words, rays)
    assert got.failures == () and (got.hits["object"] != 0xFFFFFFFF).sum() > 200


@pytest.mark.parametrize("any_hit", [False, True])
@pytest.mark.parametrize("level", ["tlas", "blas"])
@pytest.mark.parametrize("loops", ["one", "two", "three"])
def test_a_cycle_ends_and_is_flagged(
    device: Any, room: Any, rays: Any, level: str, any_hit: bool, loops: str
) -> None:
    words = room.bvh.words.copy()
    bases = [0] if level == "tlas" else room.bvh.blas_bases
    for base in bases:
        pointers = children(words, int(base))
        pointers[pointers != INVALID_POINTER] = ROOT_POINTER
    got = trace(device, words, rays[:16], any_hit=any_hit, loops=loops)
    assert got.failures and set(got.failures) <= {FAILURES[1], FAILURES[4]}


def test_a_cycle_of_single_children_runs_into_the_step_limit(
    device: Any, room: Any, rays: Any
) -> None:
    words = room.bvh.words.copy()
    pointers = children(words, 0)
    pointers[1:] = INVALID_POINTER
    pointers[0] = ROOT_POINTER
    # Every ray enters a box without end again and again; nothing is ever pushed.
    bounds = words[32 + 4 : 32 + 10].view(np.float32)
    bounds[:] = [-1e9, -1e9, -1e9, 1e9, 1e9, 1e9]
    got = trace(device, words, rays[:8])
    assert got.failures == (FAILURES[4],)


@pytest.mark.parametrize("kind", [2, 3, 7])
@pytest.mark.parametrize("level", ["tlas", "blas"])
def test_an_unknown_node_type_is_flagged(
    device: Any, room: Any, rays: Any, level: str, kind: int
) -> None:
    words = room.bvh.words.copy()
    for base in [0] if level == "tlas" else room.bvh.blas_bases:
        pointers = children(words, int(base))
        used = pointers != INVALID_POINTER
        pointers[used] = (pointers[used] & ~np.uint32(7)) | np.uint32(kind)
    got = trace(device, words, rays)
    assert got.failures == (FAILURES[2],)


def test_an_instance_node_inside_a_blas_of_a_one_level_kernel_is_flagged(
    device: Any, kit: Any, rays: Any
) -> None:
    from bvh.gpu.trace_rays import fit_variant
    from passes.prepare import prepare

    bvh = prepare(kit.scene([kit.sphere()])).bvh
    words = bvh.words.copy()
    pointers = children(words, int(bvh.blas_bases[0]))
    pointers[pointers != INVALID_POINTER] = (ROOT_POINTER & ~7) | 6
    variant = fit_variant(Variant("one"), bvh)
    assert not variant.two_level
    aimed = make_rays([[0.0, 0, 5]], [[0.0, 0, -1]])
    got = RayTracer(device, words, variant).trace(aimed)
    assert got.failures == (FAILURES[2],)


def test_a_swapped_child_pointer_changes_the_hits(device: Any, room: Any, rays: Any) -> None:
    words = room.bvh.words.copy()
    base = int(room.bvh.blas_bases[0])
    pointers = children(words, base)
    pointers[:] = np.roll(pointers, 1)
    good, bad = (trace(device, w, rays).hits for w in (room.bvh.words, words))
    assert (good["primitive"] != bad["primitive"]).mean() > 0.02


def test_every_stack_size_has_a_shader() -> None:
    from bvh.gpu.trace_rays import STACK_SIZES
    from engine.gpu.shader import compose

    for entries in STACK_SIZES:
        assert f"STACK_SIZE: u32 = {entries}u" in compose(stack_shader(entries)).code


# -- requests beyond the adapter -----------------------------------------------------------------


@pytest.mark.parametrize("buffer", ["bvh", "tables", "geometry", "texels", "alpha"])
def test_a_scene_beyond_the_binding_limit_is_refused_before_allocation(
    device: Any, room: Any, monkeypatch: Any, buffer: str
) -> None:
    sizes = {name: array.nbytes for name, array in GpuScene(device, room).arrays.items()}
    limit = sizes[buffer] - 16
    monkeypatch.setitem(device.limits, "max-storage-buffer-binding-size", limit)
    before = device.allocated_bytes
    with pytest.raises(LimitError) as caught:
        GpuScene(device, room)
    message = str(caught.value)
    assert "\n" not in message and f"{limit:,} bytes" in message and "test: the " in message
    largest = [name for name, size in sizes.items() if size > limit]
    assert any(f"the {name} buffer needs {sizes[name]:,} bytes" in message for name in largest)
    assert device.allocated_bytes == before and caught.value.exit_code == 2


def test_a_picture_beyond_the_adapter_is_refused_before_allocation(
    device: Any, room: Any, monkeypatch: Any
) -> None:
    scene = GpuScene(device, room)
    side = device.limits["max-texture-dimension-2d"]
    before = device.allocated_bytes
    with pytest.raises(LimitError, match=rf"size {side + 1}x8 .* {side} a side"):
        HybridFrame(device, room, FrameOptions(side + 1, 8), scene)
    monkeypatch.setitem(device.limits, "max-storage-buffer-binding-size", 300_000)
    with pytest.raises(LimitError, match=r"size 128x128: the \w+ queue needs .* 300,000 bytes"):
        HybridFrame(device, room, FrameOptions(128, 128), scene)
    assert device.allocated_bytes == before


@pytest.mark.parametrize("size", [(0, 0), (0, 5), (5, 0), (-1, 4)])
def test_a_picture_without_pixels_is_refused(device: Any, room: Any, size: Any) -> None:
    with pytest.raises(UserError, match=f"size {size[0]}x{size[1]} has no pixels"):
        HybridFrame(device, room, FrameOptions(*size))


def test_an_unknown_gbuffer_and_group_are_refused(device: Any, room: Any, kit: Any) -> None:
    from passes.prepare import prepare

    with pytest.raises(UserError, match="unknown gbuffer 'splat', there are raster, rays"):
        HybridFrame(device, room, FrameOptions(8, 8, gbuffer="splat"))
    with pytest.raises(UserError, match="unknown group 'pairs', there are static, object, all"):
        prepare(kit.scene([kit.sphere()]), group="pairs")
