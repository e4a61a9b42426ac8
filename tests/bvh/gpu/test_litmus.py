"""The litmus for arrival counters. A CPU driver cannot show a fault of ordering, so what is tested
here is that a right tree passes and that every kind of wrong one is counted."""

from typing import Any

import numpy as np
import pytest

from bvh.gpu.litmus import (
    LEAVES_ON_A_CPU,
    RUNS,
    WORDS,
    litmus,
    make_parameters,
    make_stages,
    run_litmus,
)


@pytest.mark.parametrize("leaves", [1, 2, 256, 4096])
def test_a_right_tree_passes(device: Any, leaves: int) -> None:
    result = run_litmus(device, leaves, 3)
    assert (result.leaves, result.runs, result.wrong) == (leaves, 3, 0)
    assert result.passed


def test_once_a_process(device: Any) -> None:
    first = litmus(device)
    assert litmus(device) is first
    assert first.passed
    if device.info.is_cpu:
        assert (first.leaves, first.runs) == (LEAVES_ON_A_CPU, RUNS)


@pytest.mark.parametrize("leaves", [1, 2, 512])
def test_stages_equal_their_twins(device: Any, rng: Any, leaves: int) -> None:
    arrays = {
        "parameters": make_parameters(leaves, 0xFFFFFF01),
        "arrivals": np.zeros(leaves, np.uint32),
        "sums": rng.integers(0, 1 << 32, 2 * leaves * WORDS, np.uint32),
        "wrong": np.zeros(1, np.uint32),
    }
    buffers = {name: device.upload(name, value) for name, value in arrays.items()}
    buffers["parameters"] = device.upload("parameters", arrays["parameters"], "UNIFORM|COPY_DST")
    climb, check = make_stages(device)
    for stage, outputs in ((climb, "sums arrivals"), (check, "arrivals wrong")):
        stage.run(buffers, -(-2 * leaves // 256))
        stage.run_cpu(arrays)
        for name in outputs.split():
            got = device.read(buffers[name], np.uint32, count=len(arrays[name]))
            assert np.array_equal(got, arrays[name]), f"{stage.name}: {name}"
        if stage is climb:  # a few faults for the check: stale words, a lost arrival
            assert arrays["wrong"][0] == 0
            for node in {1, leaves, 2 * leaves - 1}:
                arrays["sums"][node * WORDS + 5] ^= 1 << 31
            arrays["arrivals"][leaves // 2] = 1
            for name in ("sums", "arrivals"):
                device.write(buffers[name], arrays[name])
    assert arrays["wrong"][0] >= min(leaves, 3)


def test_refuses_other_counts(device: Any) -> None:
    with pytest.raises(ValueError, match="power of two"):
        run_litmus(device, 1000, 1)
