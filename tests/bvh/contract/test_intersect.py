"""The whole instruction: refusals, reject words, memory, both pointer widths, cases and memory."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bvh.contract.cases import RULES, Cases, make_cases
from bvh.contract.descriptor import Descriptor, pack
from bvh.contract.intersect import (
    Status,
    image_bvh64_intersect_ray,
    image_bvh_intersect_ray,
    intersect,
    intersect_cases,
)
from bvh.contract.memory import GuestMemory
from bvh.contract.pointer import GuestAddress
from engine.gpu.errors import UserError

BASE = GuestAddress(0x10000)
DESCRIPTOR = Descriptor(BASE, 256)
CHILDREN = [0x88, 0x90, 0x98, 0xA0]
SORTED = [0x90, 0x98, 0x88, 0xFFFFFFFF]
REJECT = [0xFFFFFFFF] * 4
TRIANGLE_REJECT = [0x7F800000, 0x3F800000, 0xFFFFFFFF, 0]
TRIANGLE_HIT = [0xC1000000, 0xC0800000, 0xBF800000, 0xBF800000]
RAY = (
    np.float32(6),
    np.zeros(3, np.float32),
    np.array([0, 0, 1], np.float32),
    np.array([np.inf, np.inf, 1], np.float32),
)


def box_node() -> np.ndarray:
    words = np.zeros(32, np.uint32)
    words[:4] = CHILDREN
    boxes = [[-1, -1, z, 1, 1, z + 1] for z in (5, 1, 3, 7)]
    words[4:28] = np.array(boxes, np.float32).reshape(-1).view(np.uint32)
    return words


def triangle_block() -> np.ndarray:
    words = np.zeros(16, np.uint32)
    fan = np.array([-1, -1, 2, 1, -1, 2, 0, 1, 2, 2, 1, 2, 0, 3, 2], np.float32)
    words[:15] = fan.view(np.uint32)
    words[15] = 0x04040404
    return words


def case(pointer: int, descriptor: Any = None, ray: Any = RAY, words: Any = None) -> Cases:
    node = words if words is not None else box_node() if pointer & 7 > 3 else triangle_block()
    found = pack(descriptor or DESCRIPTOR) if not isinstance(descriptor, tuple) else descriptor
    return make_cases(np.array(found, np.uint32), [pointer], node[None], *ray)


def outcome(cases: Cases, rules: Any) -> tuple[list[int], Status]:
    result = intersect_cases(cases, rules)
    return result.words[0].tolist(), Status(int(result.status[0]))


@pytest.mark.parametrize("rules", RULES)
def test_one_box_and_one_triangle(rules: Any) -> None:
    assert outcome(case(0x15), rules) == (SORTED, Status.OK)
    assert outcome(case(0x0), rules) == (TRIANGLE_HIT, Status.OK)


@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize("kind", [6, 7])
def test_user_nodes(rules: Any, kind: int) -> None:
    assert outcome(case(kind, words=np.zeros(0, np.uint32)), rules) == (REJECT, Status.USER_NODE)


# Last allowed and first refused unit of each node type, the size field being 256.
@pytest.mark.parametrize(
    ("pointer", "status"),
    [
        (256 << 3 | 0, Status.OK),
        (257 << 3 | 0, Status.OUT_OF_RANGE),
        (255 << 3 | 5, Status.OK),
        (256 << 3 | 5, Status.OUT_OF_RANGE),
        (1 << 32 | 5, Status.OUT_OF_RANGE),
        (0xFFFFFFFFFFFFFFFD, Status.OUT_OF_RANGE),
    ],
)
def test_the_size_field(pointer: int, status: Status) -> None:
    words, found = outcome(case(pointer), "chapter")
    assert found == status
    if status == Status.OK:
        assert words == (SORTED if pointer & 7 == 5 else TRIANGLE_HIT)
    else:
        assert words == (REJECT if pointer & 7 > 3 else TRIANGLE_REJECT)
    assert outcome(case(pointer), "gpurt")[1] == Status.OK


def test_the_last_block_lies_below_48_bits() -> None:
    high = replace(DESCRIPTOR, base=GuestAddress((1 << 48) - 256), last_unit=(1 << 42) - 1)
    assert outcome(case(2 << 3 | 5, high), "chapter")[1] == Status.OK
    assert outcome(case(3 << 3 | 5, high), "chapter")[1] == Status.OUT_OF_RANGE
    assert outcome(case(3 << 3 | 0, high), "chapter")[1] == Status.OK


def test_a_descriptor_of_another_type() -> None:
    wrong = (0x100, 0x80000000, 0x100, 0x01000000)
    assert outcome(case(0x15, wrong), "chapter") == (REJECT, Status.BAD_DESCRIPTOR)
    assert outcome(case(0x0, wrong), "chapter") == (TRIANGLE_REJECT, Status.BAD_DESCRIPTOR)
    assert outcome(case(0x15, wrong), "gpurt") == (SORTED, Status.OK)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("field", range(4))
def test_rays_that_are_refused(field: int, value: float) -> None:
    ray = [np.array(part, np.float32) for part in RAY]
    ray[field].reshape(-1)[0] = value
    refused = bool(np.isnan(value)) or field == 1
    for pointer, reject in ((0x15, REJECT), (0x1, TRIANGLE_REJECT)):
        words, status = outcome(case(pointer, ray=ray), "chapter")
        assert (status == Status.BAD_RAY) == refused
        assert (words == reject) or not refused
        assert outcome(case(pointer, ray=ray), "gpurt")[1] == Status.OK


def test_both_return_modes_give_the_same_reject_words() -> None:
    for mode in (0, 1):
        descriptor = replace(DESCRIPTOR, return_mode=mode)
        assert outcome(case(0x1000, descriptor), "chapter")[0] == TRIANGLE_REJECT


@pytest.mark.parametrize("rules", RULES)
def test_missing_blocks_are_no_zeros(rules: Any) -> None:
    half = case(0x15, words=box_node()[:16])
    assert outcome(half, rules) == (REJECT, Status.UNAVAILABLE)
    assert outcome(case(0x0, words=np.zeros(0, np.uint32)), rules) == (
        TRIANGLE_REJECT,
        Status.UNAVAILABLE,
    )


@pytest.mark.parametrize("rules", RULES)
def test_through_memory(rules: Any) -> None:
    memory = GuestMemory([(BASE, 257 * 64)])
    memory.write(GuestAddress(BASE + 128), box_node())
    memory.write(BASE, triangle_block())
    words = image_bvh_intersect_ray(
        memory,
        pack(DESCRIPTOR),
        [0x15, 0x0, 0x6],
        np.full(3, 6, np.float32),
        *(np.tile(part, (3, 1)) for part in RAY[1:]),
        rules=rules,
    )
    assert words.tolist() == [SORTED, TRIANGLE_HIT, REJECT]
    assert words.dtype == np.uint32


def test_a_high_64_bit_index_is_not_truncated() -> None:
    far = (1 << 32 | 0x15) >> 3 << 6
    descriptor = Descriptor(BASE, (1 << 42) - 1)
    memory = GuestMemory([(BASE, 1024), (GuestAddress(BASE + far), 128)])
    memory.write(GuestAddress(BASE + far), box_node())
    ray = (RAY[0][None], *(part[None] for part in RAY[1:]))
    pointer = 1 << 32 | 0x15
    assert image_bvh64_intersect_ray(memory, pack(descriptor), [pointer], *ray).tolist() == [SORTED]
    # The truncated pointer names another node: zeros there.
    assert image_bvh64_intersect_ray(memory, pack(descriptor), [0x15], *ray).tolist() != [SORTED]
    with pytest.raises(UserError, match="64-bit form"):
        image_bvh_intersect_ray(memory, pack(descriptor), [pointer], *ray)


def test_nothing_is_loaded_for_a_refused_instruction() -> None:
    memory = GuestMemory([(BASE, 64 * 1024)])
    wrong = (0x100, 0x80000000, 0x100, 0x01000000)
    for pointer, descriptor in ((0x15, wrong), (0x6, None), (0x2000, None)):
        intersect(memory, case(pointer, descriptor), "chapter")
    assert memory.loads == 0


@pytest.mark.parametrize("rules", RULES)
def test_a_batch_gives_what_single_instructions_give(rules: Any, rng: np.random.Generator) -> None:
    n = 400
    kind = rng.integers(0, 8, n)
    pointer = rng.integers(0, 300, n) << 3 | kind
    words = rng.normal(size=(n, 32)).astype(np.float32).view(np.uint32)
    words[rng.random(n) < 0.2] = rng.integers(0, 1 << 32, 32, dtype=np.uint32)
    descriptor = np.tile(np.array(pack(DESCRIPTOR), np.uint32), (n, 1))
    descriptor[:, 1] = rng.integers(0, 1 << 32, n) & 0xFFFFFF00
    direction = rng.normal(size=(n, 3)).astype(np.float32)
    with np.errstate(divide="ignore"):
        cases = make_cases(
            descriptor,
            pointer,
            words,
            rng.uniform(0, 4, n).astype(np.float32),
            rng.normal(size=(n, 3)).astype(np.float32),
            direction,
            1 / direction,
        )
    batch = intersect_cases(cases, rules)
    for i in range(0, n, 7):
        one = intersect_cases(cases.take(np.array([i])), rules)
        assert one.words[0].tolist() == batch.words[i].tolist()
        assert one.status[0] == batch.status[i]


def test_an_unknown_rule_set_is_refused() -> None:
    with pytest.raises(UserError, match="rdna4"):
        intersect_cases(case(0x15), "rdna4")  # type: ignore[arg-type]
