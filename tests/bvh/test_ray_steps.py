"""The step log: written by the GPU, written by the oracle, and compared."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import trimesh

from bvh import layout, oracle
from bvh.gpu.ray_log import LOG_EVENT, RayLogger, without_start
from bvh.gpu.trace_rays import RayTracer, Variant, fit_variant
from bvh.ray_steps import Step, compare_steps, oracle_steps
from bvh.rays import MISS_ID, Rays, make_rays
from bvh.scene_bvh import SceneBvh, assemble
from bvh.tlas import BvhInstance

FARTHEST = np.finfo(np.float32).max


@pytest.fixture(scope="module")
def scene(built: SimpleNamespace) -> SceneBvh:
    """Five turned spheres that overlap, a mask that keeps the last from rays of mask 1."""
    sphere = trimesh.creation.icosphere(subdivisions=3)
    turn = trimesh.transformations.random_rotation_matrix
    instances = []
    for i in range(5):
        matrix = trimesh.transformations.translation_matrix([1.5 * i, 0, 0])
        matrix = matrix @ turn(np.full(3, 0.2 * i))
        instances.append(BvhInstance(0, matrix, mask=2 if i == 4 else 0xFF))
    return assemble([built.blas(sphere.triangles)], ["sphere"], instances)


def some_rays(rng: np.random.Generator, count: int) -> Rays:
    origins = 6 * rng.normal(size=(count, 3))
    targets = [[3, 0, 0]] + rng.normal(size=(count, 3))
    return make_rays(origins, targets - origins, 0.0, FARTHEST)


def steps_of(logger: RayLogger, scene: SceneBvh, variant: Variant, rays: Rays, i: int) -> Any:
    log, hits = logger.log(rays, i)
    assert log.dropped == 0
    assert log.ray == rays[i]
    expected, result = oracle_steps(
        scene.words,
        rays[i : i + 1],
        any_hit=variant.any_hit,
        mask=variant.mask,
        sort=variant.sort,
    )
    return log, hits[i], without_start(expected, log.start_byte), result


@pytest.mark.parametrize("any_hit", [False, True])
@pytest.mark.parametrize("mask", [0xFF, 1])
def test_gpu_and_oracle_take_the_same_steps(
    device: Any, scene: SceneBvh, rng: np.random.Generator, any_hit: bool, mask: int
) -> None:
    variant = Variant("steps", any_hit=any_hit, sort=not any_hit, mask=mask)
    rays = some_rays(rng, 24)
    logger = RayLogger(device, scene.words, variant)
    kinds = set()
    for i in range(len(rays)):
        log, _, expected, _ = steps_of(logger, scene, variant, rays, i)
        assert [d for d in compare_steps(log.steps, expected, rays[i]) if d.serious] == []
        kinds |= {step.kind for step in log.steps}
    assert kinds >= {"box", "triangle", "instance", "end"}


def test_log_tells_the_hit_and_every_node(
    device: Any, scene: SceneBvh, rng: np.random.Generator
) -> None:
    rays = some_rays(rng, 12)
    traced = RayTracer(device, scene.words, Variant("plain"), counted=True)
    plain = traced.trace(rays)
    assert plain.nodes is not None
    logger = RayLogger(device, scene.words, Variant("steps"))
    for i in range(len(rays)):
        log, hit, _, _ = steps_of(logger, scene, Variant("steps"), rays, i)
        assert hit.tobytes() == plain.hits[i].tobytes()  # logging changes nothing
        boxes = [step for step in log.steps if step.kind == "box"]
        assert len(boxes) == plain.nodes[i]
        for step in log.steps:
            at = step.byte_offset // 4
            if step.words:
                assert step.words == tuple(scene.words[at : at + len(step.words)].tolist())
        end = log.steps[-1]
        assert end.kind == "end"
        assert np.isfinite(end.t) == (hit["object"] != MISS_ID)
        accepted = [s.t for s in log.steps if s.kind == "triangle" and s.hit[1]]
        assert (accepted[-1] if accepted else np.inf) == end.t


def test_stack_can_be_followed(device: Any, scene: SceneBvh, rng: np.random.Generator) -> None:
    """What a log says is pushed and popped makes the next step's node."""
    rays = some_rays(rng, 12)
    logger = RayLogger(device, scene.words, Variant("steps"))
    for i in range(len(rays)):
        log, _, _, _ = steps_of(logger, scene, Variant("steps"), rays, i)
        stack: list[int] = []
        node = layout.ROOT_POINTER
        for step in log.steps:
            if step.kind == "leave":
                assert node == 0xFFFFFFF7
            elif step.kind != "end" and not (step.kind == "triangle" and step.slot == 1):
                assert step.node == node
            if step.kind == "box" and step.follow:
                node = step.follow[0]
                stack += reversed(step.follow[1:])
                continue
            if step.kind == "instance" and step.hit[0]:
                stack.append(0xFFFFFFF7)
                node = layout.ROOT_POINTER
                continue
            if step.kind == "triangle" and step.slot < (step.node & 7):
                continue
            node = stack.pop() if stack else 0xFFFFFFFF


def test_kernel_that_starts_in_the_only_instance(
    device: Any, built: SimpleNamespace, rng: np.random.Generator
) -> None:
    scene = built.scene(trimesh.creation.icosphere(subdivisions=3).triangles)
    variant = fit_variant(Variant("steps"), scene)
    assert not variant.two_level
    rays = make_rays(3 * rng.normal(size=(8, 3)), rng.normal(size=(8, 3)), 0.0, FARTHEST)
    rays["direction"] = 0.5 * rng.normal(size=(8, 3)) - rays["origin"]
    logger = RayLogger(device, scene.words, variant)
    for i in range(len(rays)):
        log, _, expected, _ = steps_of(logger, scene, variant, rays, i)
        assert log.start_byte == 64 * variant.start_instance_unit
        assert compare_steps(log.steps, expected, rays[i]) == []


def test_small_buffer_counts_what_it_drops(
    device: Any, scene: SceneBvh, rng: np.random.Generator
) -> None:
    rays = some_rays(rng, 30)
    i = int(np.flatnonzero(oracle.trace(scene.words, rays).hit)[0])
    whole, hits = RayLogger(device, scene.words, Variant("steps")).log(rays, i)
    short, same = RayLogger(device, scene.words, Variant("steps"), capacity=5).log(rays, i)
    # The start is the fifth record. Texts: an instance's step has no t, and NaN is not NaN.
    assert list(map(repr, short.steps)) == list(map(repr, whole.steps[:4]))
    assert short.dropped == len(whole.steps) - 4 > 0
    assert same.tobytes() == hits.tobytes()


def test_no_ray_no_steps(device: Any, scene: SceneBvh, rng: np.random.Generator) -> None:
    log, _ = RayLogger(device, scene.words, Variant("steps")).log(some_rays(rng, 3), 3)
    assert log.steps == () and log.dropped == 0


def test_oracles_log_changes_no_result(scene: SceneBvh, rng: np.random.Generator) -> None:
    rays = some_rays(rng, 40)
    for i in range(len(rays)):
        _, logged = oracle_steps(scene.words, rays[i : i + 1])
        plain = oracle.trace(scene.words, rays[i : i + 1])
        for name in ("t", "object", "primitive", "instance"):
            assert getattr(logged, name)[0] == getattr(plain, name)[0]


def test_differences_are_found(device: Any, scene: SceneBvh, rng: np.random.Generator) -> None:
    rays = some_rays(rng, 30)
    i = int(np.flatnonzero(oracle.trace(scene.words, rays).hit)[0])
    logger = RayLogger(device, scene.words, Variant("steps"))
    log, _, expected, _ = steps_of(logger, scene, Variant("steps"), rays, i)
    steps = list(log.steps)
    box = next(k for k, s in enumerate(steps) if s.kind == "box" and any(s.hit))
    slot = steps[box].hit.index(True)

    def told(**changes: Any) -> list[str]:
        changed = [*steps[:box], replace(steps[box], **changes), *steps[box + 1 :]]
        return [d.message for d in compare_steps(changed, expected, rays[i]) if d.serious]

    words = list(steps[box].words)
    words[7] ^= 1
    assert "word 7" in told(words=tuple(words))[0]
    hit = list(steps[box].hit)
    hit[slot] = False
    assert "alone" in told(hit=tuple(hit))[0]
    entry = list(steps[box].entry)
    entry[slot] *= 1.01
    assert told(entry=tuple(entry))
    assert "limit" in told(t=0.5 * steps[box].t)[0]
    assert any("only in the oracle" in text for text in told(node=0x25))
    lost = compare_steps([*steps[:box], *steps[box + 1 :]], expected, rays[i])
    assert any(d.serious and d.left == -1 for d in lost)
    end = replace(steps[-1], t=steps[-1].t * 1.1)
    assert any(d.serious for d in compare_steps([*steps[:-1], end], expected, rays[i]))


def test_text_of_steps(scene: SceneBvh, rng: np.random.Generator) -> None:
    rays = some_rays(rng, 30)
    i = int(np.flatnonzero(oracle.trace(scene.words, rays).hit)[0])
    steps, result = oracle_steps(scene.words, rays[i : i + 1])
    text = "\n".join(line for step in steps for line in step.lines())
    assert text.startswith("0x00000015 FP32 box, byte 128, limit")
    assert "entered at" in text and "culled" in text and "instance, byte" in text
    assert text.endswith(f"end: hit at t = {result.t[0]:.9g}")
    assert Step("leave").lines() == ["leave the instance"]


def test_record_size() -> None:
    assert LOG_EVENT.size == 176
