"""Stable radix sort of u32 or u64 keys with a u32 payload, least significant digit first.

A pass sorts by one digit of eight bits, in three dispatches: every tile counts its digits, the
counts are scanned over the tiles, and every tile moves its items to its share of
each digit in their order. The order inside a tile comes from bit masks in workgroup memory, one bit
a lane and digit, so that no subgroup size is assumed and the result never depends on scheduling.
All passes are dispatches of one compute pass. Source: Merrill and Grimshaw 2011, "High performance
and scalable radix sorting", with reduce-then-scan.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.gpu.device import Device
from engine.gpu.primitives.reduce import TILE, no_limit, tile_count
from engine.gpu.stage import Stage

U32 = NDArray[np.uint32]

DIGIT_BITS = 8
DIGITS = 256
DIGITS_A_GROUP = 8  # of place_digits
TOTALS_BYTES = 4 * 2 * DIGITS


def _digits(parameters: U32, live: U32, keys: U32) -> U32:
    words, at = int(parameters[1]), int(parameters[2])
    count = min(int(parameters[0]), int(live[0]))
    word = keys[: count * words].reshape(count, words)[:, at // 32]
    return np.asarray(word >> np.uint32(at % 32) & np.uint32(DIGITS - 1))


def _totals_row(parameters: U32) -> int:
    return int(parameters[2]) // DIGIT_BITS % 2


def count_digits(parameters: U32, live: U32, keys: U32, counts: U32, totals: U32) -> None:
    """Twin of count_digits.wgsl: `counts[tile * DIGITS + digit]`, added up into the row of `totals`
    `[2, DIGITS]` that this pass uses. `parameters` are count, words a key, the digit's lowest bit,
    tiles."""
    tiles = int(parameters[3])
    digit = _digits(parameters, live, keys)
    tile = np.arange(len(digit)) // TILE
    counts[: DIGITS * tiles] = np.bincount(tile * DIGITS + digit, minlength=DIGITS * tiles)
    totals.reshape(2, DIGITS)[_totals_row(parameters)] += np.bincount(
        digit, minlength=DIGITS
    ).astype(np.uint32)


def place_digits(parameters: U32, totals: U32, counts: U32, digits: int = DIGITS) -> None:
    """Twin of place_digits.wgsl: `counts` become where each tile's share of each digit begins; the
    other row of `totals` becomes zero for the next pass. `digits` are those of the table, where the
    stage's override says that there are fewer."""
    tiles, row = int(parameters[3]), _totals_row(parameters)
    rows = totals.reshape(2, DIGITS)
    table = counts[: digits * tiles].reshape(tiles, digits)
    within = np.cumsum(table, axis=0, dtype=np.uint32) - table
    smaller = np.cumsum(rows[row], dtype=np.uint32) - rows[row]
    table[:] = smaller[:digits] + within
    rows[1 - row, :digits] = 0


def move_items(
    parameters: U32,
    live: U32,
    offsets: U32,
    keys: U32,
    payload: U32,
    moved_keys: U32,
    moved_payload: U32,
) -> None:
    """Twin of move_items.wgsl: every item to where its tile's share of its digit begins
    (`offsets`, the placed counts), in order."""
    words = int(parameters[1])
    digit = _digits(parameters, live, keys)
    count = len(digit)
    tile = np.arange(count) // TILE
    cell = tile * DIGITS + digit
    order = np.argsort(cell, kind="stable")
    ranked = cell[order]
    rank = np.empty(count, np.int64)
    rank[order] = np.arange(count) - np.searchsorted(ranked, ranked)
    target = offsets[cell] + rank
    moved_keys[: count * words].reshape(count, words)[target] = keys[: count * words].reshape(
        count, words
    )
    moved_payload[target] = payload[:count]


def radix_sort(keys: U32, payload: U32) -> tuple[U32, U32]:
    """What RadixSort computes, for `keys` `[n]` or `[n, 2]` (low word first): both arrays in the
    stable order of the keys."""
    if keys.ndim == 2:
        wide = keys[:, 0].astype(np.uint64) | keys[:, 1].astype(np.uint64) << np.uint64(32)
        order = np.argsort(wide, kind="stable")
    else:
        order = np.argsort(keys, kind="stable")
    return keys[order], payload[order]


class RadixSort:
    """Sorts up to `capacity` keys of `key_words` u32 (1, or 2 with the low word first) and their
    payload, in place. The scratch is a second copy of both and the digit counts. `live`: see
    `reduce`; items past it stay where they are or are overwritten. Keys that have fewer than 32
    bits a word say so: `key_bits` is a multiple of two digits."""

    def __init__(
        self,
        device: Device,
        capacity: int,
        key_words: int = 1,
        live: Any = None,
        key_bits: int | None = None,
    ) -> None:
        if key_words not in (1, 2):
            raise ValueError(f"keys of {key_words} words")
        # An even number of passes, so that the result ends where the input was.
        bits = 32 * key_words if key_bits is None else key_bits
        if bits % (2 * DIGIT_BITS) or not 0 < bits <= 32 * key_words:
            raise ValueError(f"keys of {bits} bits in {key_words} words")
        self.device = device
        self.key_words = key_words
        folder = "engine/gpu/primitives/shaders"
        self.count_digits = Stage(
            device, "count_digits", f"{folder}/count_digits.wgsl", twin=count_digits
        )
        self.place_digits = Stage(
            device, "place_digits", f"{folder}/place_digits.wgsl", twin=place_digits
        )
        self.move_items = Stage(device, "move_items", f"{folder}/move_items.wgsl", twin=move_items)
        # A pass clears the next one's row; the number of passes is even, so that the first finds
        # its own cleared by the last one's of the sort before.
        self._totals = device.buffer("sort/totals", TOTALS_BYTES)
        self._parameters = [
            device.buffer("sort/parameters", 16, "UNIFORM|COPY_DST")
            for _ in range(bits // DIGIT_BITS)
        ]
        self.set_capacity(capacity, live)

    def set_capacity(self, capacity: int, live: Any = None, totals: Any = None) -> None:
        """As many items from now on, at most, with this `live`: makes the scratch anew. `totals` is
        the caller's own buffer of TOTALS_BYTES, zero before each sort, where one may be left
        unfinished."""
        self.capacity = capacity
        self.live = no_limit(self.device) if live is None else live
        self._totals = self._totals if totals is None else totals
        tiles = max(1, tile_count(capacity))
        self._counts = self.device.buffer("sort/counts", 4 * DIGITS * tiles)
        self._keys = self.device.buffer("sort/keys", 4 * self.key_words * capacity)
        self._payload = self.device.buffer("sort/payload", 4 * capacity)
        self.set_count(capacity)

    def set_count(self, count: int) -> None:
        """Items from now on; at most `capacity`, else ValueError."""
        if not 0 <= count <= self.capacity:
            raise ValueError(f"sort of {count} items, made for {self.capacity}")
        self._tiles = tile_count(count)
        for index, buffer in enumerate(self._parameters):
            words = [count, self.key_words, DIGIT_BITS * index, self._tiles]
            self.device.write(buffer, np.array(words, np.uint32))

    @property
    def step_count(self) -> int:
        """Dispatches of a sort."""
        return 3 * len(self._parameters)

    def encode(
        self, scope: Any, keys: Any, payload: Any, first: int = 0, count: int | None = None
    ) -> None:
        """Sorts both buffers; the same input gives the same bytes. Of its `step_count` dispatches
        `count` from `first` on: for callers that spread a sort over submissions."""
        if not self._tiles:
            return
        end = self.step_count if count is None else first + count
        for step in range(first, end):
            digit, part = divmod(step, 3)
            here, other = (keys, payload), (self._keys, self._payload)
            source, target = (here, other) if digit % 2 == 0 else (other, here)
            buffers = {
                "parameters": self._parameters[digit],
                "live": self.live,
                "counts": self._counts,
                "offsets": self._counts,
                "totals": self._totals,
                "keys": source[0],
                "payload": source[1],
                "moved_keys": target[0],
                "moved_payload": target[1],
            }
            stage = (self.count_digits, self.place_digits, self.move_items)[part]
            stage.dispatch(scope, buffers, DIGITS // DIGITS_A_GROUP if part == 1 else self._tiles)
