"""Percentiles of the newest are NumPy's, whatever has come and gone."""

from typing import Any

import numpy as np

from engine.view.latencies import Latencies


def test_percentiles_are_numpys(rng: Any) -> None:
    newest = Latencies(20)
    assert newest.p95 == 0.0
    for number, value in enumerate(rng.integers(0, 9, 60).astype(float)):  # many are equal
        newest.append(float(value))
        if number % 7 == 3:
            newest.pop()
        if newest:
            assert newest.p95 == np.percentile(np.array(newest), 95)
    assert 18 <= len(newest) <= 20
    newest.clear()
    assert not newest and newest.p95 == 0.0
