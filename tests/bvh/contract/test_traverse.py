"""The contract traversal: the oracle's hits, its caps and errors, its log, and retried pages."""

from typing import Any

import numpy as np
import pytest

from bvh import oracle
from bvh.build import BuildOptions, build_blas
from bvh.contract.cases import RULES
from bvh.contract.descriptor import Descriptor
from bvh.contract.memory import PAGE_BYTES, PAGE_WORDS, GuestMemory
from bvh.contract.pointer import GuestAddress, NodePointer
from bvh.contract.trace import Ended, Options, Trace
from bvh.contract.trace_log import Step
from bvh.contract.traverse import traverse
from bvh.layout import INVALID_POINTER, ROOT_POINTER
from bvh.scene_bvh import SceneBvh, assemble
from bvh.tlas import BvhInstance

BASE = GuestAddress(0x40_8000)  # in the middle of a page
ROOT = NodePointer(ROOT_POINTER)


@pytest.fixture(scope="module")
def scene() -> SceneBvh:
    """Two placements of a soup of 800 triangles; pairs, FP16 and FP32 nodes."""
    rng = np.random.default_rng(11)
    soup = rng.uniform(-1, 1, (400, 1, 3)) + rng.normal(size=(400, 4, 3)) * 0.1
    triangles = soup[:, [[0, 1, 2], [2, 1, 3]]].reshape(-1, 3, 3).astype(np.float32)
    blas = build_blas(
        triangles,
        np.zeros(800, np.uint32),
        np.arange(800, dtype=np.uint32),
        np.array([True]),
        BuildOptions(),
    )
    moved = np.diag([0.5, 0.75, -0.5, 1.0])
    moved[:3, 3] = [3, 0.25, 0]
    instances = [BvhInstance(0, np.eye(4)), BvhInstance(0, moved, mask=0x2)]
    return assemble([blas], ["soup"], instances, BuildOptions())


def rays_at(scene: SceneBvh, n: int, seed: int = 5) -> np.ndarray:
    rng = np.random.default_rng(seed)
    rays = np.zeros(n, oracle.RAY)
    rays["origin"] = rng.normal(size=(n, 3)) * 4
    target = rng.uniform(-1, 1, (n, 3)) + np.array([3.0, 0, 0]) * rng.integers(0, 2, (n, 1))
    rays["direction"] = target - rays["origin"]
    rays["t_max"] = 1e30
    return rays


def descriptor_of(words: np.ndarray, base: GuestAddress = BASE, growth: int = 6) -> Descriptor:
    return Descriptor(base, len(words) // 16 - 1, growth)


def run(words: np.ndarray, rays: np.ndarray, **options: Any) -> Trace:
    return traverse(
        GuestMemory.from_words(words, BASE),
        descriptor_of(words),
        ROOT,
        *(rays[field] for field in ("origin", "direction", "t_min", "t_max")),
        Options(**options),
    )


@pytest.mark.parametrize("rules", RULES)
def test_the_oracle_s_hits(scene: SceneBvh, rules: Any) -> None:
    rays = rays_at(scene, 400)
    expected, found = oracle.trace(scene.words, rays), run(scene.words, rays, rules=rules)
    assert found.error_count == 0 and set(found.ended) == {Ended.STACK_EMPTY}
    hit = np.isfinite(expected.t)
    assert 0.3 < hit.mean() < 0.9
    assert (found.primitive == expected.primitive).all()
    assert (found.instance == expected.instance).all()
    assert (np.isfinite(found.t) == hit).all()
    for name in ("t", "u", "v"):
        error = np.abs(getattr(found, name)[hit] - getattr(expected, name)[hit])
        assert error.max() < 2e-4, name


@pytest.mark.parametrize("rules", RULES)
def test_t_min_t_max_masks_and_any_hit(scene: SceneBvh, rules: Any) -> None:
    rays = rays_at(scene, 200, seed=8)
    rays["t_min"], rays["t_max"] = 0.9, 1.2
    options: dict[str, Any] = {"mask": 0x2}
    expected = oracle.trace(scene.words, rays, mask=0x2)
    # The first instance has all mask bits, the second one only 0x2.
    assert (run(scene.words, rays, rules=rules, **options).primitive == expected.primitive).all()
    only_first = run(scene.words, rays, rules=rules, mask=0x1)
    assert set(only_first.instance.tolist()) <= {0, INVALID_POINTER}
    some = run(scene.words, rays, rules=rules, any_hit=True, **options)
    assert (np.isfinite(some.t) == np.isfinite(expected.t)).all()
    ended = np.where(np.isfinite(expected.t), Ended.FIRST_HIT, Ended.STACK_EMPTY)
    assert some.ended.tolist() == ended.tolist()
    assert (some.triangle_hits <= 1).all()


def test_counters_add_up(scene: SceneBvh) -> None:
    found = run(scene.words, rays_at(scene, 100))
    # Each step is one instruction: on a box, on a triangle, or on an instance node that lets in.
    total = found.box_nodes + found.triangle_tests + found.instance_hits
    assert (found.steps == total).all()
    assert (found.triangle_hits <= found.triangle_tests).all() and found.stack_max.max() > 2


def test_pages_that_arrive_late_change_nothing(scene: SceneBvh) -> None:
    words, rays = scene.words, rays_at(scene, 40)
    expected = run(words, rays)
    first, inside = divmod(BASE // 4, PAGE_WORDS)
    padded = np.zeros(-(-(inside + len(words)) // PAGE_WORDS) * PAGE_WORDS, np.uint32)
    padded[inside : inside + len(words)] = words
    assert len(padded) > PAGE_WORDS
    asked: list[int] = []

    def pager(memory: GuestMemory, numbers: list[int]) -> None:
        for number in numbers[:1]:
            asked.append(number)
            at = (number - first) * PAGE_WORDS
            memory.map_page(number, padded[at : at + PAGE_WORDS])

    memory = GuestMemory([(GuestAddress(first * PAGE_BYTES), 4 * len(padded))])
    steps: list[Step] = []
    found = traverse(
        memory,
        descriptor_of(words),
        ROOT,
        *(rays[field] for field in ("origin", "direction", "t_min", "t_max")),
        Options(pager=pager, log=steps.append),
    )
    assert sorted(asked) == list(range(first, first + len(padded) // PAGE_WORDS))
    for name in Trace.__slots__:
        assert (getattr(found, name) == getattr(expected, name)).all(), name
    assert len(steps) == int(expected.steps.sum())


def test_a_page_that_never_comes_ends_the_ray_with_an_error(scene: SceneBvh) -> None:
    memory = GuestMemory([(BASE, 1 << 20)])
    out = traverse(
        memory,
        descriptor_of(scene.words),
        ROOT,
        *(np.ones((3, 3), np.float32) for _ in range(2)),
        np.zeros(3, np.float32),
        np.ones(3, np.float32),
        Options(pager=lambda memory, numbers: None),
    )
    assert out.ended.tolist() == [Ended.UNAVAILABLE] * 3 and out.error_count == 3


def one_ray() -> np.ndarray:
    rays = np.zeros(1, oracle.RAY)
    rays["origin"], rays["direction"], rays["t_max"] = (0, 0, -5), (0, 0, 1), 1e30
    return rays


def lone_node(children: list[int], units: int = 8) -> np.ndarray:
    """An FP32 root at byte 128 whose four boxes all surround the ray."""
    words = np.zeros(16 * units, np.uint32)
    words[32:36] = children
    box = np.array([[-9, -9, -9, 9, 9, 9]] * 4, np.float32)
    words[36:60] = box.reshape(-1).view(np.uint32)
    return words


EMPTY = [INVALID_POINTER] * 3


@pytest.mark.parametrize(
    ("children", "ended"),
    [
        ([ROOT_POINTER, *EMPTY], Ended.STEP_LIMIT),  # points to itself
        ([ROOT_POINTER] * 4, Ended.STACK_OVERFLOW),
        ([0x1005, *EMPTY], Ended.OUT_OF_RANGE),
        ([0x27, *EMPTY], Ended.UNKNOWN_NODE),  # procedural
        (EMPTY + [INVALID_POINTER], Ended.STACK_EMPTY),
    ],
)
def test_corrupt_nodes_end_by_name(children: list[int], ended: Ended) -> None:
    out = run(lone_node(children), one_ray(), step_limit=500)
    assert out.ended[0] == ended
    assert out.error_count == (ended != Ended.STACK_EMPTY)
    assert out.steps[0] <= 500


def test_beyond_the_memory_without_a_descriptor_check() -> None:
    # gpurt looks at no size field: what is not there is still no miss.
    assert run(lone_node([0x1005, *EMPTY]), one_ray(), rules="gpurt").ended[0] == (
        Ended.INVALID_ADDRESS
    )


def test_bad_rays(scene: SceneBvh) -> None:
    rays = one_ray()
    rays["origin"][0, 0] = np.nan
    out = run(scene.words, rays)
    assert out.ended[0] == Ended.BAD_RAY and not np.isfinite(out.t[0])


def test_an_instance_whose_blas_lies_nowhere(scene: SceneBvh) -> None:
    words = scene.words.copy()
    instance = next(
        unit for unit in range(4, len(words) // 16) if words[16 * unit + 17] * 16 < len(words)
        and words[16 * unit] & 7 == 5 and words[16 * unit + 17] > 0
    )  # fmt: skip
    words[16 * instance + 17] = 1 << 24
    out = run(words, rays_at(scene, 50))
    assert Ended.OUT_OF_RANGE in out.ended and out.error_count > 0


def test_the_log_tells_each_step(scene: SceneBvh) -> None:
    many = rays_at(scene, 100)
    rays = many[run(scene.words, many).stack_max.argmax()][None]
    steps: list[Step] = []
    out = run(scene.words, rays, log=steps.append)
    assert len(steps) == out.steps[0]
    assert max(len(step.pushed) for step in steps) > 1  # so that their order shows
    first = steps[0]
    assert first.node_pointer == ROOT_POINTER and first.address == BASE + 128
    assert first.raw == tuple(scene.words[32:64].tolist())
    assert steps[-1].note.endswith("ended: stack empty") and steps[-1].next == INVALID_POINTER
    # The log replays: what is pushed and next is what is visited, in stack order.
    stack: list[int] = []
    for step, following in zip(steps, steps[1:], strict=False):
        stack += step.pushed
        hit = [word for word in step.result if word != INVALID_POINTER]
        if step.entry:
            assert list(step.pushed) == hit[:0:-1]
            expected = hit[0] if hit else stack.pop()
        elif step.note.startswith("entered") or step.node_pointer & 7 == 1:
            expected = following.node_pointer
        else:
            expected = stack.pop()
        assert following.node_pointer == expected == step.next
        assert step.stack_height == len(stack)
    text = [line for step in steps for line in step.lines()]
    assert sum(line.startswith("    slot") for line in text) == 4 * int(out.box_nodes[0])
    assert any("entered instance" in line for line in text)
