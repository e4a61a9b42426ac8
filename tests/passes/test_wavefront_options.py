"""How the frame goes through its queues (passes mixed, compaction, sorts) changes no result: the
hit of every slot and the picture are those of the default, whatever else is chosen."""

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

from engine.gpu.errors import UserError
from engine.scene.camera import look_at
from passes.frame_options import COMPACTIONS, HIT_SORTS, PASSES, RAY_SORTS, FrameOptions
from passes.frame_stats import FrameStats
from passes.frame_uniforms import frame_inputs
from passes.hybrid import HybridFrame
from passes.mixed import mixes
from passes.prepare import PreparedScene
from passes.rays import RAY_TYPES, REFLECTION, SHADOW, RayType, frame_rays
from passes.sorting import AXIS_BITS, hits_of, key_bits, sort_buffers
from passes.twins.frame import cpu_passes, run_cpu

SIZE = (61, 43)
SMALL = {"width": 20, "height": 14}
ONE_OPTION: tuple[dict[str, str], ...] = (
    {"passes": "mixed"},
    {"compaction": "subgroup"},
    {"ray_sort": "coarse"},
    {"ray_sort": "fine"},
    {"hit_sort": "material"},
)
ONE_TYPE = tuple(
    {"ray_sort": "coarse", "sorted_rays": r.name, "passes": "mixed"} for r in RAY_TYPES
)
ALL = {"passes": "mixed", "compaction": "subgroup", "ray_sort": "fine", "hit_sort": "material"}
Frames = Callable[..., tuple[HybridFrame, FrameStats]]


@pytest.fixture(scope="module")
def frames(device: Any, room: PreparedScene) -> Frames:
    """frames(**options) -> (frame, its statistics), with occlusion rays unless said otherwise."""
    made: dict[FrameOptions, tuple[HybridFrame, FrameStats]] = {}

    def make(**options: Any) -> tuple[HybridFrame, FrameStats]:
        size = {"width": SIZE[0], "height": SIZE[1]}
        settings = FrameOptions(**{**size, "occlusion": True, **options})
        if settings not in made:
            frame = HybridFrame(device, room, settings)
            stats = frame.run(0)
            if stats.dropped:  # candidates of rounds: the next frame has room
                stats = frame.run(0)
            made[settings] = frame, stats
        return made[settings]

    return make


def assert_same(one: tuple[HybridFrame, FrameStats], other: tuple[HybridFrame, FrameStats]) -> None:
    """Rays, hits by slot, t, u and v of closest hits, pictures: to the bit."""
    (frame, stats), (changed, changed_stats) = one, other
    assert stats.valid and changed_stats.valid
    assert changed.result_hash() == frame.result_hash()
    np.testing.assert_array_equal(changed.image(), frame.image())
    for ray in frame_rays(frame.options):
        before, after = stats.rays[ray.name], changed_stats.rays[ray.name]
        assert (before.rays, before.replaced) == (after.rays, after.replaced)
        if not ray.any_hit:
            assert by_slot(changed, ray).tobytes() == by_slot(frame, ray).tobytes()


def by_slot(frame: HybridFrame, ray: RayType) -> Any:
    records = frame.data.read_records(ray)
    return frame.data.read_results(ray, records)[np.argsort(records[ray.slot_field])]


@pytest.mark.parametrize("options", [*ONE_OPTION, *ONE_TYPE, ALL], ids=str)
@pytest.mark.parametrize("rays", [{}, {"occlusion": False}], ids=["occlusion", "none"])
def test_results_are_those_of_the_default(frames: Frames, options: Any, rays: Any) -> None:
    assert_same(frames(**rays), frames(**options, **rays))


@pytest.mark.parametrize("options", [*ONE_OPTION, ALL], ids=str)
def test_counted_frames_visit_what_the_default_visits(frames: Frames, options: Any) -> None:
    one, other = frames(count=True), frames(count=True, **options)
    assert_same(one, other)
    assert_same(frames(**options), other)
    assert one[1].rays == other[1].rays and one[1].objects == other[1].objects
    for ray in RAY_TYPES:
        same = [f.data.read_slot_counts(ray, "nodes") for f in (one[0], other[0])]
        np.testing.assert_array_equal(*same)


@pytest.mark.parametrize("options", [*ONE_OPTION, ALL], ids=str)
def test_with_alpha_tests_in_rounds(frames: Frames, options: Any) -> None:
    queue = {"any_hit_mode": "queue", "any_hit_rounds": 1}
    assert_same(frames(), frames(**options, **queue))


@pytest.mark.parametrize(
    "more",
    [
        {"masks": ((REFLECTION.name, 0),), "sort_shadow": True},
        {"masks": ((SHADOW.name, 0),)},
        {"traversal": "contract"},
    ],
    ids=str,
)
def test_the_kernel_of_two_types_keeps_each_ones_own_apart(frames: Frames, more: Any) -> None:
    assert_same(frames(**SMALL, **more), frames(**SMALL, **more, passes="mixed"))


@pytest.mark.parametrize("options", [{"ray_sort": "coarse"}, ALL], ids=str)
def test_in_parts_and_after_one_that_was_left(
    device: Any, room: PreparedScene, frames: Frames, options: Any
) -> None:
    frame = HybridFrame(device, room, FrameOptions(**SMALL, occlusion=True, **options))
    assert_same(frames(**SMALL), (frame, frame.run(0)))
    names = [item.name for item in frame.passes]
    for left in ("sort/shadow/radix", "traverse/mixed_1", "sort/occlusion/gather"):
        if left not in names:
            continue
        steps = frame.steps(0, budget_ms=0.0)
        for _ in range(names.index(left) + 4):  # parts before it make this an earlier pass, too
            next(steps)
        steps.close()
    parts = list(frame.steps(0, budget_ms=0.0))
    assert len(parts) > len(names) and parts[-1] is not None
    assert_same(frames(**SMALL), (frame, parts[-1]))


@pytest.mark.parametrize("options", [*ONE_OPTION, ALL], ids=str)
def test_full_queues_are_counted_and_the_next_have_room(
    device: Any, room: PreparedScene, frames: Frames, options: Any
) -> None:
    few = FrameOptions(*SIZE, occlusion=True, queue_fraction=0.05, **options)
    frame = HybridFrame(device, room, few)
    stats = frame.run(0)
    assert not stats.valid and all(stats.rays[ray.name].dropped for ray in RAY_TYPES)
    for ray in RAY_TYPES:
        assert stats.rays[ray.name].rays == frame.data.capacities[ray.name]
    while stats.dropped:
        stats = frame.run(0)
    assert_same(frames(), (frame, stats))


@pytest.mark.parametrize("options", [*ONE_OPTION, ALL], ids=str)
def test_no_rays(frames: Frames, options: Any) -> None:
    """A camera that sees nothing: every queue is empty, after a frame whose queues were not."""
    results = []
    for more in ({}, options):
        frame, _ = frames(**SMALL, **more)
        away = look_at(np.array([0.0, 2.0, 9.0]), np.array([0.0, 3.0, 20.0]), 0.7)
        results.append((frame, frame.run(0, inputs=replace(frame.inputs, camera=away))))
        assert not any(frame.data.read_header(ray)["count"] for ray in RAY_TYPES)
    assert_same(*results)
    for frame, _ in results:  # which other tests look at, too
        frame.run(0, inputs=frame_inputs(frame.scene.prepared, frame.options))


@pytest.mark.parametrize("ray_sort", [name for name in RAY_SORTS if name != "none"])
def test_rays_are_in_the_order_of_their_keys(frames: Frames, ray_sort: str) -> None:
    """Octant first, then the origin's Morton code; equal keys as they were pushed."""
    frame, _ = frames(ray_sort=ray_sort)
    data = frame.data
    for ray in RAY_TYPES:
        count = len(data.read_records(ray))
        keys, order = (
            data.device.read(data.resources[f"{ray.name}_{what}"], np.uint32, count=count)
            for what in ("keys", "order")
        )
        assert (np.sort(order) == np.arange(count)).all() and count > 1000
        steps = np.diff(keys.astype(np.int64))
        assert (steps >= 0).all() and steps.any()
        assert (np.diff(order.astype(np.int64))[steps == 0] > 0).all()
    rays = data.read_records(REFLECTION)
    octant = (rays["direction"] < 0) @ np.array([4, 2, 1])
    assert (np.diff(octant) >= 0).all() and len(np.unique(octant)) > 3
    box = frame.bvh().words[12:18].view(np.float32).astype(float)
    cells = 1 << AXIS_BITS[ray_sort]
    cell = np.clip((rays["origin"] - box[:3]) / (box[3:] - box[:3]) * cells, 0, cells - 1)
    # Where the whole part of the highest axis that differs cannot be a matter of rounding.
    top = (cell.astype(int) >> (AXIS_BITS[ray_sort] - 1)) @ np.array([4, 2, 1])
    assert (np.diff(8 * octant + top) >= 0).all()


def test_neighbours_go_the_same_way_once_sorted(frames: Frames) -> None:
    def octants_a_group(frame: HybridFrame) -> float:
        directions = frame.data.read_records(REFLECTION)["direction"]
        octant = (directions < 0) @ np.array([4, 2, 1])
        whole = octant[: len(octant) // 32 * 32].reshape(-1, 32)
        return float(np.mean([len(np.unique(group)) for group in whole]))

    assert octants_a_group(frames(ray_sort="coarse")[0]) < octants_a_group(frames()[0]) - 0.2


def test_hits_are_in_the_order_of_their_materials(frames: Frames, room: PreparedScene) -> None:
    frame, _ = frames(hit_sort="material")
    data = frame.data
    hits = data.read_results(REFLECTION, data.read_records(REFLECTION))
    order = data.device.read(
        data.resources[f"{hits_of(REFLECTION)}_order"], np.uint32, count=len(hits)
    )
    assert (np.sort(order) == np.arange(len(hits))).all()
    scene = room.scene
    materials = np.array([scene.meshes[i.mesh].material for i in scene.instances] + [0xFFFF])
    objects = np.minimum(hits["object"], len(materials) - 1)[order]
    named = materials[objects]
    assert (np.diff(named) >= 0).all() and len(np.unique(named)) > 3


@pytest.mark.parametrize("count", [False, True])
@pytest.mark.parametrize(
    "options", [*ONE_OPTION, *ONE_TYPE, ALL, {**ALL, "occlusion": False}], ids=str
)
def test_twins_are_the_frames_passes(frames: Frames, options: Any, count: bool) -> None:
    frame, _ = frames(count=count, **options)
    twins = cpu_passes(frame.options)
    assert [p.name for p in frame.passes][2:] == [t.name for t in twins][2:]
    for item, twin in list(zip(frame.passes, twins, strict=True))[2:]:
        bound = {twin.bind.get(name, name) for name in twin.bindings}
        others = {n for n in item.reads if n.endswith(("_arguments", "_totals"))}
        assert bound | others == set(item.reads) | set(item.writes), item.name


def test_twins_draw_the_same(frames: Frames, room: PreparedScene) -> None:
    frame, stats = frames(**{**ALL, "gbuffer": "rays"})
    cpu = run_cpu(room, frame.options, frame.inputs)
    picture = cpu["picture"].view(np.uint8).reshape(SIZE[1], SIZE[0], 4)[..., :3]
    apart = np.abs(picture.astype(int) - frame.image()).max(axis=-1)
    assert (apart > 1).mean() < 0.01
    for ray in RAY_TYPES:
        assert cpu[ray.queue].count == stats.rays[ray.name].rays
        keys = frame.data.device.read(
            frame.data.resources[f"{ray.name}_keys"], np.uint32, count=100
        )
        assert (keys == cpu[f"{ray.name}_keys"][:100]).mean() > 0.9


def test_an_adapter_without_subgroups_is_named(
    device: Any, room: PreparedScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device, "features", device.features - {"subgroup"})
    with pytest.raises(UserError, match=r"no operations of subgroups .*--compaction workgroup"):
        HybridFrame(device, room, FrameOptions(8, 8, compaction="subgroup"))
    HybridFrame(device, room, FrameOptions(8, 8))


@pytest.mark.parametrize("field", ["passes", "compaction", "ray_sort", "hit_sort"])
def test_unknown_values_are_refused_by_name(field: str) -> None:
    with pytest.raises(UserError, match=f"unknown {field.replace('_', ' ')} 'x', there are "):
        FrameOptions(8, 8, **{field: "x"})


def test_what_costs_nothing_where_it_is_not_asked_for() -> None:
    plain = FrameOptions(8, 8)
    assert not any(sort_buffers(plain, ray, 64) for ray in RAY_TYPES) and not mixes(plain, True)
    for passes, compaction in product(PASSES, COMPACTIONS):
        for ray_sort, hit_sort in product(RAY_SORTS, HIT_SORTS):
            options = FrameOptions(
                8, 8, passes=passes, compaction=compaction, ray_sort=ray_sort, hit_sort=hit_sort
            )
            made = [p.name for p in cpu_passes(options)]
            sorts = [name for name in made if name.split("/")[-1] in ("keys", "radix", "gather")]
            assert bool(sorts) == (ray_sort != "none" or hit_sort != "none")
            assert any("mixed" in name for name in made) == (passes == "mixed")
    assert [key_bits(bits) for bits in AXIS_BITS.values()] == [16, 32]


def test_what_a_full_queue_drops_behind_its_sort_is_counted(
    device: Any, room: PreparedScene
) -> None:
    """Shadow rays of surfaces fill the queue to its last record, so that those of reflection hits
    leave nothing to sort: the frame is invalid, and the next one has room."""
    frame = HybridFrame(device, room, FrameOptions(*SIZE, passes="mixed", ray_sort="coarse"))
    expected = frame.run(0).rays["shadow"].rays
    first = frame.data.read_header(SHADOW)["drained"]
    assert 0 < first < expected
    frame.data.capacities["shadow"] = first
    frame.data._add_queue(SHADOW)
    frame._make_frame()
    full = frame.run(0)
    assert not full.valid
    assert (full.rays["shadow"].rays, full.dropped) == (first, expected - first)
    again = frame.run(0)
    assert again.valid and again.rays["shadow"].rays == expected
