"""Names of exported files, and files that go whole or not at all."""

import json

import numpy as np
import pytest

from engine.gpu.errors import UserError
from treeline.view import export


def test_names_count_on_from_the_highest(tmp_path):
    assert export.next_path(tmp_path / "new", "a.png").name == "treeline-001-a.png"
    (tmp_path / "treeline-009-window.png").touch()
    (tmp_path / "treeline-notes.txt").touch()
    assert export.next_path(tmp_path, "report.json") == tmp_path / "treeline-010-report.json"
    (tmp_path / "treeline-1204-window.png").touch()
    assert export.next_path(tmp_path, "a.png").name == "treeline-1205-a.png"


def test_a_picture_is_written_as_it_is(tmp_path, rng):
    from PIL import Image

    pixels = rng.integers(0, 256, (4, 6, 3), dtype=np.uint8)
    path = export.write_picture(tmp_path / "deep" / "p.png", pixels)
    assert np.array_equal(np.asarray(Image.open(path)), pixels)


def test_a_report_and_its_table(tmp_path):
    document = {
        "context": {"a": 1},
        "benchmarks": [{"name": "x", "run_name": "x", "nodes": 3, "run": {"nodes": "counted"}}],
    }
    path = export.write_report(tmp_path / "r.json", document)
    assert json.loads(path.read_text()) == document
    assert "nodes" in (tmp_path / "r.csv").read_text()


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="file"):
        export.write_picture(tmp_path / "file" / "p.png", np.zeros((1, 1, 3), np.uint8))


def test_nothing_to_capture_is_said():
    class Empty:
        frame = timed = None

    with pytest.raises(UserError, match="no valid frame"):
        export.write_capture("unused", Empty())
