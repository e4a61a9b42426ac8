"""The wave form: inactive lanes, overlapping registers, both widths, refused variants."""

from dataclasses import replace

import numpy as np
import pytest

from bvh.contract.descriptor import Descriptor, pack
from bvh.contract.intersect import Status
from bvh.contract.memory import GuestMemory
from bvh.contract.mimg import decode
from bvh.contract.pointer import GuestAddress
from bvh.contract.wave import INACTIVE, execute, intersect_wave
from engine.gpu.errors import UserError

BASE = GuestAddress(0x10000)
DESCRIPTOR = pack(Descriptor(BASE, 255))
HIT = [0xC1000000, 0xC0800000, 0xBF800000, 0xBF800000]
# Node, extent, origin, direction, inverse direction of a ray that hits.
RAY = [0, *np.array([6, 0, 0, 0, 0, 0, 1, np.inf, np.inf, 1], np.float32).view(np.uint32).tolist()]
UNTOUCHED = 0xABCDEF01


def memory() -> GuestMemory:
    words = np.zeros(16, np.uint32)
    fan = np.array([-1, -1, 2, 1, -1, 2, 0, 1, 2], np.float32)
    words[:9] = fan.view(np.uint32)
    words[15] = 4
    found = GuestMemory([(BASE, 64)])
    found.write(BASE, words)
    return found


def registers(lanes: int = 32, first: int = 8, ray: list[int] = RAY) -> np.ndarray:
    found = np.full((32, lanes), UNTOUCHED, np.uint32)
    found[first : first + len(ray)] = np.array(ray, np.uint32)[:, None]
    return found


@pytest.mark.parametrize("lanes", [32, 64])
def test_only_active_lanes_load_and_write(lanes: int) -> None:
    guest, vgprs = memory(), registers(lanes)
    active = 0b1011 | 1 << lanes - 1
    status = intersect_wave(active, vgprs, 0, range(8, 19), DESCRIPTOR, guest)
    on = [lane for lane in range(lanes) if active >> lane & 1]
    off = [lane for lane in range(lanes) if not active >> lane & 1]
    assert vgprs[:4, on].T.tolist() == [HIT] * len(on)
    assert (vgprs[:4, off] == UNTOUCHED).all()
    assert (status[on] == Status.OK).all() and (status[off] == INACTIVE).all()
    assert guest.loads == len(on)
    assert (vgprs[8:19] == registers(lanes)[8:19]).all() and (vgprs[4:8] == UNTOUCHED).all()


def test_an_inactive_lane_with_a_wild_pointer_does_nothing() -> None:
    guest, vgprs = memory(), registers()
    vgprs[8, 1:] = 0xFFFFFFF8
    status = intersect_wave(1, vgprs, 0, range(8, 19), DESCRIPTOR, guest)
    assert guest.loads == 1 and status[0] == Status.OK
    assert (vgprs[:4, 1:] == UNTOUCHED).all()
    before = vgprs.copy()
    assert (intersect_wave(0, vgprs, 0, range(8, 19), DESCRIPTOR, guest) == INACTIVE).all()
    assert (vgprs == before).all() and guest.loads == 1


@pytest.mark.parametrize("destination", range(5, 19))
def test_destinations_that_overlap_sources(destination: int) -> None:
    vgprs = registers()
    intersect_wave(0xFF, vgprs, destination, range(8, 19), DESCRIPTOR, memory())
    assert vgprs[destination : destination + 4, :8].T.tolist() == [HIT] * 8
    rest = [r for r in range(32) if not destination <= r < destination + 4]
    assert (vgprs[rest] == registers()[rest]).all()
    assert (vgprs[:, 8:] == registers()[:, 8:]).all()


def test_scattered_registers() -> None:
    order = [31, 4, 29, 6, 27, 8, 25, 10, 23, 12, 21]
    vgprs = np.full((32, 32), UNTOUCHED, np.uint32)
    vgprs[order] = np.array(RAY, np.uint32)[:, None]
    intersect_wave(1, vgprs, 0, order, DESCRIPTOR, memory())
    assert vgprs[:4, 0].tolist() == HIT


def test_the_64_bit_form_reads_the_high_word() -> None:
    wide = [RAY[0], 0, *RAY[1:]]
    vgprs = registers(ray=wide)
    vgprs[9, 1] = 1
    status = intersect_wave(0b11, vgprs, 0, range(8, 20), DESCRIPTOR, memory())
    assert vgprs[:4, 0].tolist() == HIT
    assert status[:2].tolist() == [Status.OK, Status.OUT_OF_RANGE]
    assert vgprs[:4, 1].tolist() == [0x7F800000, 0x3F800000, 0xFFFFFFFF, 0]


def test_a_decoded_instruction() -> None:
    instruction = decode([0xF1989F01, 0x00000008])  # v[0:3], v[8:18], s[0:3]
    vgprs = registers()
    execute(instruction, 1, vgprs, DESCRIPTOR, memory())
    assert vgprs[:4, 0].tolist() == HIT
    for change, text in (({"a16": 1}, "a16"), ({"dmask": 7}, "dmask"), ({"srsrc": 4}, "s19")):
        with pytest.raises(UserError, match=text):
            execute(replace(instruction, **change), 1, registers(), DESCRIPTOR, memory())


def test_what_cannot_be_is_refused_before_anything_is_written() -> None:
    for lanes, active, destination, addresses in (
        (32, 1 << 32, 0, range(8, 19)),
        (16, 1, 0, range(8, 19)),
        (32, 1, 29, range(8, 19)),
        (32, 1, 0, range(22, 33)),
        (32, 1, 0, range(8, 18)),
    ):
        vgprs = registers(lanes)
        with pytest.raises(UserError):
            intersect_wave(active, vgprs, destination, addresses, DESCRIPTOR, memory())
        assert (vgprs == registers(lanes)).all()
