"""The pick's benchmark at a small size."""

from pathlib import Path

import pytest

from benchmarks import pick_latency


def test_a_fox_is_picked(shared_scenes: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pick_latency.main(scene=shared_scenes / "Fox.glb", width=48, height=27, picks=3)
    lines = capsys.readouterr().out.splitlines()
    assert "at 48x27" in lines[0]
    assert [line.split(":")[0].strip() for line in lines[1:]] == ["rays", "pick", "steps", "verify"]
