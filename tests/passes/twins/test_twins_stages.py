"""Every stage of the frame on the GPU against its twin, on equal inputs."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from bvh.build import BuildOptions
from bvh.counters import COUNTERS
from engine.gpu.stage import Stage
from engine.scene.camera import look_at
from passes.frame_options import FrameOptions
from passes.prepare import prepare
from passes.queue import QUEUE_HEADER
from passes.rays import RAY_TYPES, with_every_ray
from passes.twins.arguments import arguments
from passes.twins.frame import cpu_passes
from passes.twins.queue_push import RayQueue

PASSES = [item.name for item in cpu_passes(with_every_ray(FrameOptions(1, 1)))]
QUEUE_KEYS = {ray.queue: ray.slot_field for ray in RAY_TYPES}


# Sizes are no multiples of the 8x8 tile.
CASES = {
    "counted": dict(width=61, height=43, count=True),
    "later frame": dict(width=61, height=43, count=True, frame_index=5),
    "seed": dict(width=21, height=35, seed=0xFFFFFFF0, frame_index=2, exposure=1.7),
    "second sample": dict(
        width=21, height=35, seed=0xFFFFFFF0, frame_index=3, exposure=1.7, sample_count=2
    ),
    "blue noise": dict(width=61, height=43, seed=0xFFFFFFF0, frame_index=7, sampler="blue"),
    "sobol": dict(width=61, height=43, seed=0xFFFFFFF0, frame_index=7, sampler="sobol"),
    "one pixel": dict(width=1, height=1),
}


@pytest.mark.parametrize("case", CASES)
def test_stage_equals_its_twin(rich_scene: Any, walk: Any, differences: Any, case: str) -> None:
    steps = walk(rich_scene, **CASES[case])
    assert list(steps) == PASSES
    assert {name: differences(step) for name, step in steps.items()} == {n: [] for n in PASSES}
    if case != "one pixel":
        sent = {ray.name: steps["composite"].gpu[ray.queue].count for ray in RAY_TYPES}
        assert min(sent.values()) > 100


@pytest.mark.parametrize("nodes", ["fp16", "fp32"])
def test_scene_of_one_opaque_instance(
    kit: SimpleNamespace, walk: Any, differences: Any, nodes: str
) -> None:
    """Kernels without the top level and the alpha test, and far from the origin."""
    meshes = [
        kit.sphere((300, 0, 0), material=1, rings=6),
        kit.quad((296, -1, 4), (8, 0, 0), (0, 0, -8)),
        kit.sphere((302, 0.2, 0), 0.7, rings=5, smooth=False),
    ]
    scene = kit.scene(
        meshes,
        [kit.grey(), kit.mirror()],
        eye=(300.01, 1, 5),  # no pixel's ray runs along the spheres' seams
        target=(300.01, 0, 0),
        light=kit.lamp((300, 3, 0), 0.5),
    )
    prepared = prepare(scene, BuildOptions(nodes=nodes), "all")
    steps = walk(prepared, 37, 27)
    assert {name: differences(step) for name, step in steps.items()} == {n: [] for n in PASSES}
    assert steps["composite"].gpu["reflection_queue"].count > 50


def test_light_brighter_than_float16(rich_scene: Any, walk: Any, differences: Any) -> None:
    light = replace(rich_scene.scene.light, radiance=(1e8, 1e6, 1e5))
    steps = walk(replace(rich_scene, scene=replace(rich_scene.scene, light=light)), 21, 35)
    assert {name: differences(step) for name, step in steps.items()} == {n: [] for n in PASSES}
    direct = steps["composite"].gpu["direct"].view(np.float16)
    assert (direct == 6e4).any() and np.isfinite(direct).all()


def test_mirror_sees_half_of_the_light(kit: SimpleNamespace, walk: Any, differences: Any) -> None:
    """The other half is behind a blocker, which the reflection rays hit first."""
    meshes = [
        kit.quad((-4, 0, 4), (8, 0, 0), (0, 0, -8), 1),
        kit.quad((-3, 2.0, 1), (3, 0, 0), (0, 0, -4)),
    ]
    light = kit.lamp((0.0, 2.2, -1.0), 0.9)
    scene = kit.scene(meshes, [kit.grey(), kit.mirror()], eye=(0, 2, 4), light=light)
    steps = walk(prepare(scene), 45, 31)
    assert {name: differences(step) for name, step in steps.items()} == {n: [] for n in PASSES}
    last = steps["composite"].gpu
    queue = last["reflection_queue"]
    bright = last["reflected"].view(np.float16)[queue.records["pixel"][: queue.count], 0] > 0.5
    blocked = last["reflection_results"]["object"][: queue.count] == 1
    assert bright.sum() > 20 and blocked.sum() > 20 and not (bright & blocked).any()


def test_what_the_scene_covers(rich_scene: Any, walk: Any) -> None:
    """The comparisons above mean little unless every branch has pixels."""
    step = walk(rich_scene, 61, 43, count=True)["composite"]
    surface = step.gpu["surface"]
    seen = step.gpu["visibility"][..., 0] != 0xFFFFFFFF
    roughness = (surface[..., 3] >> np.uint32(16)) & np.uint32(0xFF)
    assert 0.2 < seen.mean() < 0.9
    assert len(np.unique(surface[..., 3][seen] & np.uint32(0xFFFF))) == 6
    assert (roughness[seen] == 0).sum() > 30 and (roughness[seen] > 153).sum() > 200
    header = step.gpu["reflection_queue"].header
    assert header["replaced"] > 0 and header["texture_fetches"] > 50 and header["hits"] > 100
    rays = step.gpu["reflection_queue"].count
    assert header["hits"] < rays
    counters = dict(zip(COUNTERS, step.gpu["shadow_counters"].tolist(), strict=False))
    assert counters["any_hits"] > 10 and 0 < counters["hits"] < counters["rays"]


def test_reflection_rays_of_a_tile_stay_in_lane_order(rich_scene: Any, walk: Any) -> None:
    width = 61
    queue = walk(rich_scene, width, 43, count=True)["rays/reflection"].gpu["reflection_queue"]
    y, x = np.divmod(queue.records["pixel"][: queue.count].astype(int), width)
    tile, lane = x // 8 + 1000 * (y // 8), x % 8 + 8 * (y % 8)
    starts = np.flatnonzero(np.diff(tile, prepend=-1))
    assert len(starts) == len(np.unique(tile))  # each tile's rays lie together
    assert (np.diff(lane)[np.diff(tile) == 0] > 0).all()


def test_empty_picture(rich_scene: Any, walk: Any, differences: Any) -> None:
    away = look_at(np.array([0.0, 50.0, 0.0]), np.array([0.3, 90.0, 0.1]), 0.8)
    scene = replace(rich_scene, scene=replace(rich_scene.scene, camera=away))
    steps = walk(scene, 13, 11)
    assert {name: differences(step) for name, step in steps.items()} == {n: [] for n in PASSES}
    last = steps["composite"].gpu
    assert (last["ids"] == 0xFFFFFFFF).all()
    assert [int(last[f"{ray.name}_arguments"][0]) for ray in RAY_TYPES] == [0] * len(RAY_TYPES)


@pytest.mark.parametrize("fraction", [0.2, 0.0])
def test_queues_over_capacity(
    rich_scene: Any, walk: Any, walk_new: Any, differences: Any, fraction: float
) -> None:
    whole = walk(rich_scene, 21, 35)
    # Not over rubbish: what dropped rays left as it was is a factor of light.
    steps = walk_new(rich_scene, 21, 35, queue_fraction=fraction)
    for name, step in steps.items():
        for queue in QUEUE_KEYS:
            # Which rays found room is up to the order of workgroups; how many is not.
            gpu, cpu = step.gpu[queue], step.cpu[queue]
            assert gpu.header == cpu.header, name
            if name.startswith(("rays", "shade")):
                step.cpu[queue] = gpu
                known = whole["composite"].gpu[queue].records
                key = QUEUE_KEYS[queue]
                if gpu.count:
                    assert np.isin(gpu.records[key][: gpu.count], known[key]).all()
        assert differences(step) == [], name
    for ray in RAY_TYPES:
        header = steps["composite"].gpu[ray.queue].header
        assert header["capacity"] == max(1, int(21 * 35 * ray.slots_per_pixel * fraction))
        assert header["dropped"] == header["count"] - header["capacity"] > 0


GROUP_LIMIT = 65535 * 64


@pytest.mark.parametrize(
    "count",
    [0, 1, 63, 64, 65, GROUP_LIMIT - 1, GROUP_LIMIT, GROUP_LIMIT + 1, 3 * GROUP_LIMIT + 7, 2**31],
)
def test_arguments_fold_past_the_limit(device: Any, arguments_stage: Stage, count: int) -> None:
    for capacity in (0xFFFFFFF0, count, max(count - 1, 0)):
        header = np.zeros((), QUEUE_HEADER.dtype)
        header["count"], header["capacity"] = count, capacity
        queue = device.upload("queue", header.reshape(1))
        result = device.buffer("arguments", 12)
        arguments_stage.run({"queue": queue, "arguments": result}, (1, 1))
        expected = np.zeros(3, np.uint32)
        arguments(RayQueue(header, np.zeros(0, np.uint32)), expected)
        x, y, z = device.read(result, count=3).tolist()
        assert [x, y, z] == expected.tolist()
        assert x <= 65535 and y <= 65535 and z == 1
        assert 64 * x * y >= min(count, capacity)


@pytest.fixture(scope="module")
def arguments_stage(device: Any) -> Stage:
    return Stage(device, "arguments", "passes/shaders/arguments.wgsl", twin=arguments)
