from typing import Any

import numpy as np
import pytest

from engine.gpu.primitives.radix_sort import DIGITS, DIGITS_A_GROUP, RadixSort, radix_sort
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


@pytest.mark.parametrize("words", [1, 2])
def test_a_count_that_only_the_gpu_knows(
    device: Any, in_one_pass: Any, rng: Any, words: int
) -> None:
    """What lies past the count stays out, whatever it is."""
    live = device.buffer("live", 16)
    item = RadixSort(device, 3 * TILE + 77, words, live)
    keys = _keys(rng, "few", item.capacity, words)
    payload = np.arange(item.capacity, dtype=np.uint32)[::-1].copy()
    for count in (0, 1, TILE, 2 * TILE + 1, item.capacity, item.capacity + 9):
        key_buffer, payload_buffer = device.upload("keys", keys), device.upload("payload", payload)
        device.write(live, np.array([count], np.uint32))
        in_one_pass(lambda scope, k=key_buffer, p=payload_buffer: item.encode(scope, k, p))
        expected = radix_sort(keys[:count] if words == 2 else keys[:count, 0], payload[:count])
        got = device.read(key_buffer, count=keys.size).reshape(keys.shape)[:count]
        assert (got == expected[0].reshape(got.shape)).all()
        assert (device.read(payload_buffer, count=len(payload))[:count] == expected[1]).all()


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
        "live": np.array([count - 1234], np.uint32),
        "totals": np.zeros(2 * DIGITS, np.uint32),
        "keys": rng.integers(0, 2**32, count * words, dtype=np.uint32),
        "payload": rng.integers(0, 2**32, count, dtype=np.uint32),
        "counts": np.zeros(DIGITS * tiles, np.uint32),
        "offsets": np.zeros(DIGITS * tiles, np.uint32),
        "moved_keys": np.zeros(count * words, np.uint32),
        "moved_payload": np.zeros(count, np.uint32),
    }
    arrays["totals"][:DIGITS] = 7  # the row of the pass before, to be cleared
    arrays["counts"][:] = 99
    buffers = {
        name: device.upload(name, data, "UNIFORM|COPY_DST" if name == "parameters" else USAGE)
        for name, data in arrays.items()
    }
    arrays["offsets"], buffers["offsets"] = arrays["counts"], buffers["counts"]
    for stage, groups in (
        (item.count_digits, tiles),
        (item.place_digits, DIGITS // DIGITS_A_GROUP),
        (item.move_items, tiles),
    ):
        stage.run(buffers, groups)
        stage.run_cpu(arrays)
        for name in ("counts", "totals", "moved_keys", "moved_payload"):
            assert (device.read(buffers[name], count=len(arrays[name])) == arrays[name]).all()


def test_refuses_what_it_was_not_made_for(device: Any) -> None:
    with pytest.raises(ValueError, match="3 words"):
        RadixSort(device, 10, 3)
    with pytest.raises(ValueError, match="made for 10"):
        RadixSort(device, 10).set_count(11)
