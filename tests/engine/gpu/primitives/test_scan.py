from typing import Any

import numpy as np
import pytest

from engine.gpu.primitives.reduce import TILE, tile_count
from engine.gpu.primitives.scan import ExclusiveScan

COUNTS = [0, 1, 2, 7, 255, 257, TILE - 1, TILE, TILE + 1, 5 * TILE - 3, 1_000_003]
USAGE = "STORAGE|COPY_SRC|COPY_DST"


@pytest.fixture(scope="module")
def scanner(device: Any) -> ExclusiveScan:
    return ExclusiveScan(device, TILE * TILE + 5, with_total=True)


def _exclusive(values: np.ndarray) -> np.ndarray:
    return np.cumsum(values, dtype=np.uint32) - values


@pytest.mark.parametrize("count", [*COUNTS, TILE * TILE + 5])
def test_equals_numpy(device: Any, scanner: Any, in_one_pass: Any, rng: Any, count: int) -> None:
    """Sums wrap, and what lies past the count stays."""
    values = rng.integers(0, 2**32, count + 3, dtype=np.uint32)
    buffer = device.upload("values", values)
    scanner.set_count(count)
    in_one_pass(lambda scope: scanner.encode(scope, buffer))
    got = device.read(buffer, count=len(values))
    assert (got[:count] == _exclusive(values[:count])).all()
    assert (got[count:] == values[count:]).all()
    total = int(device.read(scanner.total, count=1)[0])
    assert total == int(values[:count].sum(dtype=np.uint32))


def test_a_count_that_only_the_gpu_knows(device: Any, in_one_pass: Any, rng: Any) -> None:
    live = device.buffer("live", 16)
    item = ExclusiveScan(device, 3 * TILE + 77, with_total=True, live=live)
    values = rng.integers(0, 2**32, item.capacity, dtype=np.uint32)
    for count in (0, 1, TILE, 2 * TILE + 1, item.capacity, item.capacity + 9):
        buffer = device.upload("values", values)
        device.write(live, np.array([count], np.uint32))
        in_one_pass(lambda scope, buffer=buffer: item.encode(scope, buffer))
        got = device.read(buffer, count=len(values))
        assert (got[:count] == _exclusive(values[:count])).all()
        assert (got[count:] == values[count:]).all()
        assert int(device.read(item.total, count=1)[0]) == int(values[:count].sum(dtype=np.uint32))


def test_twice_in_one_pass(device: Any, in_one_pass: Any, rng: Any) -> None:
    """Scratch is used again without a new pass; without a total the top sum is left out."""
    item = ExclusiveScan(device, 3 * TILE)
    values = rng.integers(0, 100, 3 * TILE, dtype=np.uint32)
    first, second = device.upload("first", values), device.upload("second", values[::-1])

    def encode(scope: Any) -> None:
        item.encode(scope, first)
        item.encode(scope, second)

    in_one_pass(encode)
    assert (device.read(first, count=len(values)) == _exclusive(values)).all()
    assert (device.read(second, count=len(values)) == _exclusive(values[::-1])).all()


@pytest.mark.parametrize("count", [1, TILE, 5000])
@pytest.mark.parametrize("with_offsets", [0, 1])
def test_stage_equals_its_twin(
    device: Any, scanner: Any, rng: Any, count: int, with_offsets: int
) -> None:
    arrays = {
        "parameters": np.array([count, with_offsets, 0, 0], np.uint32),
        "live": np.array([count - count // 3], np.uint32),
        "offsets": rng.integers(0, 2**32, tile_count(count), dtype=np.uint32),
        "values": rng.integers(0, 2**32, count, dtype=np.uint32),
    }
    buffers = {
        name: device.upload(name, data, "UNIFORM|COPY_DST" if name == "parameters" else USAGE)
        for name, data in arrays.items()
    }
    scanner.scan.run(buffers, tile_count(count))
    scanner.scan.run_cpu(arrays)
    assert (device.read(buffers["values"], count=count) == arrays["values"]).all()


def test_refuses_more_than_it_was_made_for(device: Any) -> None:
    item = ExclusiveScan(device, 10)
    with pytest.raises(ValueError, match="made for 10"):
        item.set_count(11)
