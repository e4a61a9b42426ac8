from typing import Any

import numpy as np
import pytest

from engine.gpu.primitives.radix_sort import DIGITS, RadixSort, radix_sort
from engine.gpu.primitives.reduce import TILE, tile_count

CAPACITY = 1_000_003
USAGE = "STORAGE|COPY_SRC|COPY_DST"


@pytest.fixture(scope="module")
def sorters(device: Any) -> dict[int, RadixSort]:
    return {words: RadixSort(device, CAPACITY, words) for words in (1, 2)}


def _keys(rng: Any, kind: str, count: int, words: int) -> np.ndarray:
    if kind == "random":
        return rng.integers(0, 2**32, (count, words), dtype=np.uint32)
    if kind == "few":  # many equal keys: only a stable sort keeps the payload's order
        return rng.integers(0, 5, (count, words), dtype=np.uint32) * np.uint32(0x01010101)
    if kind == "equal":
        return np.full((count, words), 0xFFFFFFFF, np.uint32)
    wide = np.arange(count, dtype=np.uint64) * np.uint64(2**32 // count if words == 1 else 2**43)
    if kind == "reversed":
        wide = wide[::-1]
    parts = [wide & np.uint64(0xFFFFFFFF), wide >> np.uint64(32)][:words]
    return np.stack(parts, axis=1).astype(np.uint32)


def _sorted(device: Any, item: RadixSort, run: Any, keys: np.ndarray) -> tuple[Any, Any]:
    count = len(keys)
    key_buffer = device.upload("keys", keys)
    payload_buffer = device.upload("payload", np.arange(count, dtype=np.uint32)[::-1])
    item.set_count(count)
    run(lambda scope: item.encode(scope, key_buffer, payload_buffer))
    got = device.read(key_buffer, count=keys.size).reshape(keys.shape)
    return got, device.read(payload_buffer, count=count)


def _check(device: Any, item: RadixSort, run: Any, keys: np.ndarray) -> None:
    got_keys, got_payload = _sorted(device, item, run, keys)
    payload = np.arange(len(keys), dtype=np.uint32)[::-1]
    expected = radix_sort(keys if keys.shape[1] == 2 else keys[:, 0], payload)
    assert (got_keys == expected[0].reshape(keys.shape)).all()
    assert (got_payload == expected[1]).all()


@pytest.mark.parametrize("words", [1, 2])
@pytest.mark.parametrize("count", [0, 1, 2, 255, 257, TILE - 1, TILE, TILE + 1, 70_001])
def test_any_length(
    device: Any, sorters: Any, in_one_pass: Any, rng: Any, words: int, count: int
) -> None:
    _check(device, sorters[words], in_one_pass, _keys(rng, "random", count, words))


@pytest.mark.parametrize("words", [1, 2])
@pytest.mark.parametrize("kind", ["few", "equal", "sorted", "reversed"])
def test_awkward_orders(
    device: Any, sorters: Any, in_one_pass: Any, rng: Any, words: int, kind: str
) -> None:
    _check(device, sorters[words], in_one_pass, _keys(rng, kind, 20_001, words))


def test_a_million_keys(device: Any, sorters: Any, in_one_pass: Any, rng: Any) -> None:
    keys = _keys(rng, "random", CAPACITY, 1)
    _check(device, sorters[1], in_one_pass, keys)


def test_same_input_same_bytes(device: Any, sorters: Any, in_one_pass: Any, rng: Any) -> None:
    keys = _keys(rng, "few", 50_000, 2)
    first = _sorted(device, sorters[2], in_one_pass, keys)
    second = _sorted(device, sorters[2], in_one_pass, keys)
    assert (first[0] == second[0]).all() and (first[1] == second[1]).all()


@pytest.mark.parametrize("words", [1, 2])
def test_stages_equal_their_twins(device: Any, sorters: Any, rng: Any, words: int) -> None:
    count = 5000
    tiles = tile_count(count)
    item = sorters[words]
    arrays = {
        "parameters": np.array([count, words, 32 * words - 8, tiles], np.uint32),
        "keys": rng.integers(0, 2**32, count * words, dtype=np.uint32),
        "payload": rng.integers(0, 2**32, count, dtype=np.uint32),
        "counts": np.zeros(DIGITS * tiles, np.uint32),
        "offsets": np.zeros(DIGITS * tiles, np.uint32),
        "moved_keys": np.zeros(count * words, np.uint32),
        "moved_payload": np.zeros(count, np.uint32),
    }
    item.count_digits.run_cpu(arrays)
    arrays["offsets"] = np.cumsum(arrays["counts"], dtype=np.uint32) - arrays["counts"]
    buffers = {
        name: device.upload(name, data, "UNIFORM|COPY_DST" if name == "parameters" else USAGE)
        for name, data in arrays.items()
    }
    device.write(buffers["counts"], np.full(DIGITS * tiles, 99, np.uint32))
    item.count_digits.run(buffers, tiles)
    item.move_items.run(buffers, tiles)
    item.move_items.run_cpu(arrays)
    for name in ("counts", "moved_keys", "moved_payload"):
        assert (device.read(buffers[name], count=len(arrays[name])) == arrays[name]).all()


def test_refuses_what_it_was_not_made_for(device: Any) -> None:
    with pytest.raises(ValueError, match="3 words"):
        RadixSort(device, 10, 3)
    with pytest.raises(ValueError, match="made for 10"):
        RadixSort(device, 10).set_count(11)
