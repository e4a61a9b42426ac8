"""Compares two reports or benchmark records, row by row.

A row's repetitions are its `samples`, or the rows of the same `run_name`, as google-benchmark
writes them with `--benchmark_repetitions`. A row is a regression if the change is

- large: its interval reaches the threshold. The estimate of a change that is exactly as large as
  the threshold lies below it half of the time; its interval does so rarely.
- certain: its interval, which holds what the machine changed by during each of the runs, lies
  above half the threshold, and ranks this far apart are less likely than FALSE_ALARM divided by
  the number of rows. Two runs of the same program on one machine differ truly, by memory and by
  what changes more slowly than a run; half the threshold is left to that.

Improvements are judged alike. A row that takes less than `floor` of the frame is shown and not
judged: what a percentage of it is worth, is lost in the frame's noise.
"""

import json
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from bvh.blas import BuildOptions
from engine.gpu.errors import UserError
from passes.frame_options import FrameOptions
from passes.grouping import GROUPS
from treeline.report_context import FRAME_FIELDS, options_context, plain
from treeline.two_samples import F64, Change, compare_samples, least_p

FALSE_ALARM = 0.05  # of a whole comparison, by ranks alone
FRAME = "frame/total"
MS = {"ns": 1e-6, "us": 1e-3, "ms": 1.0, "s": 1e3}
VERDICTS = ("slower", "faster", "same", "unclear", "small")
# What a context says that is no setting: two runs that differ in it measured the same thing.
FREE = frozenset(
    {
        *("schema", "date", "version", "commit", "python", "numpy", "frames", "warmup", "notes"),
        *("repeats", "warmup_ms", "result_hash", "valid", "on", "blas_built", "blas_cached"),
        *("triangle_opacity", "host_name", "executable", "mhz_per_cpu", "cpu_scaling_enabled"),
        *("caches", "load_avg", "library_version", "library_build_type", "json_schema_version"),
    }
)

# What the program chose by the adapter. A file without it is from a program without the choice.
CHOSEN_HERE = frozenset({"loops"})
NO_OPTION = object()


@dataclass(frozen=True, slots=True)
class Series:
    """A file's context, and each row's repetitions in ms."""

    path: Path
    context: Mapping[str, Any]
    rows: Mapping[str, F64]


@dataclass(frozen=True, slots=True)
class RowChange:
    """One row in both files; medians in ms. `verdict` is one of VERDICTS: "same" is certainly
    below the threshold, "unclear" neither that nor certainly above it, "small" is not judged."""

    name: str
    a_ms: float
    b_ms: float
    samples: tuple[int, int]
    change: Change
    verdict: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """`only` are rows that one of the files has: ("a" or "b", name). `limit` is the chance below
    which a row's ranks are certain."""

    rows: tuple[RowChange, ...]
    only: tuple[tuple[str, str], ...]
    threshold: float
    limit: float

    def named(self, verdict: str) -> tuple[RowChange, ...]:
        """The rows of this verdict, the largest change first."""
        found = [row for row in self.rows if row.verdict == verdict]
        return tuple(sorted(found, key=lambda row: -abs(math.log(row.change.ratio))))

    def facts(self) -> dict[str, Any]:
        """In JSON's types."""
        return {
            "threshold": self.threshold,
            "p_limit": self.limit,
            "regressions": [row.name for row in self.named("slower")],
            "improvements": [row.name for row in self.named("faster")],
            "rows": [
                {
                    "name": row.name,
                    "a_ms": row.a_ms,
                    "b_ms": row.b_ms,
                    "samples": list(row.samples),
                    "change": row.change.ratio - 1,
                    "interval": [row.change.low - 1, row.change.high - 1],
                    "p_slower": row.change.p_slower,
                    "p_faster": row.change.p_faster,
                    "verdict": row.verdict,
                }
                for row in self.rows
            ],
            "only": [{"file": file, "name": name} for file, name in self.only],
        }


def read_series(path: Path) -> Series:
    """A report (or the folder that it is in) or a record. UserError for what is none, for an
    invalid frame, and where no row was repeated."""
    path = path / "report.json" if path.is_dir() else path
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path} is no JSON: {error}") from error
    if not isinstance(data, dict) or not isinstance(data.get("benchmarks"), list):
        raise UserError(f"{path} is neither a report nor a record: it has no list 'benchmarks'")
    context = data.get("context", {})
    if not isinstance(context, dict):
        raise UserError(f"{path}: its context is no object")
    if context.get("valid") is False:
        raise UserError(f"{path}: its frame dropped records or failed, so that its times miss rays")
    times: dict[str, list[float]] = {}
    for row in data["benchmarks"]:
        for name, ms in _repetitions(row, path):
            times.setdefault(name, []).append(ms)
    rows = {name: np.array(ms) for name, ms in times.items() if len(ms) > 1 and min(ms) > 0}
    if not rows:
        raise UserError(f"{path}: no row has repetitions, so that nothing about it is certain")
    return Series(path, context, rows)


def _repetitions(row: Any, path: Path) -> list[tuple[str, float]]:
    """(name, ms) of a row's repetitions; none of an aggregate."""
    if not isinstance(row, dict) or not isinstance(row.get("name"), str):
        raise UserError(f"{path}: a row of 'benchmarks' has no name")
    if row.get("run_type", "iteration") != "iteration":
        return []
    name = str(row.get("run_name", row["name"]))
    scale = MS.get(row.get("time_unit", "ns"))
    if scale is None:
        raise UserError(f"{path}: {name}: unknown time_unit '{row['time_unit']}'")
    samples = row.get("samples", [row.get("real_time")])
    if not isinstance(samples, list):
        raise UserError(f"{path}: {name}: samples are a list of times")
    found = []
    for value in samples:
        if value is None:  # a time that does not exist: no timestamps
            continue
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise UserError(f"{path}: {name}: {value!r} is no time")
        if not math.isfinite(value) or value < 0:
            raise UserError(f"{path}: {name}: {value!r} is no time")
        found.append((name, scale * value))
    return found


def check_settings(a: Series, b: Series, allowed: Collection[str] = ()) -> list[str]:
    """UserError, one line, where the files measured different things that are not `allowed`. Gives
    a line for each file that does not say what `assumed` says: it is from before there was the
    option."""
    keys = [key for key in dict.fromkeys([*a.context, *b.context]) if key not in FREE]
    keys = [key for key in keys if key not in allowed and "all" not in allowed]
    silent = [
        (one.path, [key for key in keys if assumed(key, one, other)])
        for one, other in ((a, b), (b, a))
    ]
    told = [key for key in keys if not any(key in names for _, names in silent)]
    if differ := [key for key in told if a.context.get(key) != b.context.get(key)]:
        texts = (f"{k} {_short(a.context.get(k))} and {_short(b.context.get(k))}" for k in differ)
        flags = " ".join(f"--allow {key}" for key in differ)
        raise UserError(f"{a.path} and {b.path} differ in {'; '.join(texts)}: {flags} to compare")
    return [
        f"{path} does not say {', '.join(names)}: taken for what the other file says, the default"
        for path, names in silent
        if names
    ]


def assumed(key: str, one: Series, other: Series) -> bool:
    """Whether `one` does not say what this option was, and `other` says that it was the default.
    Programs that did not have the option yet did what its default does since."""
    if key in one.context or key not in other.context:
        return False
    return key in CHOSEN_HERE or other.context[key] == default_settings().get(key, NO_OPTION)


@cache
def default_settings() -> Mapping[str, Any]:
    """What a context says of options that nobody asked for."""
    frame, build = FrameOptions(0, 0), BuildOptions()
    told = {name: getattr(frame, name) for name in FRAME_FIELDS}
    return {**plain(told), **plain(options_context(build)), "group": GROUPS[0]}


def _short(value: Any) -> str:
    if value is None:
        return "(none)"
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= 40 else f"{text[:37]}..."


def compare(a: Series, b: Series, threshold: float, floor: float, seed: int = 0) -> Comparison:
    """Judges every row that both files have. `threshold` and `floor` are fractions, of a row and
    of the frame. UserError where they have none in common."""
    common = [name for name in a.rows if name in b.rows]
    if not common:
        raise UserError(f"{a.path} and {b.path} have no repeated row in common")
    least_ms = floor * float(np.median(a.rows[FRAME])) if FRAME in a.rows else 0.0
    judged = [name for name in common if np.median(a.rows[name]) >= least_ms]
    limit = FALSE_ALARM / max(1, len(judged))
    rng = np.random.default_rng(seed)
    rows = []
    for name in common:
        change = compare_samples(a.rows[name], b.rows[name], rng)
        verdict = judge(change, threshold, limit) if name in judged else "small"
        medians = float(np.median(a.rows[name])), float(np.median(b.rows[name]))
        rows.append(
            RowChange(name, *medians, (len(a.rows[name]), len(b.rows[name])), change, verdict)
        )
    only = [("a", name) for name in a.rows if name not in b.rows]
    only += [("b", name) for name in b.rows if name not in a.rows]
    return Comparison(tuple(rows), tuple(only), threshold, limit)


def judge(change: Change, threshold: float, limit: float) -> str:
    """One of VERDICTS but "small". A threshold of 5% downwards is a ratio of 1 / 1.05."""
    large, half = math.log1p(threshold), math.log1p(threshold) / 2
    low, high = math.log(change.low), math.log(change.high)
    rounding = 1e-9
    if high >= large - rounding and low > half and change.p_slower <= limit:
        return "slower"
    if low <= -large + rounding and high < -half and change.p_faster <= limit:
        return "faster"
    return "same" if -large < low and high < large else "unclear"


def fewest_samples(limit: float) -> int:
    """How many repetitions each file needs for a row to be certain at this limit."""
    count = 2
    while least_p(count, count) > limit:
        count += 1
    return count


def too_few(comparison: Comparison) -> Sequence[RowChange]:
    """Rows that are judged although their repetitions cannot be certain of anything."""
    return [
        row
        for row in comparison.rows
        if row.verdict != "small" and least_p(*row.samples) > comparison.limit
    ]
