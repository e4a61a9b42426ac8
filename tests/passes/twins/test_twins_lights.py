"""Several lights: stages against their twins, and what choosing among lights may not do."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from engine.scene.light import MOST_LIGHTS
from passes.frame_uniforms import LIGHT_PARTS, FrameInputs, pack_uniforms
from passes.shadow_slots import ShadowSlots
from passes.twins.choose_light import choose_light, light_importance
from passes.twins.light import light_from, sampled_light
from passes.twins.rect_light import light_count, lights_at
from passes.twins.sample_light import light_sample, sample_light
from passes.twins.wgsl_functions import dot, normalize

Rng = np.random.Generator
NO_TABLES = np.zeros((1, 4), np.uint32)  # plain random numbers need none


def more_lights(kit: Any) -> tuple[Any, ...]:
    """Beside the rich scene's: a near one, one in a far corner and one that shines upwards."""
    return (
        kit.lamp((-2.0, 1.5, 2.0), 0.3, (1.0, -0.6, -1.0), (2.0, 3.0, 4.0)),
        kit.lamp((6.0, 5.0, -9.0), 0.8, (-1.0, -1.0, 2.0), (9.0, 3.0, 1.0)),
        kit.lamp((0.0, -0.9, 3.0), 0.5, (0.0, 1.0, 0.0), (1.0, 1.0, 1.0)),
    )


@pytest.fixture(scope="module")
def lit_scene(rich_scene: Any, kit: Any) -> Any:
    return replace(rich_scene, scene=replace(rich_scene.scene, more_lights=more_lights(kit)))


CASES = {
    "two of four, along paths": dict(shadow_rays=2, count=True, reflection_bounces=3),
    "all in turn": dict(shadow_rays=4, reflection_scale="half", frame_index=3),
}


@pytest.mark.parametrize("case", CASES)
def test_stages_equal_their_twins(lit_scene: Any, walk: Any, differences: Any, case: str) -> None:
    steps = walk(lit_scene, 33, 23, **CASES[case])
    assert {name: differences(step) for name, step in steps.items()} == {n: [] for n in steps}
    queue = steps["composite"].gpu["shadow_queue"]
    rays = queue.records[: queue.count]
    chosen = np.bincount(sampled_light(steps["composite"].gpu["frame"], rays["light_uv"]))
    assert len(chosen) == 4 and chosen.min() > 5
    assert len(np.unique(rays["slot"])) == len(rays)


# Choosing, on surfaces and lights of every place and size.


def uniforms_of(lights: Any, frame_index: int = 0) -> Any:
    record = pack_uniforms(
        replace(INPUTS, light=lights[0], more_lights=tuple(lights[1:]), frame_index=frame_index),
        4,
        4,
        (0, 0, 0, 0),
    )
    return record.copy()


@pytest.fixture(scope="module", autouse=True)
def inputs(rich_scene: Any) -> None:
    global INPUTS
    scene = rich_scene.scene
    INPUTS = FrameInputs(scene.camera, scene.light, scene.environment, seed=3)


INPUTS: Any = None


def some_lights(kit: Any, rng: Rng, count: int) -> list[Any]:
    """Some far larger or brighter than others, facing anywhere."""
    return [
        kit.lamp(
            rng.uniform(-3, 3, 3),
            float(np.exp(rng.uniform(-4, 0.5))),
            rng.normal(size=3),
            np.exp(rng.uniform(-2, 4, 3)),
        )
        for _ in range(count)
    ]


def some_surfaces(rng: Rng, count: int) -> tuple[Any, ...]:
    """position, normals, view and material of surfaces anywhere, among the lights, too."""
    position = rng.uniform(-3, 3, (count, 3)).astype(np.float32)
    geometric = normalize(rng.normal(size=(count, 3)).astype(np.float32))
    normal = normalize(geometric + np.float32(0.2) * rng.normal(size=(count, 3)).astype(np.float32))
    view = normalize(normal + np.float32(0.8) * rng.normal(size=(count, 3)).astype(np.float32))
    color = rng.uniform(0, 1, (count, 3)).astype(np.float32)
    metalness, roughness = rng.uniform(0.2, 1, (2, count)).astype(np.float32)
    return position, geometric, normal, view, color, metalness, roughness


def test_no_light_that_arrives_is_left_out(kit: Any, rng: Rng) -> None:
    """What has no importance brings nothing from any of its points, and is never chosen."""
    lights = some_lights(kit, rng, 6)
    frame = uniforms_of(lights)
    surfaces = some_surfaces(rng, 4000)
    pixel = np.arange(4000, dtype=np.uint32)
    left_out = np.stack(
        [light_importance(lights_at(frame, i), *surfaces[:3]) <= 0 for i in range(len(lights))]
    )
    assert 0.2 < left_out.mean() < 0.95
    for i in range(len(lights)):
        for dimension in range(0, 12, 2):
            uv = sample_light(frame, NO_TABLES, pixel, dimension, np.full(4000, i, np.uint32))
            brought = light_from(frame, uv, *surfaces).radiance.max(-1)
            assert not (brought[left_out[i]] > 1e-6).any()
    for number, r in ((0, 0.0), (1, 0.5), (1, 1 - 2**-24)):
        given = np.full(4000, r, np.float32)
        choice = choose_light(frame, ShadowSlots(2), number, given, *surfaces[:3])
        none = left_out.all(0)
        assert (choice.weight[none] == 0).all() and (choice.weight[~none] > 0).all()
        assert not left_out[choice.light[~none], np.flatnonzero(~none)].any()


@pytest.mark.parametrize("uniform", [False, True])
@pytest.mark.parametrize("rays", [1, 2])
def test_weights_undo_probabilities(kit: Any, rng: Rng, rays: int, uniform: bool) -> None:
    """Over an even grid of random numbers every light that may arrive weighs one in all."""
    frame = uniforms_of(some_lights(kit, rng, 3))
    surfaces, steps = some_surfaces(rng, 100)[:3], 2000
    every = [np.repeat(part, steps, 0) for part in surfaces]
    r = np.tile((np.arange(steps, dtype=np.float32) + np.float32(0.5)) / np.float32(steps), 100)
    weights, before = np.zeros((3, 100)), np.zeros(len(r), np.uint32)
    for number in range(rays):
        choice = choose_light(frame, ShadowSlots(rays), number, r, *every, uniform=uniform)
        np.add.at(weights, (choice.light, np.repeat(np.arange(100), steps)), choice.weight / steps)
        # a surface's rays are spread over the lights, in their order
        assert (choice.light >= before)[choice.weight > 0].all()
        assert number == 0 or (choice.light > before).mean() > 0.01
        before = choice.light
    for i in range(3):
        may = light_importance(lights_at(frame, i), *surfaces) > 0
        # each end of a light's part may be a step off, and ALIKE / 3 is the least probability
        np.testing.assert_allclose(weights[i][may], 1.0, atol=2 * 24 / steps)
        assert not weights[i][~may].any()
    assert weights.any(1).all()


def test_lights_take_turns_where_rays_are_enough(kit: Any, rng: Rng) -> None:
    surfaces = some_surfaces(rng, 5)[:3]
    for lights, rays in ((1, 1), (1, 4), (2, 3), (3, 4), (4, 4)):
        frame = uniforms_of(some_lights(kit, rng, lights))
        weights = np.zeros(lights)
        for number in range(rays):
            choice = choose_light(
                frame, ShadowSlots(rays), number, np.zeros(5, np.float32), *surfaces
            )
            assert (choice.light == number % lights).all()
            weights[number % lights] += choice.weight[0]
        np.testing.assert_allclose(weights, 1.0, rtol=1e-6)


def test_the_mean_of_one_ray_is_the_sum_over_all_lights(kit: Any, rng: Rng) -> None:
    """Budget 1 of three lights against all three sampled each, and importance against uniform:
    equal means within 4 standard errors, and less variance."""
    lights = some_lights(kit, rng, 3)
    lights[1] = kit.lamp((9.0, 9.0, 9.0), 0.2, (-1, -1, -1), (5.0, 5.0, 5.0))  # the far corner
    surfaces = some_surfaces(rng, 64)
    one, far = _estimates(lights, surfaces, ShadowSlots(1), False)
    alike, _ = _estimates(lights, surfaces, ShadowSlots(1), True)
    two, _ = _estimates(lights, surfaces, ShadowSlots(2), False)
    every, _ = _estimates(lights, surfaces, ShadowSlots(3), False)
    for found in (one, alike, two):
        apart = np.abs(found.mean(0) - every.mean(0))
        error = np.hypot(*(v.std(0) / np.sqrt(len(v)) for v in (found, every)))
        assert (apart <= 4 * error + 1e-6).all()
    lit = every.mean(0) > 1e-3
    assert lit.sum() > 10 and far > 100
    variance = [found.var(0)[lit].sum() for found in (alike, one, two)]
    assert variance[1] < 0.8 * variance[0] and variance[2] < variance[1]


def _estimates(lights: Any, surfaces: Any, slots: ShadowSlots, uniform: bool) -> tuple[Any, int]:
    """[draws, surfaces] grey of the light without shadows, and how many rays to light 1 brought
    some."""
    draws, count = 2000, len(surfaces[0])
    frame = uniforms_of(lights)
    every = [np.tile(part, (draws, *[1] * (part.ndim - 1))) for part in surfaces]
    pixel = np.arange(draws * count, dtype=np.uint32)
    total, far = np.zeros(draws * count), 0
    for number in range(slots.rays):
        light = light_sample(frame, NO_TABLES, slots, pixel, 0, number, *every, uniform=uniform)
        total += light.radiance.mean(-1)
        there = sampled_light(frame, light.light_uv) == 1
        far += int((there & (light.radiance.max(-1) > 0)).sum())
    return total.reshape(draws, count), far


def test_the_light_that_a_ray_names_is_the_one_it_goes_to(kit: Any, rng: Rng) -> None:
    """All that there is room for, each by its number, and points within them."""
    lights = some_lights(kit, rng, MOST_LIGHTS)
    frame = uniforms_of(lights)
    assert light_count(frame) == MOST_LIGHTS and len(LIGHT_PARTS) == 5
    pixel = np.arange(300, dtype=np.uint32)
    for i, light in enumerate(lights):
        uv = sample_light(frame, NO_TABLES, pixel, 2, np.full(300, i, np.uint32))
        assert (sampled_light(frame, uv) == i).all()
        found = light_from(frame, uv, *some_surfaces(rng, 300))
        at = lights_at(frame, i)
        np.testing.assert_allclose(at.normal, light.normal, atol=1e-6)
        assert at.area == pytest.approx(light.area, rel=1e-6)
        assert found.to_light.shape == (300, 3)
    assert dot(lights_at(frame, 3).half_u, lights_at(frame, 3).normal) == pytest.approx(0, abs=1e-6)
