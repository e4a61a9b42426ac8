from typing import Any

import numpy as np
import pytest

from engine.gpu.primitives.reduce import OPERATIONS, TILE, Reduce, tile_count

COUNTS = [0, 1, 2, 255, 256, 257, TILE - 1, TILE, TILE + 1, 3 * TILE + 77, 1_000_003]


@pytest.fixture(scope="module")
def reducers(device: Any) -> dict[str, Reduce]:
    return {name: Reduce(device, TILE * TILE + 5, name) for name in OPERATIONS}


def _expected(values: np.ndarray, operation: str) -> int:
    if operation == "sum":
        return int(values.sum(dtype=np.uint32))
    if not len(values):
        return 0xFFFFFFFF if operation == "min" else 0
    return int(values.min() if operation == "min" else values.max())


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("count", COUNTS)
def test_equals_numpy(
    device: Any, reducers: Any, in_one_pass: Any, rng: Any, operation: str, count: int
) -> None:
    values = rng.integers(0, 2**32, count + 10, dtype=np.uint32)  # what is past count stays out
    item = reducers[operation]
    item.set_count(count)
    buffer = device.upload("values", values)
    in_one_pass(lambda scope: item.encode(scope, buffer))
    assert int(device.read(item.result, count=1)[0]) == _expected(values[:count], operation)
    assert (device.read(buffer, count=len(values)) == values).all()


def test_a_count_that_only_the_gpu_knows(device: Any, in_one_pass: Any, rng: Any) -> None:
    live = device.buffer("live", 16)
    item = Reduce(device, 3 * TILE + 77, "max", live)
    values = rng.integers(0, 2**32, item.capacity, dtype=np.uint32)
    buffer = device.upload("values", values)
    for count in (0, 1, TILE, 2 * TILE + 1, item.capacity, item.capacity + 9):
        device.write(live, np.array([count], np.uint32))
        in_one_pass(lambda scope: item.encode(scope, buffer))
        assert int(device.read(item.result, count=1)[0]) == _expected(values[:count], "max")


def test_three_levels(device: Any, reducers: Any, in_one_pass: Any) -> None:
    count = TILE * TILE + 5
    values = np.ones(count, np.uint32)
    item = reducers["sum"]
    item.set_count(count)
    buffer = device.upload("values", values)
    in_one_pass(lambda scope: item.encode(scope, buffer))
    assert int(device.read(item.result, count=1)[0]) == count


@pytest.mark.parametrize("count", [1, 5000])
def test_stage_equals_its_twin(device: Any, reducers: Any, rng: Any, count: int) -> None:
    stage = reducers["max"].stage
    for operation in range(3):
        arrays = {
            "parameters": np.array([count, operation, 0, 0], np.uint32),
            "live": np.array([count - count // 3], np.uint32),
            "values": rng.integers(0, 2**32, count, dtype=np.uint32),
            "partials": np.zeros(tile_count(count), np.uint32),
        }
        buffers = {
            name: device.upload(name, data, "UNIFORM|COPY_DST" if name == "parameters" else USAGE)
            for name, data in arrays.items()
        }
        stage.run(buffers, tile_count(count))
        stage.run_cpu(arrays)
        got = device.read(buffers["partials"], count=tile_count(count))
        assert (got == arrays["partials"]).all()


def test_refuses_more_than_it_was_made_for(device: Any) -> None:
    item = Reduce(device, 10)
    with pytest.raises(ValueError, match="made for 10"):
        item.set_count(11)


USAGE = "STORAGE|COPY_SRC|COPY_DST"
