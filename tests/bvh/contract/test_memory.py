"""Guest pages: crossing them, missing them, and retrying without doing anything twice."""

import numpy as np
import pytest

from bvh.contract.cases import make_cases
from bvh.contract.descriptor import Descriptor, pack
from bvh.contract.intersect import Status, intersect
from bvh.contract.memory import PAGE_BYTES, PAGE_WORDS, Access, GuestMemory
from bvh.contract.pointer import GuestAddress
from bvh.contract.residency import intersect_resident
from engine.gpu.errors import UserError

BASE = GuestAddress(5 * PAGE_BYTES)
# The FP32 node's first block is the last of page 5, its second the first of page 6.
POINTER = (PAGE_BYTES // 64 - 1) << 3 | 5
DESCRIPTOR = pack(Descriptor(BASE, 2 * PAGE_BYTES // 64 - 1))
HIT = [0x90, 0x98, 0x88, 0xFFFFFFFF]
REJECT = [0xFFFFFFFF] * 4


def box_node() -> np.ndarray:
    words = np.zeros(32, np.uint32)
    words[:4] = [0x88, 0x90, 0x98, 0xA0]
    boxes = [[-1, -1, z, 1, 1, z + 1] for z in (5, 1, 3, 7)]
    words[4:28] = np.array(boxes, np.float32).reshape(-1).view(np.uint32)
    return words


def pages() -> tuple[np.ndarray, np.ndarray]:
    first, second = np.zeros(PAGE_WORDS, np.uint32), np.zeros(PAGE_WORDS, np.uint32)
    first[-16:], second[:16] = box_node()[:16], box_node()[16:]
    return first, second


def case() -> object:
    none = np.zeros((1, 0), np.uint32)
    inverse = np.array([[np.inf, np.inf, 1]], np.float32)
    direction = np.array([[0, 0, 1]], np.float32)
    origin = np.zeros((1, 3), np.float32)
    return make_cases(DESCRIPTOR, [POINTER], none, np.float32(6), origin, direction, inverse)


def outcome(memory: GuestMemory) -> tuple[list[int], Status]:
    result = intersect(memory, case(), "chapter")  # type: ignore[arg-type]
    return result.words[0].tolist(), Status(int(result.status[0]))


def test_a_node_across_pages_that_are_not_neighbours_on_the_host() -> None:
    memory = GuestMemory([(BASE, 2 * PAGE_BYTES)])
    first, second = pages()
    memory.map_page(6, second)
    memory.map_page(900, np.full(PAGE_WORDS, 7, np.uint32))  # between them in arrival order
    memory.map_page(5, first)
    assert outcome(memory) == (HIT, Status.OK)


@pytest.mark.parametrize("missing", [5, 6])
def test_unavailable_and_invalid_are_told_apart(missing: int) -> None:
    memory = GuestMemory([(BASE, 2 * PAGE_BYTES)])
    for number, words in zip((5, 6), pages(), strict=True):
        if number != missing:
            memory.map_page(number, words)
    assert outcome(memory) == (REJECT, Status.UNAVAILABLE)
    shorter = GuestMemory([(GuestAddress(PAGE_BYTES * (5 if missing == 6 else 6)), PAGE_BYTES)])
    for number, words in zip((5, 6), pages(), strict=True):
        shorter.map_page(number, words)
    assert outcome(shorter) == (REJECT, Status.INVALID_ADDRESS)


def test_a_page_that_arrives_is_read() -> None:
    memory = GuestMemory([(BASE, 2 * PAGE_BYTES)])
    first, second = pages()
    memory.map_page(5, first)
    assert outcome(memory)[1] == Status.UNAVAILABLE
    memory.map_page(6, second)
    assert outcome(memory) == (HIT, Status.OK)


def test_loads_of_blocks() -> None:
    memory = GuestMemory([(GuestAddress(0), 64), (GuestAddress(PAGE_BYTES), 128)])
    memory.write(GuestAddress(0), np.arange(16, dtype=np.uint32))
    # The block in front of this one lies on the same page and has not arrived.
    memory.write(GuestAddress(PAGE_BYTES + 64), np.arange(16, 32, dtype=np.uint32))
    at = np.array([0, 64, PAGE_BYTES, PAGE_BYTES + 64, PAGE_BYTES + 128, 1 << 50], np.uint64)
    words, access = memory.load_blocks(at)
    assert access.tolist() == [
        Access.PRESENT, Access.INVALID, Access.UNAVAILABLE, Access.PRESENT, Access.INVALID,
        Access.INVALID,
    ]  # fmt: skip
    assert words[0].tolist() == list(range(16)) and words[3].tolist() == list(range(16, 32))
    assert memory.loads == 6
    assert memory.missing_pages(at[:4]) == [0, 1]


def test_a_bounded_retry_asks_for_what_is_missing_and_repeats_only_that() -> None:
    memory = GuestMemory([(BASE, 2 * PAGE_BYTES)])
    store = dict(zip((5, 6), pages(), strict=True))
    asked: list[list[int]] = []

    def pager(target: GuestMemory, numbers: list[int]) -> None:
        asked.append(numbers)
        target.map_page(numbers[0], store[numbers[0]])  # one a time

    result = intersect_resident(memory, case(), "chapter", pager)  # type: ignore[arg-type]
    assert result.words[0].tolist() == HIT and result.status[0] == Status.OK
    assert asked == [[5, 6], [6]]


def test_a_page_that_never_comes_is_no_miss() -> None:
    memory = GuestMemory([(BASE, 2 * PAGE_BYTES)])
    asked = []
    result = intersect_resident(
        memory,
        case(),  # type: ignore[arg-type]
        "chapter",
        lambda _, numbers: asked.append(numbers),
        attempts=3,
    )
    assert result.status[0] == Status.UNAVAILABLE and len(asked) == 2


def test_bad_ranges_are_refused() -> None:
    memory = GuestMemory([(GuestAddress(0), 128)])
    for start, size, text in ((1, 64, "whole"), (0, 64, "overlaps"), ((1 << 48) - 64, 128, "48")):
        with pytest.raises(UserError, match=text):
            memory.declare(GuestAddress(start), size)
    with pytest.raises(UserError, match="word"):
        memory.write(GuestAddress(2), np.zeros(1, np.uint32))
    with pytest.raises(UserError, match="16384"):
        memory.map_page(0, np.zeros(4, np.uint32))
