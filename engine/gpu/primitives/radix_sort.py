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
    `reduce`; items past it stay where they are or are overwritten."""

    def __init__(self, device: Device, capacity: int, key_words: int = 1, live: Any = None) -> None:
        if key_words not in (1, 2):
            raise ValueError(f"keys of {key_words} words")
        self.device = device
        self.capacity = capacity
        self.key_words = key_words
        folder = "engine/gpu/primitives/shaders"
        self.count_digits = Stage(
            device, "count_digits", f"{folder}/count_digits.wgsl", twin=count_digits
        )
        self.place_digits = Stage(
            device, "place_digits", f"{folder}/place_digits.wgsl", twin=place_digits
        )
        self.move_items = Stage(device, "move_items", f"{folder}/move_items.wgsl", twin=move_items)
        self._live = no_limit(device) if live is None else live
        self._counts = device.buffer("sort/counts", 4 * DIGITS * max(1, tile_count(capacity)))
        # A pass clears the next one's row; the number of passes is even, so that the first finds
        # its own cleared by the last one's of the sort before.
        self._totals = device.buffer("sort/totals", 4 * 2 * DIGITS)
        self._keys = device.buffer("sort/keys", 4 * key_words * capacity)
        self._payload = device.buffer("sort/payload", 4 * capacity)
        # Four passes a word: an even number, so that the result ends where the input was.
        self._parameters = [
            device.buffer("sort/parameters", 16, "UNIFORM|COPY_DST")
            for _ in range(32 * key_words // DIGIT_BITS)
        ]
        self.set_count(capacity)

    def set_count(self, count: int) -> None:
        """Items from now on; at most `capacity`, else ValueError."""
        if not 0 <= count <= self.capacity:
            raise ValueError(f"sort of {count} items, made for {self.capacity}")
        self._tiles = tile_count(count)
        for index, buffer in enumerate(self._parameters):
            words = [count, self.key_words, DIGIT_BITS * index, self._tiles]
            self.device.write(buffer, np.array(words, np.uint32))

    def encode(self, scope: Any, keys: Any, payload: Any) -> None:
        """Sorts both buffers; the same input gives the same bytes."""
        if not self._tiles:
            return
        source, target = (keys, payload), (self._keys, self._payload)
        for parameters in self._parameters:
            buffers = {
                "parameters": parameters,
                "live": self._live,
                "counts": self._counts,
                "offsets": self._counts,
                "totals": self._totals,
                "keys": source[0],
                "payload": source[1],
                "moved_keys": target[0],
                "moved_payload": target[1],
            }
            self.count_digits.dispatch(scope, buffers, self._tiles)
            self.place_digits.dispatch(scope, buffers, DIGITS // DIGITS_A_GROUP)
            self.move_items.dispatch(scope, buffers, self._tiles)
            source, target = target, source
