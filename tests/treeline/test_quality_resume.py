"""A curve that was ended, and the one that goes on with it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from treeline import quality, report_context
from treeline.quality_resume import PARTIAL, RECORD
from treeline.time_limit import TimeLimit

NAMES = ["base", "2 samples", "4 samples", "8 samples", "16 samples", "history 4", "history 16"]


@pytest.fixture
def measure(run: Any, box: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """A curve of three frames, each measured in a group of its own, at a clean commit."""
    monkeypatch.setattr(quality, "AT_ONCE", 1)
    monkeypatch.setattr(report_context, "commit", lambda: "0123456789ab")
    common = ["--scene", box, "--size", "24x16", "--quiet", "--pictures", 1, "--turns", 2]
    common += ["--light", "0,3,0,1.5", "--reference", 4, "--only", "samples;history"]
    return lambda out, *words: run("curve", *common, "--out", out, *words)


def read(path: Path) -> dict[str, Any]:
    record: dict[str, Any] = json.loads(path.read_text())
    return record


def names(record: dict[str, Any]) -> list[str]:
    return [row["name"] for row in record["variants"]]


def test_what_was_measured_is_kept_and_the_rest_follows(
    measure: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    out, whole, groups = tmp_path / "curve", tmp_path / "whole", 0
    take_turns = quality._take_turns

    def ended_in_the_second(*given: Any) -> Any:
        nonlocal groups
        groups += 1
        if groups == 2:
            raise SystemExit(143)
        return take_turns(*given)

    monkeypatch.setattr(quality, "_take_turns", ended_in_the_second)
    assert measure(out).exit_code == 143
    partial = read(out / PARTIAL)
    assert names(partial) == NAMES[:5] and partial["left_out"] == NAMES[5:]
    assert [path.name for path in out.iterdir()] == [PARTIAL]

    assert measure(out, "--resume").exit_code == 0
    assert groups == 4  # two more frames, and none again
    record = read(out / RECORD)
    assert names(record) == NAMES and record["left_out"] == []
    assert record["variants"][:5] == partial["variants"]
    assert record["earlier"] == [partial["context"]["date"]]
    assert not (out / PARTIAL).exists()

    assert measure(whole).exit_code == 0
    assert "earlier" not in read(whole / RECORD)
    with Image.open(out / "sheet.png") as one, Image.open(whole / "sheet.png") as other:
        assert one.size == other.size  # what was measured before is shown, too
    errors = [[row["relative_mse"] for row in read(p / RECORD)["variants"]] for p in (out, whole)]
    assert errors[0] == errors[1]  # of the same pictures against the same reference


def test_what_there_was_no_time_for_follows(
    measure: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(TimeLimit, "left", lambda self: 0.0)
        assert measure(tmp_path, "--resume").exit_code == 0  # nothing to go on with: a new one
    first = read(tmp_path / RECORD)
    assert first["left_out"] == NAMES[5:] and "earlier" not in first
    assert measure(tmp_path, "--resume").exit_code == 0
    whole = read(tmp_path / RECORD)
    assert names(whole) == NAMES
    monkeypatch.setattr(quality, "_take_turns", None)  # there is nothing left to time
    assert measure(tmp_path, "--resume").exit_code == 0
    assert read(tmp_path / RECORD)["variants"] == whole["variants"]


def test_what_was_measured_otherwise_is_refused(
    measure: Any, one_line: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(TimeLimit, "left", lambda self: 0.0)
    assert measure(tmp_path).exit_code == 0
    before = (tmp_path / RECORD).read_text()
    for words, said in (
        (["--turns", 3], "turns was 2, is 3; move it away to begin anew"),
        (["--size", "32x16"], "width was 24, is 32"),
        (["--history", 2], "frame.history was 0, is 2"),
        (["--reference", 5], "reference.samples was 4, is 5"),
        (["--leaf", 4], "context.leaf was 2, is 4"),
        (["--only", "samples"], "measured other curves"),
    ):
        assert said in one_line(measure(tmp_path, "--resume", *words), 2)
    for commit, said in (
        ("ba9876543210", "context.commit was 0123456789ab, is ba9876543210"),
        ("0123456789ab-modified", "--resume needs a commit that says what ran"),
        ("unknown", "--resume needs a commit that says what ran"),
    ):
        monkeypatch.setattr(report_context, "commit", lambda commit=commit: commit)
        assert said in one_line(measure(tmp_path, "--resume"), 2)
    assert (tmp_path / RECORD).read_text() == before
    (tmp_path / PARTIAL).write_text("{")
    assert "cannot be read as JSON" in one_line(measure(tmp_path, "--resume"), 2)
