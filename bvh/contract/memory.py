"""Guest memory: 64 KiB pages of a 48-bit address space, each anywhere on the host.

An address is *valid* if it lies in a declared range, and *present* if its page has arrived (or, in
a dump that holds parts of pages, its 64-byte block). What
is valid but not present is unavailable (a retry may help); what is not valid is invalid (a retry
cannot). Neither ever reads as zeros. Nodes are read in 64-byte blocks, which never cross a page;
an FP32 node is two blocks, and its second one may lie on another page.
"""

from collections.abc import Callable, Iterable
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from bvh.contract.pointer import ADDRESS_LIMIT, GuestAddress
from bvh.layout import UNIT_BYTES, UNIT_WORDS
from engine.gpu.errors import UserError

U32 = NDArray[np.uint32]
U64 = NDArray[np.uint64]
Index = NDArray[np.int64]

PAGE_BYTES = 64 * 1024
PAGE_WORDS = PAGE_BYTES // 4
_PAGE_BLOCKS = PAGE_BYTES // UNIT_BYTES
_PAGE_SHIFT = np.uint64(16)

# Brings pages: gets page numbers (address / 64 KiB), maps what it can into the memory.
Pager = Callable[["GuestMemory", list[int]], None]


class Access(IntEnum):
    """What a block load found."""

    PRESENT = 0
    UNAVAILABLE = 1
    INVALID = 2


class GuestMemory:
    """Pages by number. `loads` counts the blocks that were asked for, present or not."""

    def __init__(self, ranges: Iterable[tuple[GuestAddress, int]] = ()) -> None:
        self._pages: dict[int, U32] = {}
        self._arrived: dict[int, NDArray[np.bool_]] = {}  # by block of the page
        self._numbers = np.empty(0, np.uint64)
        self._store = np.empty((0, _PAGE_BLOCKS, UNIT_WORDS), np.uint32)
        self._there = np.empty((0, _PAGE_BLOCKS), np.bool_)
        self._stale = False
        self._starts = np.empty(0, np.uint64)
        self._ends = np.empty(0, np.uint64)
        self.loads = 0
        for start, size in ranges:
            self.declare(start, size)

    @staticmethod
    def from_words(words: U32, base: GuestAddress) -> "GuestMemory":
        """All of `words` present at `base`; the bytes up to the next block are zero. Nothing here
        needs it but tests: it is for callers who hold a whole buffer, not a dump."""
        memory = GuestMemory([(base, -(-4 * len(words) // UNIT_BYTES) * UNIT_BYTES)])
        memory.write(base, words)
        return memory

    def declare(self, start: GuestAddress, size_bytes: int) -> None:
        """Makes a range valid. Its pages still have to arrive."""
        if start % UNIT_BYTES or size_bytes % UNIT_BYTES or size_bytes <= 0:
            raise UserError(f"guest range 0x{start:x}+{size_bytes} is no whole {UNIT_BYTES} bytes")
        if start < 0 or start + size_bytes > ADDRESS_LIMIT:
            raise UserError(f"guest range 0x{start:x}+{size_bytes} leaves 48 bits")
        self._starts = np.append(self._starts, np.uint64(start))
        self._ends = np.append(self._ends, np.uint64(start + size_bytes))
        order = np.argsort(self._starts)
        self._starts, self._ends = self._starts[order], self._ends[order]
        if (self._starts[1:] < self._ends[:-1]).any():
            raise UserError(f"guest range 0x{start:x}+{size_bytes} overlaps another")

    def map_page(self, number: int, words: U32) -> None:
        """Page `number` arrives with its 16,384 words."""
        if words.shape != (PAGE_WORDS,):
            raise UserError(f"a page has {PAGE_WORDS} words, not {words.shape}")
        self._pages[number] = np.array(words, np.uint32)
        self._arrived[number] = np.ones(_PAGE_BLOCKS, np.bool_)
        self._stale = True

    def write(self, address: GuestAddress, words: U32) -> None:
        """Words at a 4-byte aligned address. The blocks that they touch are present from then on,
        their other words zero if they were not."""
        if address % 4:
            raise UserError(f"guest address 0x{address:x} is no word's")
        at, done = address // 4, 0
        while done < len(words):
            number, inside = divmod(at + done, PAGE_WORDS)
            count = min(PAGE_WORDS - inside, len(words) - done)
            page = self._pages.setdefault(number, np.zeros(PAGE_WORDS, np.uint32))
            page[inside : inside + count] = words[done : done + count]
            there = self._arrived.setdefault(number, np.zeros(_PAGE_BLOCKS, np.bool_))
            there[inside // UNIT_WORDS : -(-(inside + count) // UNIT_WORDS)] = True
            done += count
        self._stale = True

    def load_blocks(self, addresses: U64) -> tuple[U32, NDArray[np.int64]]:
        """(words `[n, 16]`, `Access` `[n]`) of the 64-byte blocks at `addresses [n]`, which are
        multiples of 64. Words that were not present are zero and must not be used."""
        self.loads += len(addresses)
        self._refresh()
        words = np.zeros((len(addresses), UNIT_WORDS), np.uint32)
        access = np.full(len(addresses), Access.INVALID, np.int64)
        if not len(addresses) or not len(self._starts):
            return words, access
        which = np.searchsorted(self._starts, addresses, side="right") - 1
        valid = (which >= 0) & (addresses < self._ends[which])
        access[valid] = Access.UNAVAILABLE
        slot, inside, present = self._find(addresses)
        present &= valid
        words[present] = self._store[slot[present], inside[present]]
        access[present] = Access.PRESENT
        return words, access

    def missing_pages(self, addresses: U64) -> list[int]:
        """Numbers of the pages whose blocks at `addresses` are not present, in order."""
        self._refresh()
        _, _, present = self._find(addresses)
        return [int(number) for number in np.unique(addresses[~present] >> _PAGE_SHIFT)]

    def _find(self, addresses: U64) -> tuple[Index, Index, NDArray[np.bool_]]:
        """Page's place in the store, block in the page, and whether that block is present."""
        number = addresses >> _PAGE_SHIFT
        inside = (addresses % np.uint64(PAGE_BYTES)).astype(np.int64) // UNIT_BYTES
        if not len(self._numbers):
            return np.zeros_like(inside), inside, np.zeros(len(inside), np.bool_)
        slot = np.minimum(np.searchsorted(self._numbers, number), len(self._numbers) - 1)
        return slot, inside, (self._numbers[slot] == number) & self._there[slot, inside]

    def _refresh(self) -> None:
        if self._stale:
            numbers = sorted(self._pages)
            self._numbers = np.array(numbers, np.uint64)
            blocks = [self._pages[number].reshape(-1, UNIT_WORDS) for number in numbers]
            self._store = np.stack(blocks) if blocks else self._store[:0]
            there = [self._arrived[number] for number in numbers]
            self._there = np.stack(there) if there else self._there[:0]
            self._stale = False
