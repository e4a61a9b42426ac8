from typing import Any

import numpy as np
import pytest

from engine.gpu.primitives.fingerprint import Fingerprint, fingerprint


@pytest.fixture(scope="module")
def item(device: Any) -> Fingerprint:
    return Fingerprint(device)


def _of(device: Any, item: Fingerprint, run: Any, words: np.ndarray, span: Any = None) -> int:
    buffer = device.upload("words", words)
    item.clear()
    run(lambda scope: item.encode(scope, buffer, span))
    return item.read()


@pytest.mark.parametrize("count", [4, 256, 70_004, 512 * 256 + 4])
def test_equals_its_twin(device: Any, item: Any, in_one_pass: Any, rng: Any, count: int) -> None:
    words = rng.integers(0, 2**32, count, dtype=np.uint32)
    result = np.zeros(2, np.uint32)
    fingerprint(np.array([0, 2**32 - 1], np.uint32), words, result)
    assert _of(device, item, in_one_pass, words) == int(result[0]) | int(result[1]) << 32


def test_every_bit_and_place_counts(device: Any, item: Any, in_one_pass: Any) -> None:
    words = np.zeros(1000, np.uint32)
    seen = {_of(device, item, in_one_pass, words)}
    for at in (0, 1, 500, 999):
        for bit in (0, 31):
            words[:] = 0
            words[at] = 1 << bit
            seen.add(_of(device, item, in_one_pass, words))
    words[:] = 0
    words[[3, 4]] = 5, 6
    seen.add(_of(device, item, in_one_pass, words))
    words[[3, 4]] = 6, 5
    seen.add(_of(device, item, in_one_pass, words))
    assert len(seen) == 11


def test_a_span_leaves_out_the_rest(device: Any, item: Any, in_one_pass: Any, rng: Any) -> None:
    words = rng.integers(0, 2**32, 1000, dtype=np.uint32)
    span = device.upload("span", np.array([100, 300], np.uint32))
    alone = _of(device, item, in_one_pass, words[100:400])
    assert _of(device, item, in_one_pass, words, span) == alone
    words[400] ^= 1
    assert _of(device, item, in_one_pass, words, span) == alone
    words[399] ^= 1
    assert _of(device, item, in_one_pass, words, span) != alone
