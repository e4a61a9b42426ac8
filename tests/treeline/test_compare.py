"""A planted 5% is found, equal runs are quiet, and different things are not compared."""

import json
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from bvh.blas import BuildOptions
from engine.gpu.errors import UserError
from treeline.compare import check_settings, compare, fewest_samples, judge, read_series
from treeline.json_text import json_text
from treeline.report_context import FRAME_FIELDS, options_context
from treeline.two_samples import (
    Change,
    between_runs,
    compare_samples,
    least_p,
    p_greater,
    rank_counts,
    resampled_medians,
)

Write = Callable[..., Path]
PASSES = {"gbuffer": 3.0, "traverse/reflection/0": 1.4, "traverse/shadow/0": 1.0, "composite": 0.4}


def record(rng: np.random.Generator, frames: int, scale: dict[str, float] | None = None) -> Any:
    """A report of `frames` frames whose passes vary by 2%, now and then by half."""
    scale = scale or {}
    rows, total = [], np.zeros(frames)
    for name, ms in PASSES.items():
        times = ms * scale.get(name, 1.0) * (1 + 0.02 * rng.standard_normal(frames))
        times *= np.where(rng.random(frames) < 0.03, 1.5, 1.0)
        total += times
        rows.append(make_row(f"pass/{name}", times))
    rows.insert(0, make_row("frame/total", total))
    rows.append(make_row("host/tiny", 0.004 * (1 + rng.random(frames))))
    return {
        "context": {"adapter": "llvmpipe", "scene_sha256": "ab", "width": 64},
        "benchmarks": rows,
    }


def make_row(name: str, times: Any) -> dict[str, Any]:
    row = {"name": name, "run_name": name, "run_type": "iteration", "time_unit": "ms"}
    return {**row, "real_time": float(np.median(times)), "samples": [float(t) for t in times]}


@pytest.fixture
def write(tmp_path: Path) -> Write:
    numbers = count()

    def put(data: Any) -> Path:
        path = tmp_path / f"{next(numbers)}.json"
        path.write_text(json.dumps(data))
        return path

    return put


@pytest.mark.parametrize("n,m", [(1, 1), (3, 4), (5, 5), (12, 7), (30, 30)])
def test_ranks_are_counted_as_scipy_does(n: int, m: int, rng: np.random.Generator) -> None:
    counts = rank_counts(n, m)
    assert len(counts) == n * m + 1 and counts.sum() == pytest.approx(1 / least_p(n, m))
    for shift in (0.0, 0.8):
        x, y = rng.random(n) + shift, rng.random(m)
        expected = stats.mannwhitneyu(x, y, alternative="greater", method="exact").pvalue
        assert p_greater(x, y) == pytest.approx(expected, rel=1e-9)


def test_ties_and_many_samples_as_scipy_does(rng: np.random.Generator) -> None:
    for n, m, step in ((6, 8, 0.25), (60, 60, 1e-9), (40, 60, 0.1)):
        x, y = (np.round(rng.random(k) / step) * step for k in (n, m))
        expected = stats.mannwhitneyu(x, y + step, alternative="greater", method="asymptotic")
        assert p_greater(x, y + step) == pytest.approx(expected.pvalue, rel=1e-9)
    assert p_greater(np.ones(5), np.ones(5)) == 1.0


@pytest.mark.parametrize("n", [1, 2, 5, 8])
def test_medians_are_drawn_as_by_resampling(n: int, rng: np.random.Generator) -> None:
    values = rng.random(n)
    drawn = np.sort(resampled_medians(values, rng))
    picks = rng.integers(0, n, (len(drawn), n))
    expected = np.sort(np.median(values[picks], axis=1))
    assert np.abs(drawn - expected).mean() < 0.02  # the distance of both distributions


def test_the_interval_holds_the_ratio(rng: np.random.Generator) -> None:
    held = 0
    for _ in range(60):
        a, b = rng.gamma(50, 1 / 50, 40), 1.2 * rng.gamma(50, 1 / 50, 40)
        change = compare_samples(a, b, rng)
        assert change.low <= change.ratio <= change.high
        held += change.low <= 1.2 <= change.high
    assert held >= 52  # of 57 expected


def test_a_planted_5_percent_is_found_and_equal_runs_are_quiet(
    write: Write, rng: np.random.Generator
) -> None:
    found, alarms = 0, 0
    for pair in range(50):
        a = read_series(write(record(rng, 60)))
        same = compare(a, read_series(write(record(rng, 60))), 0.05, 0.01, seed=pair)
        alarms += bool(same.named("slower") or same.named("faster"))
        slow = record(rng, 60, {"traverse/shadow/0": 1.05})
        slower = compare(a, read_series(write(slow)), 0.05, 0.01, seed=pair)
        found += [r.name for r in slower.named("slower")] == ["pass/traverse/shadow/0"]
    assert alarms == 0 and found >= 44


def drifting(rng: np.random.Generator, frames: int, how: str) -> Any:
    """[2 * frames] factors of what a machine does over two runs, one after the other."""
    times = np.arange(2 * frames)
    if how == "warms up":
        return 1 + 0.2 * times / len(times)
    if how == "wanders":
        return np.exp(np.cumsum(0.01 * rng.standard_normal(len(times))))
    near = np.zeros(len(times))  # autocorrelation 0.9 from frame to frame
    for i in range(1, len(times)):
        near[i] = 0.9 * near[i - 1] + 0.015 * rng.standard_normal()
    return np.exp(near)


@pytest.mark.parametrize("how", ["warms up", "wanders", "remembers"])
def test_a_machine_that_drifts_raises_no_alarm(how: str, rng: np.random.Generator) -> None:
    alarms = by_repetitions = 0
    for _ in range(50):
        load = drifting(rng, 40, how) * np.exp(0.02 * rng.standard_normal(80))
        a, b = load[:40], load[40:]
        found = compare_samples(a, b, rng)
        alarms += judge(found, 0.05, 0.01) in ("slower", "faster")
        ends = np.percentile(resampled_medians(b, rng) / resampled_medians(a, rng), (2.5, 97.5))
        alone = replace(found, low=float(ends[0]), high=float(ends[1]))
        by_repetitions += judge(alone, 0.05, 0.01) in ("slower", "faster")
    assert alarms <= 4 and by_repetitions > 2 * alarms + 4


@pytest.mark.parametrize("frames", [20, 60])
def test_5_percent_of_a_quiet_machine_is_found(frames: int, rng: np.random.Generator) -> None:
    found = 0
    for _ in range(50):
        a, b = (np.exp(0.015 * rng.standard_normal(frames)) for _ in range(2))
        found += judge(compare_samples(a, 1.05 * b, rng), 0.05, 0.01) == "slower"
    assert found >= (35 if frames < 60 else 48)


def test_equal_repetitions_lie_nowhere_apart() -> None:
    assert between_runs(np.zeros(9), np.zeros(9)) == 0
    assert between_runs(np.zeros(1), np.ones(1)) == 0


def test_one_slow_frame_is_no_regression(write: Write, rng: np.random.Generator) -> None:
    a, b = record(rng, 12), record(rng, 12)
    b["benchmarks"][1]["samples"][0] *= 40  # one frame of a pass
    found = compare(read_series(write(a)), read_series(write(b)), 0.05, 0.01)
    assert not found.named("slower")


def test_verdicts(write: Write, rng: np.random.Generator) -> None:
    scale = {"gbuffer": 1.3, "composite": 0.7}
    a, b = record(rng, 40), record(rng, 40, scale)
    found = compare(read_series(write(a)), read_series(write(b)), 0.05, 0.01)
    assert {row.name: row.verdict for row in found.rows} == {
        "frame/total": "slower",
        "pass/gbuffer": "slower",
        "pass/traverse/reflection/0": "same",
        "pass/traverse/shadow/0": "same",
        "pass/composite": "faster",
        "host/tiny": "small",
    }
    assert [row.name for row in found.named("slower")] == ["pass/gbuffer", "frame/total"]
    assert found.limit == pytest.approx(0.05 / 5)


@pytest.mark.parametrize(
    "low,high,p,expected",
    [
        (1.03, 1.06, 0.001, "slower"),
        (1.03, 1.06, 0.02, "unclear"),  # its ranks may be chance
        (1.02, 1.06, 0.001, "unclear"),  # a drift of half the threshold explains it
        (1.03, 1.049, 0.001, "same"),  # certain, and not large
        (0.94, 0.97, 1.0, "faster"),
        (0.94, 0.98, 1.0, "unclear"),
        (0.97, 1.03, 0.5, "same"),
    ],
)
def test_large_and_certain(low: float, high: float, p: float, expected: str) -> None:
    assert judge(Change((low + high) / 2, low, high, p, 1 - p), 0.05, 0.01) == expected


def test_exit_codes(run: Callable[..., Any], write: Write, rng: np.random.Generator) -> None:
    data = record(rng, 30)
    a = write(data)
    assert run("compare", a, a).exit_code == 0
    for row in data["benchmarks"]:  # the very same frames, each exactly 5% slower
        row["samples"] = [1.05 * t for t in row["samples"]]
    result = run("compare", a, write(data), "--threshold", "5%", "--json", "-")
    assert result.exit_code == 1 and "5.0% slower" in result.stderr
    assert len(json.loads(result.stdout)["regressions"]) == 5
    assert run("compare", a, write(data), "--threshold", "12%").exit_code == 0
    assert run("compare", write(data), a).exit_code == 0


def test_few_repetitions_are_never_certain(
    run: Callable[..., Any], write: Write, rng: np.random.Generator
) -> None:
    a, b = write(record(rng, 3)), write(record(rng, 3, dict.fromkeys(PASSES, 2.0)))
    result = run("compare", a, b)
    assert result.exit_code == 0 and "3 and 3 repetitions cannot be certain" in result.stderr
    fewest = fewest_samples(0.01)
    assert f"each file needs {fewest} (report --frames {fewest})" in result.stderr
    assert least_p(5, 5) < 0.01 < least_p(4, 4) and fewest_samples(0.01) == 5


def test_rows_of_google_benchmark(write: Write, rng: np.random.Generator) -> None:
    def rows(scale: float) -> list[dict[str, Any]]:
        repeated = [
            {
                **{"name": "trace", "run_name": "trace", "run_type": "iteration"},
                **{"repetition_index": i, "real_time": scale * t, "time_unit": "us"},
            }
            for i, t in enumerate(100 + rng.random(12))
        ]
        mean = {"name": "trace_mean", "run_name": "trace", "run_type": "aggregate", "real_time": 9}
        return [*repeated, mean]

    a, b = (read_series(write({"context": {}, "benchmarks": rows(s)})) for s in (1.0, 1.1))
    (row,) = compare(a, b, 0.05, 0.01).rows
    assert row.verdict == "slower" and row.samples == (12, 12)
    assert row.a_ms == pytest.approx(0.1, rel=0.01)


def test_different_things_are_not_compared(
    run: Callable[..., Any],
    one_line: Callable[[Any, int], str],
    write: Write,
    rng: np.random.Generator,
) -> None:
    a, b = record(rng, 8), record(rng, 8)
    b["context"] |= {"adapter": "H200", "width": 128, "commit": "1", "date": "today"}
    error = one_line(run("compare", write(a), write(b)), 2)
    assert "adapter llvmpipe and H200; width 64 and 128: --allow adapter --allow width" in error
    assert "commit" not in error
    partly = one_line(run("compare", write(a), write(b), "--allow", "adapter"), 2)
    assert "differ in width" in partly
    for flags in (("--allow", "adapter", "--allow", "width"), ("--allow", "all")):
        assert run("compare", write(a), write(b), *flags).exit_code == 0


BAD = {
    "{": "is no JSON",
    "[]": "neither a report nor a record",
    '{"benchmarks": []}': "no row has repetitions",
    '{"benchmarks": [{"name": "a", "real_time": 1, "time_unit": "ms"}]}': "no row has repetitions",
    '{"benchmarks": [{"name": "a", "samples": [1, NaN], "time_unit": "ms"}]}': "nan is no time",
    '{"benchmarks": [{"name": "a", "samples": [1, -2], "time_unit": "ms"}]}': "-2 is no time",
    '{"benchmarks": [{"name": "a", "samples": [1, "2"], "time_unit": "ms"}]}': "'2' is no time",
    '{"benchmarks": [{"name": "a", "samples": 3, "time_unit": "ms"}]}': "samples are a list",
    '{"benchmarks": [{"name": "a", "samples": [1, 2], "time_unit": "h"}]}': "time_unit 'h'",
    '{"benchmarks": [3]}': "has no name",
    '{"context": {"valid": false}, "benchmarks": []}': "dropped records",
}


@pytest.mark.parametrize("text", BAD)
def test_a_file_that_cannot_be_compared(text: str, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(text)
    with pytest.raises(UserError) as error:
        read_series(path)
    assert BAD[text] in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize("text", ["5", "0%", "-5%", "five%", "nan%", "2000%"])
def test_a_threshold_is_a_percentage(
    text: str,
    run: Callable[..., Any],
    one_line: Callable[[Any, int], str],
    write: Write,
    rng: np.random.Generator,
) -> None:
    path = write(record(rng, 4))
    assert "percentage such as 5%" in one_line(run("compare", path, path, "--threshold", text), 2)


def test_nothing_in_common(write: Write, rng: np.random.Generator) -> None:
    a, b = record(rng, 4), record(rng, 4)
    for row in b["benchmarks"]:
        row["run_name"] += "!"
    with pytest.raises(UserError, match="no repeated row in common"):
        compare(read_series(write(a)), read_series(write(b)), 0.05, 0.01)


def test_a_report_keeps_its_frames(document: tuple[dict[str, Any], Any], tmp_path: Path) -> None:
    report, measurement = document
    text = json_text(report)
    (tmp_path / "report.json").write_text(text)
    series = read_series(tmp_path)
    frames = measurement.main.frames
    assert list(series.rows["frame/total"]) == [f.frame_total_ms for f in frames]
    assert {"pass/composite", "ray/shadow"} <= set(series.rows)
    check_settings(series, series)
    assert json.loads(text) == report
    samples = [line for line in text.splitlines() if '"samples"' in line]
    assert samples and all(line.rstrip(",").endswith("]") for line in samples)
    odd = {"a": "[\n 1\n]", "b": [], "c": [1.5, None, -2e-7], "d": [[1], [2, 3]], "e": ["1"]}
    assert json.loads(json_text(odd)) == odd and "[1.5, null, -2e-07]" in json_text(odd)


def test_options_that_an_older_program_did_not_have(
    run: Callable[..., Any],
    one_line: Callable[[Any, int], str],
    document: tuple[dict[str, Any], Any],
    write: Write,
) -> None:
    """They had their default there: said in a note, and refused where the other file's differs."""
    report = json.loads(json_text(document[0]))
    new = write(report)
    for name in ("sampler", "reflection_bounces", "loops", "pairing"):
        del report["context"][name]
    old = write(report)
    for words in ((old, new), (new, old)):
        result = run("compare", *words, "--threshold", "20%")
        assert result.exit_code == 0
        told = [line for line in result.stderr.splitlines() if "does not say" in line]
        assert len(told) == 1
        names = told[0].removeprefix(f"treeline: {old} does not say ").partition(":")[0]
        assert sorted(names.split(", ")) == ["loops", "pairing", "reflection_bounces", "sampler"]
    assert "does not say" not in run("compare", old, new, "--allow", "all").stderr
    assert "does not say" not in run("compare", new, new).stderr
    report["context"] |= {"sampler": "sobol", "reflection_bounces": 2, "pairing": "near"}
    error = one_line(run("compare", old, write(report)), 2)
    assert "differ in sampler (none) and sobol; reflection_bounces (none) and 2: --allow" in error
    # What is no option is not assumed.
    del report["context"]["adapter"]
    assert "adapter" in one_line(run("compare", new, write(report), "--allow", "sampler"), 2)


def test_every_option_that_a_report_tells_may_be_missing(
    document: tuple[dict[str, Any], Any], write: Write
) -> None:
    """Of a report of default options, each by itself."""
    report = json.loads(json_text(document[0]))
    whole = read_series(write(report))
    names = [*FRAME_FIELDS, *options_context(BuildOptions()), "group", "loops"]
    for name in names:
        context = {key: value for key, value in whole.context.items() if key != name}
        (told,) = check_settings(replace(whole, context=context), whole)
        assert f"does not say {name}:" in told
