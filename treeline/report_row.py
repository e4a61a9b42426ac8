"""One row of a report: google-benchmark's fields, and for each number the run that gave it."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from treeline.measure import median, p95

Row = dict[str, Any]


def make_row(name: str, iterations: int, real_time: float, cpu_time: float = 0.0) -> Row:
    return {
        "name": name,
        "run_name": name,
        "run_type": "iteration",
        "iterations": iterations,
        "real_time": real_time,
        "cpu_time": cpu_time,
        "time_unit": "ms",
    }


def timed_row(name: str, times: Sequence[float] | np.ndarray, cpu_time: float = 0.0) -> Row:
    row = make_row(name, len(times), median(times), cpu_time)
    row["real_time_p95"] = p95(times)
    row["samples"] = samples(times)
    row["run"] = {"real_time": "timed", "cpu_time": "timed", "real_time_p95": "timed"}
    return row


def samples(times: Sequence[float] | np.ndarray) -> list[float]:
    """Each repetition's time, for `treeline compare`; six digits are more than a clock has."""
    return [float(f"{ms:.6g}") for ms in times]


def add(row: Row, run: str, **fields: Any) -> None:
    """More numbers of a row, all from one run."""
    row.update(fields)
    row["run"].update(dict.fromkeys(fields, run))


def ratio(count: float | None, of: float | None) -> float | None:
    """count / of, or None where either does not exist or there is nothing to divide by."""
    if count is None or not of:
        return None
    return float(count) / float(of)


def is_plain(value: Any) -> bool:
    return isinstance(value, str | int | float | bool | np.generic) or value is None
