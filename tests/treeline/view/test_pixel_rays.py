"""The rays of a pixel: those that the frame traced, and the steps that they took."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bvh.build import BuildOptions
from bvh.gpu.trace_rays import HIT
from bvh.rays import MISS_ID
from bvh.step_stack import count_steps, stack_moves
from engine.gpu.errors import UserError
from passes.hybrid import FrameOptions, HybridFrame
from passes.prepare import PreparedScene, prepare
from passes.rays import RAY_TYPES, REFLECTION, with_every_ray
from passes.slot_counts import SLOT_COUNTS
from passes.twins.rays import RECORD_TWINS
from treeline.scenes import load
from treeline.view.pixel_rays import PRIMARY, PixelRay, pixel_rays, steps, trace_steps
from treeline.view.ray_walk import RayWalk
from treeline.view.step_check import check_steps

Pixels = list[tuple[int, int]]


def some_pixels(rng: np.random.Generator, frame: HybridFrame, count: int) -> Pixels:
    options = frame.options
    chosen = rng.choice(options.width * options.height, count, replace=False)
    return [(int(p) % options.width, int(p) // options.width) for p in chosen]


def rays_of(frame: HybridFrame, pixels: Pixels) -> Iterator[PixelRay]:
    for x, y in pixels:
        yield from pixel_rays(frame, x, y)


def test_every_ray_of_every_queue_is_found(counted: HybridFrame) -> None:
    sent = {ray.name: len(counted.data.read_records(ray)) for ray in RAY_TYPES}
    found = dict.fromkeys(sent, 0)
    options = counted.options
    pixels = [(x, y) for x in range(options.width) for y in range(0, options.height, 6)]
    rows = {y for _, y in pixels}
    for ray in rays_of(counted, pixels):
        if ray.ray_type != PRIMARY:
            found[ray.ray_type] += 1
    for ray in RAY_TYPES:
        slots = RECORD_TWINS[ray.name].ray_slot(counted.data.read_records(ray))
        y = slots // ray.slots_per_pixel // options.width
        assert found[ray.name] == np.isin(y, list(rows)).sum() > 50


def test_rays_are_those_of_the_twins(
    device: Any, hall: PreparedScene, rng: np.random.Generator
) -> None:
    options = with_every_ray(FrameOptions(64, 36, seed=1, gbuffer="rays"))
    frame = HybridFrame(device, hall, options)
    frame.run(4)
    twins = frame.run_cpu()
    pixels = some_pixels(rng, frame, 40)
    found = list(rays_of(frame, pixels))
    for ray_type in RAY_TYPES:
        twin = RECORD_TWINS[ray_type.name]
        queue = twins[ray_type.queue]
        records = queue.records[: queue.count]
        rays, slots = twin.load_ray(twins["frame"], records), twin.ray_slot(records)
        by_slot = dict(zip(slots.tolist(), rays, strict=True))
        mine = [ray for ray in found if ray.ray_type == ray_type.name]
        numbers = [y * frame.options.width + x for x, y in pixels]
        expected = {s for s in by_slot if s // ray_type.slots_per_pixel in numbers}
        assert {ray.slot for ray in mine} == expected and len(expected) > 5
        off = []
        for ray in mine:
            other = by_slot[ray.slot]
            assert (ray.ray["t_min"], ray.ray["t_max"]) == (other["t_min"], other["t_max"])
            off.append(np.abs(ray.origin - other["origin"]).max())
            off.append(np.abs(ray.direction - other["direction"]).max())
        assert np.max(off) < 1e-4


def test_record_and_queue_index_belong_to_the_ray(
    counted: HybridFrame, rng: np.random.Generator
) -> None:
    for ray in rays_of(counted, some_pixels(rng, counted, 10)):
        if ray.queued is None:
            continue
        records = counted.data.read_records(ray.queued.ray_type)
        record = records[ray.index : ray.index + 1]
        assert np.array_equal(record.view(np.uint32), ray.queued.record)
        twin = RECORD_TWINS[ray.ray_type].load_ray(ray.traced.uniforms, record)[0]
        assert np.abs(twin["direction"] - ray.direction).max() < 1e-5


def test_children_start_at_their_parents_hit(
    counted: HybridFrame, rng: np.random.Generator
) -> None:
    kinds = set()
    for x, y in some_pixels(rng, counted, 30):
        rays = pixel_rays(counted, x, y)
        assert (rays[0].ray_type, rays[0].parent, rays[0].depth) == (PRIMARY, -1, 0)
        for number, ray in enumerate(rays[1:], 1):
            parent = rays[ray.parent]
            assert ray.parent < number and ray.depth == parent.depth + 1
            assert parent.hit
            assert np.linalg.norm(parent.point(parent.t) - ray.origin) < 1e-3 * max(1, parent.t)
            kinds.add((ray.ray_type, parent.ray_type))
    assert kinds == {(ray.name, start) for ray in RAY_TYPES for start in ray.starts_at}


@pytest.mark.parametrize("gbuffer", ["raster", "rays"])
def test_oracle_finds_what_the_frame_found(
    device: Any, hall: PreparedScene, rng: np.random.Generator, gbuffer: str
) -> None:
    frame = HybridFrame(device, hall, FrameOptions(64, 36, seed=7, gbuffer=gbuffer))
    frame.run(2)
    checked = off = 0
    for ray in rays_of(frame, some_pixels(rng, frame, 30)):
        _, result = trace_steps(ray)
        checked += 1
        if ray.any_hit:
            assert bool(result.hit[0]) == ray.hit
        elif ray.ray_type == PRIMARY and gbuffer == "raster":
            off += int(result.object[0]) != ray.object or int(result.primitive[0]) != ray.primitive
        else:
            assert (int(result.object[0]), int(result.primitive[0])) == (ray.object, ray.primitive)
            assert int(result.instance[0]) % 2**32 == ray.instance % 2**32
            assert not ray.hit or abs(float(result.t[0]) - ray.t) < 1e-4 * ray.t
    assert checked > 60 and off <= 2


def test_steps_add_up_to_the_slots_counts(counted: HybridFrame, rng: np.random.Generator) -> None:
    checked = off = 0
    for ray in rays_of(counted, some_pixels(rng, counted, 45)):
        if ray.ray_type == PRIMARY:
            assert ray.counts == {}
            continue
        taken, result = trace_steps(ray)
        spent = count_steps(taken) | {"any_hits": int(result.counters.any_hits[0])}
        assert set(ray.counts) == set(SLOT_COUNTS) <= set(spent)
        last = taken[-2]
        if ray.any_hit and ray.hit and last.slot < last.node & 7:
            spent["triangle_tests"] += 1  # the kernel tests a pair's second triangle all the same
        checked += 1
        off += any(spent[name] != count for name, count in ray.counts.items())
    # The kernel's boxes are a rounding wider than the oracle's.
    assert checked > 30 and off <= checked // 20


def test_the_gpus_own_log_agrees(counted: HybridFrame, rng: np.random.Generator) -> None:
    types = set()
    for ray in rays_of(counted, some_pixels(rng, counted, 8)):
        check = check_steps(counted.device, ray)
        assert check.verified, check.verdict
        assert check.log is not None
        assert (check.result_same is None) == (ray.ray_type == PRIMARY)
        spent = count_steps(check.log.steps)
        assert {name: spent[name] for name in ray.counts if name in spent} == {
            name: count for name, count in ray.counts.items() if name in spent
        }
        moves = stack_moves(check.log.steps)
        tops = [
            (step.stack, len(move.entries) + (move.popped is not None))
            for step, move in zip(check.log.steps, moves, strict=True)
            if step.kind == "box" and step.follow
        ]
        assert tops and all(told == implied for told, implied in tops)
        types.add(ray.ray_type)
    assert types == {PRIMARY, *(ray.name for ray in RAY_TYPES)}


def test_popped_nodes_are_the_next_ones(counted: HybridFrame, rng: np.random.Generator) -> None:
    popped = 0
    for ray in rays_of(counted, some_pixels(rng, counted, 12)):
        taken = steps(ray)
        moves = stack_moves(taken)
        for move, following in zip(moves[:-1], taken[1:], strict=True):
            if move.popped is not None and following.kind not in ("leave", "end"):
                assert move.popped == following.node
                popped += 1
        if taken[-1].why.startswith("missed"):
            assert moves[-1].entries == ()
    assert popped > 100


def test_a_wrong_ray_is_not_verified(counted: HybridFrame) -> None:
    device = counted.device
    rays = next(
        rays
        for x, y in np.ndindex(counted.options.width, counted.options.height)
        if len(rays := pixel_rays(counted, x, y)) == 1 + sum(r.slots_per_pixel for r in RAY_TYPES)
    )
    shadows = [ray for ray in rays if ray.ray_type == "shadow"]
    reflection = next(ray for ray in rays if ray.ray_type == "reflection")
    assert check_steps(device, shadows[0]).verified
    # The other slot's record, the other result, another hit, another ray's steps.
    assert shadows[0].queued is not None and reflection.queued is not None
    swapped = replace(shadows[0], queued=replace(shadows[1].queued, slot=shadows[0].slot))
    assert "another ray" in check_steps(device, swapped).verdict
    flipped = replace(shadows[0].queued, result=1 - shadows[0].queued.result)
    check = check_steps(device, replace(shadows[0], queued=flipped))
    assert not check.verified and "another result" in check.verdict
    hit = reflection.queued.result.copy()
    hit.view(HIT.dtype)["primitive"] += 1
    wrong = replace(reflection, queued=replace(reflection.queued, result=hit))
    assert not check_steps(device, wrong).verified
    assert not check_steps(device, reflection, steps(shadows[0])).verified


def test_mask_decides_which_instances_are_entered(counted: HybridFrame) -> None:
    ray = next(
        ray
        for ray in rays_of(counted, [(x, 20) for x in range(64)])
        if [s.kind for s in steps(ray)].count("instance") > 1
    )
    blind = replace(ray, kernel=(ray.kernel[0], {**ray.constants, "RAY_MASK": 0}), queued=None)
    taken = steps(blind)
    assert taken[-1].why.startswith("missed")
    culled = [i for i, step in enumerate(taken) if step.kind == "instance"]
    assert len(culled) > 1 and not any(taken[i].hit[0] for i in culled)
    moves = stack_moves(taken)
    assert all(moves[i].popped == taken[i + 1].node for i in culled if taken[i + 1].kind != "end")
    assert moves[-1].entries == ()
    walk = RayWalk(blind)
    assert walk.title(culled[0]).endswith("culled by mask")
    assert walk.facts(culled[0])[-1] == "mask 0xff AND the ray's 0x00 is 0x00"
    assert check_steps(counted.device, blind).verified


def test_contract_traversal_has_the_oracle_alone(device: Any, hall: PreparedScene) -> None:
    frame = HybridFrame(device, hall, FrameOptions(16, 9, traversal="contract", gbuffer="rays"))
    frame.run()
    for ray in pixel_rays(frame, 8, 5):
        _, result = trace_steps(ray)
        assert bool(result.hit[0]) == ray.hit
        check = check_steps(device, ray)
        assert not check.verified and "oracle" in check.verdict


def test_scene_of_one_instance_begins_inside_it(device: Any, box: Path) -> None:
    prepared = prepare(load(box), BuildOptions(leaf=4), "all")
    frame = HybridFrame(device, prepared, FrameOptions(32, 18, count=True))
    frame.run()
    rays = [ray for x in range(4, 32, 3) for ray in pixel_rays(frame, x, 8)]
    assert len(rays) > 12 and {ray.hit for ray in rays} == {True, False}
    for ray in rays:
        taken = steps(ray)
        assert not any(step.kind == "instance" for step in taken)
        whole = [step.kind for step in trace_steps(ray)[0]]
        assert whole.count("instance") == (1 if len(taken) > 1 else 0)
        assert check_steps(device, ray, taken).verified


def test_new_ray_type_needs_no_edits_here(
    counted: HybridFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second kind of reflection that shares the first one's buffers."""
    glossy = replace(REFLECTION, name="glossy", starts_at=("reflection",))
    monkeypatch.setattr(counted.data, "rays", (*counted.data.rays, glossy))
    shared = {
        name.replace("reflection", "glossy"): buffer
        for name, buffer in counted.data.resources.items()
        if name.startswith("reflection_")
    }
    resources = {**counted.data.resources, **shared}
    monkeypatch.setattr(counted.data, "resources", resources)
    rays = next(
        rays
        for x in range(64)
        if len(rays := pixel_rays(counted, x, 30)) > 2 and rays[1].ray_type == "reflection"
    )
    added = next(ray for ray in rays if ray.ray_type == "glossy")
    assert rays[added.parent].ray_type == "reflection" and added.depth == 2
    assert added.ray == rays[added.parent].ray and added.object == rays[added.parent].object


def test_pixel_outside_the_picture_is_an_error(counted: HybridFrame) -> None:
    for x, y in ((64, 0), (0, 36), (-1, 5)):
        with pytest.raises(UserError, match=f"pixel {x}, {y} is outside the 64x36 picture"):
            pixel_rays(counted, x, y)


def test_results_name_what_was_found(counted: HybridFrame) -> None:
    words = set()
    for ray in rays_of(counted, [(x, 25) for x in range(40)]):
        words.add(ray.result.split(" at ")[0])
        types = {item.name: item.any_hit for item in RAY_TYPES}
        assert ray.any_hit == types.get(ray.ray_type, False)
        assert (ray.object == MISS_ID) == (ray.any_hit or not ray.hit)
    assert words >= {"hit", "free", "occluded"}
