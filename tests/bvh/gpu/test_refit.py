"""Refitted bytes: equal to the twin's, to the built ones where nothing moved, right to trace."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from bvh import oracle
from bvh.build import Blas, BuildOptions, build_blas
from bvh.gpu.refit import GpuRefit
from bvh.gpu.refit_cost import GROUPS, GpuRefitCost, refit_cost
from bvh.gpu.refit_plan import RefitPlan, block_vertices, make_plan, slot_runs
from bvh.gpu.refit_records import NO_VERTEX, pyramid_levels, pyramid_sizes
from bvh.gpu.refit_twins import make_parameters, refit, refit_pyramid, run_boxes
from bvh.header import unpack_header
from bvh.rays import make_rays
from bvh.scene_bvh import assemble
from bvh.tlas import BvhInstance
from bvh.tree import EMPTY
from bvh.validate import validate
from engine.gpu.errors import UserError
from engine.gpu.stage import submit_pass


def _sheet(rng: np.random.Generator, triangles: int) -> tuple[np.ndarray, np.ndarray]:
    """(positions, triangles) of a bumpy sheet with shared vertices, cut off at a count."""
    side = int(np.ceil(np.sqrt(triangles / 2))) + 1
    x, y = np.meshgrid(np.arange(side), np.arange(side), indexing="ij")
    positions = np.stack([x, y, rng.random((side, side))], axis=-1).reshape(-1, 3) / side
    corner = (np.arange(side - 1)[:, None] * side + np.arange(side - 1)).reshape(-1)
    quads = [[corner, corner + side, corner + 1], [corner + 1, corner + side, corner + side + 1]]
    flat = np.concatenate([np.stack(quad, axis=1) for quad in quads])
    order = rng.permutation(len(flat))[:triangles]
    return positions.astype(np.float32), flat[order].astype(np.uint32)


def _build(positions: np.ndarray, triangles: np.ndarray, **options: Any) -> Blas:
    with np.errstate(all="ignore"):
        return build_blas(
            positions[triangles].reshape(-1, 3, 3),
            np.zeros(len(triangles), np.uint32),
            np.arange(len(triangles), dtype=np.uint32),
            np.ones(1, np.bool_),
            BuildOptions(**{"reinsertion": 2, **options}),
        )


def _plan(blas: Blas, triangles: np.ndarray) -> RefitPlan:
    return make_plan(blas.words, block_vertices(blas.words, [triangles]))


def _on_gpu(
    device: Any,
    plan: RefitPlan,
    words: np.ndarray,
    *frames: np.ndarray,
    stride: int = 3,
    skip: int = 0,
) -> SimpleNamespace:
    """The frames' positions in turn, in one submission each; guards on both sides of the BLAS."""
    guard = np.arange(192, dtype=np.uint32)
    buffer = device.upload("words", np.concatenate([guard, words, guard]))
    stage = GpuRefit(
        device,
        plan,
        base_bytes=4 * len(guard),
        vertex_words=stride,
        vertex_first=skip,
    )
    for positions in frames:
        spread = np.full((len(positions), stride), np.nan, np.float32)
        spread[:, :3] = positions
        spread = np.concatenate([np.full(skip, np.nan, np.float32), spread.reshape(-1)])
        vertices = device.upload("positions", spread)
        encoder = device.wgpu.create_command_encoder()
        scope = encoder.begin_compute_pass()
        stage.encode(scope, {"words": buffer, "positions": vertices})
        scope.end()
        device.wgpu.queue.submit([encoder.finish()])
    got = device.read(buffer, count=len(words) + 2 * len(guard))
    assert (got[: len(guard)] == guard).all() and (got[-len(guard) :] == guard).all()
    return SimpleNamespace(words=got[len(guard) : -len(guard)], counts=stage.counts())


def _refitted(blas: Blas, words: np.ndarray) -> Blas:
    return replace(blas, words=words, bounds=unpack_header(words).bounds)


def _faults(blas: Blas) -> list[str]:
    return [str(f) for f in validate(assemble([blas], ["moved"], [BvhInstance(0)]))]


def _rays(rng: np.random.Generator, positions: np.ndarray, count: int = 2000) -> Any:
    low, high = positions.min(axis=0), positions.max(axis=0)
    size = np.maximum(high - low, 1e-3)
    origin = low - size + 3 * size * rng.random((count, 3))
    target = low + size * rng.random((count, 3))
    return make_rays(origin.astype(np.float32), (target - origin).astype(np.float32))


@pytest.mark.parametrize("count", [0, 1, 2, 3, 4, 5, 257, 10_000])
@pytest.mark.parametrize("nodes", ["auto", "fp16", "fp32"])
def test_equals_the_twin_and_the_built_bytes(device: Any, rng: Any, count: int, nodes: str) -> None:
    positions, triangles = _sheet(rng, count)
    blas = _build(positions, triangles, nodes=nodes, leaf=(2, 1, 4)[count % 3])
    plan = _plan(blas, triangles)
    assert (len(pyramid_levels(plan.blocks)) == 2) == (count == 10_000)
    unmoved = blas.words.copy()
    assert refit(plan, unmoved, positions) == (0, 0)
    assert (unmoved == blas.words).all()
    moved = (positions + 0.2 * rng.normal(size=positions.shape)).astype(np.float32)
    expected = blas.words.copy()
    assert refit(plan, expected, moved) == (0, 0)
    got = _on_gpu(device, plan, blas.words, moved)
    assert (got.words == expected).all()
    assert count == 0 or (expected != blas.words).any()
    assert _faults(_refitted(blas, got.words)) == []
    # Nothing of the frame before is left.
    back = _on_gpu(device, plan, blas.words, moved, positions)
    assert (back.words == blas.words).all() and back.counts == (0, 0)


@pytest.mark.parametrize("blocks", [1, 2, 7, 8, 9, 33, 1024, 1025, 8192, 8193, 40_000])
def test_runs_from_the_pyramid(device: Any, rng: Any, blocks: int) -> None:
    sizes = pyramid_sizes(blocks)
    assert sizes[-1] <= 8 and all(a > 8 for a in sizes[:-1])
    boxes = np.zeros(6 * sum(sizes), np.int32)
    leaves = np.sort(rng.integers(-(2**31) + 1, 2**31, (blocks, 2, 3), np.int32), axis=1)
    boxes[: 6 * blocks] = leaves.reshape(-1)
    plan = RefitPlan(0, np.zeros((blocks, 5), np.uint32), np.zeros((0, 3), np.uint32))
    stage = GpuRefit(device, plan)
    buffer, counts = device.upload("boxes", boxes), np.array([3, 0, 9, 0], np.uint32)
    stage.resources.update(boxes=buffer, counts=device.upload("counts", counts))
    words = {"words": buffer, "positions": buffer}
    submit_pass(device, stage.phases(words)["pyramid"])
    for record in make_parameters(plan, 0, 3)[1:]:
        refit_pyramid(record, boxes, counts)
    assert (device.read(buffer, np.int32, count=len(boxes)) == boxes).all()
    assert (device.read(stage.resources["counts"])[:3] == counts[:3]).all()
    assert counts.tolist() == [0, 3, 0, 0]
    first, last = np.sort(rng.integers(0, blocks, (2, 300)), axis=0)
    last[:100] = np.minimum(first[:100] + rng.integers(0, 40, 100), blocks - 1)
    first[0], last[0] = 0, blocks - 1
    found = run_boxes(boxes, blocks, first, last)
    for box, a, b in zip(found, first, last, strict=True):
        run = leaves[a : b + 1]
        assert (box == np.concatenate([run[:, 0].min(axis=0), run[:, 1].max(axis=0)])).all()


def test_leaves_out_of_order_are_refused() -> None:
    with pytest.raises(ValueError, match="depth-first"):
        slot_runs(np.array([[1, ~1, EMPTY, EMPTY], [~0, ~2, EMPTY, EMPTY]], np.int32))


def test_boxes_are_those_of_exact_arithmetic(rng: Any) -> None:
    """Rounded once from exact boxes, not once a level."""
    positions, triangles = _sheet(rng, 900)
    blas = _build(positions, triangles, nodes="fp16")
    plan = _plan(blas, triangles)
    words = blas.words.copy()
    refit(plan, words, positions + np.float32(1 / 3))
    header = unpack_header(words).bounds
    used = (positions + np.float32(1 / 3))[np.unique(triangles)]
    assert (header == np.stack([used.min(axis=0), used.max(axis=0)])).all()


def test_vertices_inside_larger_records(device: Any, rng: Any) -> None:
    positions, triangles = _sheet(rng, 300)
    blas = _build(positions, triangles)
    plan = _plan(blas, triangles)
    got = _on_gpu(device, plan, blas.words, positions + 1, positions, stride=8, skip=21)
    assert (got.words == blas.words).all()


@pytest.mark.parametrize("nodes", ["fp16", "fp32"])
def test_any_finite_bits(device: Any, rng: Any, nodes: str) -> None:
    """Denormals, both zeros, the limits of binary16, numbers far beyond it."""
    positions, triangles = _sheet(rng, 2500)
    blas = _build(positions, triangles, nodes=nodes)
    plan = _plan(blas, triangles)
    bits = rng.integers(0, 1 << 32, positions.size, dtype=np.uint32)
    near = rng.integers(0x38000000 - (40 << 23), 0x47900000, len(bits) // 2, dtype=np.uint32)
    bits[::2][: len(near)] = near | (bits[::2][: len(near)] & 0x80000000)
    edges = [0, 0x80000000, 1, 0x80000001, 0x477FE000, 0xC77FE001, 0x47800000, 0x387FFFFF]
    bits[: len(edges)] = edges
    infinite = (bits & 0x7F800000) == 0x7F800000
    bits[infinite] &= 0x807FFFFF
    moved = bits.view(np.float32).reshape(-1, 3)
    expected = blas.words.copy()
    with np.errstate(all="ignore"):
        counts = refit(plan, expected, moved)
    got = _on_gpu(device, plan, blas.words, moved)
    assert (got.words == expected).all()
    assert got.counts == counts and counts[0] == 0
    assert (counts[1] > 0) == (nodes == "fp16")


def test_beyond_binary16_stays_conservative(device: Any, rng: Any) -> None:
    positions, triangles = _sheet(rng, 700)
    blas = _build(positions, triangles, nodes="fp16")
    plan = _plan(blas, triangles)
    far = positions * np.float32(3e5)
    got = _on_gpu(device, plan, blas.words, far)
    assert got.counts[0] == 0 and got.counts[1] > 0
    rays = _rays(rng, far)
    fresh = oracle.trace(_build(far, triangles, nodes="fp32", leaf=1).words, rays)
    traced = oracle.trace(got.words, rays)
    assert fresh.hit.sum() > 100
    assert (traced.hit == fresh.hit).all()
    assert (traced.primitive == fresh.primitive).mean() > 0.99
    # The flag is of one refit: the next one starts from zero.
    assert _on_gpu(device, plan, blas.words, far, positions).counts == (0, 0)


@pytest.mark.parametrize("leaf", [1, 2, 4])
def test_corners_that_are_not_finite(device: Any, rng: Any, leaf: int) -> None:
    positions, triangles = _sheet(rng, 800)
    blas = _build(positions, triangles, leaf=leaf)
    plan = _plan(blas, triangles)
    broken = positions.copy()
    bad = rng.permutation(len(positions))[:60]
    broken[bad[:30], rng.integers(0, 3, 30)] = np.nan
    broken[bad[30:], rng.integers(0, 3, 30)] = -np.inf
    # A whole block without a finite corner keeps its place, without area.
    broken[plan.block_vertices[7, :4]] = np.nan
    expected = blas.words.copy()
    counts = refit(plan, expected, broken)
    usable = np.isfinite(broken).all(axis=1)
    corners = np.where(plan.block_vertices == NO_VERTEX, 0, plan.block_vertices)
    lost = ~usable[corners] & (plan.block_vertices != NO_VERTEX)
    assert counts[0] == lost.any(axis=1).sum() > 60
    got = _on_gpu(device, plan, blas.words, broken)
    assert (got.words == expected).all() and got.counts == counts
    assert _faults(_refitted(blas, got.words)) == []
    rays = _rays(rng, positions, 6000)
    kept = np.flatnonzero(usable[triangles].all(axis=1))
    fresh = oracle.trace(_build(broken, triangles, leaf=1).words, rays)
    traced = oracle.trace(got.words, rays)
    assert np.isin(traced.primitive[traced.hit], kept).all()
    assert (traced.hit == fresh.hit).all()
    assert (traced.primitive == fresh.primitive).mean() > 0.999
    # The next good frame is as if nothing had happened.
    after = _on_gpu(device, plan, blas.words, broken, positions)
    assert (after.words == blas.words).all() and after.counts == (0, 0)


@pytest.mark.parametrize("leaf", [1, 2, 4])
def test_traces_as_a_fresh_build(device: Any, rng: Any, leaf: int) -> None:
    positions, triangles = _sheet(rng, 1500)
    blas = _build(positions, triangles, leaf=leaf)
    plan = _plan(blas, triangles)
    bend = np.sin(6 * positions[:, :1])
    moved = positions + np.concatenate([0 * bend, 0 * bend, bend], axis=1)
    got = _on_gpu(device, plan, blas.words, moved.astype(np.float32))
    rays = _rays(rng, moved, 4000)
    fresh = oracle.trace(_build(moved.astype(np.float32), triangles, leaf=leaf).words, rays)
    traced = oracle.trace(got.words, rays)
    assert fresh.hit.sum() > 1000
    assert (traced.hit == fresh.hit).all()
    if leaf == 1:
        assert (traced.t == fresh.t).all() and (traced.primitive == fresh.primitive).all()
    else:  # pairs turn their corners: another order of the same sums
        assert np.allclose(traced.t[fresh.hit], fresh.t[fresh.hit], rtol=1e-5)


def test_seams_whose_vertices_part_are_refused(rng: Any) -> None:
    positions, triangles = _sheet(rng, 50)
    apart = positions[triangles].reshape(-1, 3)  # every triangle has vertices of its own
    own = np.arange(len(apart), dtype=np.uint32).reshape(-1, 3)
    blas = _build(apart, own)
    assert blas.stats.pairs > 0
    with pytest.raises(UserError, match="leaf 1"):
        block_vertices(blas.words, [own])
    alike = np.unique(apart, axis=0, return_inverse=True)[1].astype(np.uint32)
    vertices = block_vertices(blas.words, [own], alike)
    words = blas.words.copy()
    refit(make_plan(blas.words, vertices), words, apart)
    assert (words == blas.words).all()


def test_bad_arguments(device: Any, rng: Any) -> None:
    positions, triangles = _sheet(rng, 50)
    blas = _build(positions, triangles)
    plan = _plan(blas, triangles)
    scene = assemble([blas], ["sheet"], [BvhInstance(0)])
    with pytest.raises(ValueError, match="TLAS"):
        make_plan(scene.tlas_words, plan.block_vertices)
    with pytest.raises(ValueError, match="blocks"):
        make_plan(blas.words, plan.block_vertices[1:])
    with pytest.raises(ValueError, match="not given"):
        block_vertices(blas.words, [triangles[:10]])
    with pytest.raises(ValueError, match="256"):
        GpuRefit(device, plan, base_bytes=64)


@pytest.mark.parametrize("count", [0, 1, 5, 3000])
def test_cost_is_the_sah_of_exact_boxes(device: Any, rng: Any, count: int) -> None:
    positions, triangles = _sheet(rng, count)
    blas = _build(positions, triangles, nodes="fp16")
    plan = _plan(blas, triangles)
    stage = GpuRefit(device, plan)
    cost = GpuRefitCost(stage)
    buffers = {"words": device.upload("words", blas.words)}
    for scale in (1.0, 1e3):
        buffers["positions"] = device.upload("positions", positions * np.float32(scale))
        encoder = device.wgpu.create_command_encoder()
        scope = encoder.begin_compute_pass()
        stage.encode(scope, buffers)
        cost.encode(scope)
        scope.end()
        device.wgpu.queue.submit([encoder.finish()])
        assert cost.read() == pytest.approx(blas.stats.sah, rel=1e-5)
        if count:
            areas = device.read(cost.areas, np.float32, count=GROUPS + 1)
            twin = np.zeros(GROUPS + 1, np.float32)
            boxes = device.read(stage.resources["boxes"], np.int32)
            boxes = boxes[: len(boxes) // 6 * 6]
            refit_cost(make_parameters(plan, 0, 3)[0], plan.slots, boxes, twin)
            assert (areas == twin).all()


def test_cost_of_a_flat_tree(device: Any, rng: Any) -> None:
    positions, triangles = _sheet(rng, 40)
    blas = _build(positions, triangles)
    plan = _plan(blas, triangles)
    stage = GpuRefit(device, plan)
    cost = GpuRefitCost(stage)
    encoder = device.wgpu.create_command_encoder()
    scope = encoder.begin_compute_pass()
    positions = device.upload("positions", 0 * positions)
    stage.encode(scope, {"words": device.upload("words", blas.words), "positions": positions})
    cost.encode(scope)
    scope.end()
    device.wgpu.queue.submit([encoder.finish()])
    assert cost.read() == plan.blocks + plan.nodes
