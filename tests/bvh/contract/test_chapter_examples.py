"""Worked examples of "Implementing ray tracing in KytyPS5", with its numbers: 4, 9.3 and 10."""

from typing import Any

import numpy as np
import pytest

from bvh.contract.box import box_distances
from bvh.contract.cases import RULES, make_cases
from bvh.contract.descriptor import Descriptor, pack
from bvh.contract.intersect import Status, intersect, intersect_cases
from bvh.contract.memory import GuestMemory
from bvh.contract.mimg import decode, opcode_of
from bvh.contract.pointer import ByteOffset, GuestAddress, NodePointer, address_of, unpack

DESCRIPTOR = np.array(pack(Descriptor(GuestAddress(0), 1)), np.uint32)
MISS = 0x7F800000


def shoot(words: np.ndarray, pointer: int, extent: float, o: Any, d: Any, rules: Any) -> list[int]:
    origin, direction = np.array([o], np.float32), np.array([d], np.float32)
    with np.errstate(divide="ignore"):
        inverse = np.float32(1) / direction
    cases = make_cases(
        DESCRIPTOR, [pointer], words[None], np.float32(extent), origin, direction, inverse
    )
    return intersect_cases(cases, rules).words[0].tolist()


def triangle(z: float = 0.0) -> np.ndarray:
    words = np.zeros(16, np.uint32)
    words[:9] = np.array([0, 0, z, 1, 0, z, 0, 1, z], np.float32).view(np.uint32)
    words[15] = 9
    return words


def box(low: Any, high: Any) -> np.ndarray:
    words = np.zeros(32, np.uint32)
    words[:4] = [0x40, 0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF]
    words[4:10] = np.array([*low, *high], np.float32).view(np.uint32)
    words[10:28] = 0x7FC00000
    return words


def hit_values(words: list[int]) -> tuple[float, float, float]:
    t_num, t_denom, i_num, j_num = np.array(words, np.uint32).view(np.float32)
    return float(t_num / t_denom), float(i_num / t_denom), float(j_num / t_denom)


def test_section_4_opcode_arithmetic() -> None:
    word0 = 0xF1989F01
    assert word0 >> 18 & 0x7F == 0x66 == 102 == 0b01100110
    assert (word0 & 1) << 7 == 0x80 == 128
    assert opcode_of(word0) == 0xE6 == 230 == 0b11100110
    assert word0.to_bytes(4, "little") == bytes([0x01, 0x9F, 0x98, 0xF1])
    found = decode([word0, 0x00081014])
    assert found.word_count == 2 + found.nsa == 2
    assert 4 * found.word_count == 8  # the byte PC of what follows


def test_section_9_3_a_toy_pointer_is_no_node_pointer() -> None:
    packed = 0x49
    assert packed == 73 == 0b01001001
    tag, index = packed & 3, packed >> 2
    offset, base = index * 64, 0x100000000
    assert (tag, index, offset) == (1, 18, 0x480) and offset == 1152
    assert base + offset == 0x100000480
    # The same bits by the real rule name another node of another type.
    real = unpack(NodePointer(packed))
    assert (real.kind, real.index, real.byte_offset) == (1, 9, 576)
    assert address_of(GuestAddress(base), NodePointer(packed)) == 0x100000240
    # The node at the toy's address has this pointer instead.
    assert unpack(NodePointer(0x480 >> 3 | 1)).byte_offset == ByteOffset(offset)


def test_section_9_3_what_is_required_before_a_read() -> None:
    # offset <= size and 64 <= size - offset: the last block that fits, and the one behind it.
    base, size = GuestAddress(0x100000000), 0x4C0
    memory = GuestMemory([(base, size)])
    memory.write(base, np.zeros(size // 4, np.uint32))
    descriptor = pack(Descriptor(base, (1 << 42) - 1))
    ray = (np.float32(1), *(np.ones((1, 3), np.float32) for _ in range(3)))
    none = np.zeros((1, 0), np.uint32)
    for offset, status in ((0x480, Status.OK), (0x4C0, Status.INVALID_ADDRESS)):
        case = make_cases(descriptor, [offset >> 3 | 1], none, *ray)
        assert intersect(memory, case, "chapter").status[0] == status


@pytest.mark.parametrize("rules", RULES)
def test_section_10_1_ray_and_box(rules: Any) -> None:
    words = box((-1, -1, 2), (1, 1, 4))
    entry, exit_ = box_distances(
        words[None],
        np.zeros(1, np.bool_),
        np.zeros((1, 3), np.float32),
        np.array([[np.inf, np.inf, 0.5]], np.float32),
    )
    assert (entry[0, 0], exit_[0, 0]) == (1, 2)  # not [2, 4]: D has length 2
    assert shoot(words, 5, 10, (0, 0, 0), (0, 0, 2), rules)[0] == 0x40
    assert shoot(words, 5, 10, (2, 0, 0), (0, 0, 2), rules)[0] == 0xFFFFFFFF
    # An interval that ends in front of the box, and an origin inside it.
    assert shoot(words, 5, 0.5, (0, 0, 0), (0, 0, 2), rules)[0] == 0xFFFFFFFF
    assert shoot(words, 5, 0.5, (0, 0, 3), (0, 0, 2), rules)[0] == 0x40
    # Normalising D without its t would accept an interval [0, 1.5] that is too short.
    assert shoot(words, 5, 1.5, (0, 0, 0), (0, 0, 1), rules)[0] == 0xFFFFFFFF
    assert shoot(words, 5, 1.5, (0, 0, 0), (0, 0, 2), rules)[0] == 0x40


@pytest.mark.parametrize("rules", RULES)
def test_section_10_2_ray_and_triangle(rules: Any) -> None:
    words = shoot(triangle(), 0, 6, (0.25, 0.25, 1), (0, 0, -1), rules)
    assert words == [0x3F800000, 0x3F800000, 0x3E800000, 0x3E800000]
    t, u, v = hit_values(words)
    assert (t, u, v, 1 - u - v) == (1, 0.25, 0.25, 0.5)
    assert shoot(triangle(), 0, 6, (0.75, 0.75, 1), (0, 0, -1), rules)[0] == MISS


@pytest.mark.parametrize("rules", RULES)
def test_section_10_3_t_survives_a_transform(rules: Any) -> None:
    # z doubled: the ray becomes O.z = 2, D.z = -2, and t stays 1. Renormalised it would be 2.
    scaled = shoot(triangle(), 0, 6, (0.25, 0.25, 2), (0, 0, -2), rules)
    assert hit_values(scaled) == (1, 0.25, 0.25)
    renormalised = shoot(triangle(), 0, 6, (0.25, 0.25, 2), (0, 0, -1), rules)
    assert hit_values(renormalised)[0] == 2


def test_section_10_4_a_refusal_is_not_a_geometric_miss() -> None:
    miss = shoot(triangle(), 0, 6, (0.75, 0.75, 1), (0, 0, -1), "chapter")
    beyond = shoot(triangle(), 0x1000, 6, (0.25, 0.25, 1), (0, 0, -1), "chapter")
    assert miss[:2] == beyond[:2] == [MISS, 0x3F800000]
    assert beyond[2:] == [0xFFFFFFFF, 0] and miss[2:] == [0x3F400000, 0x3F400000]
