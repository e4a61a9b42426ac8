"""The refit's benchmarks at a small size: their records say what the issue asks of a refit."""

import json
from pathlib import Path

from benchmarks import refit_drift, refit_speed


def test_a_fox_refitted_traces_as_built_anew(shared_scenes: Path, tmp_path: Path) -> None:
    out = tmp_path / "drift.json"
    refit_drift.main(
        scene=shared_scenes / "Fox.glb",
        clip="Run",
        frames=3,
        rays=600,
        leaf=1,
        reinsertion=0,
        out=out,
    )
    record = json.loads(out.read_text(encoding="utf-8"))
    totals = record["totals"]
    assert totals["hits"] > 300
    assert {totals[k] for k in ("unequal", "rounded", "ties", "faults", "failed_traces")} == {0}
    assert len(record["drift"]["sah_refit"]) == 3 and record["sah_ratio"]["worst"] < 2


def test_speed_of_a_small_mesh(shared_scenes: Path, tmp_path: Path) -> None:
    out = tmp_path / "speed.json"
    refit_speed.main(scene=shared_scenes / "spot.obj", builder="lbvh", repeats=2, out=out)
    record = json.loads(out.read_text(encoding="utf-8"))
    assert record["words_unlike_the_twin"] == record["words_unlike_the_build"] == 0
    assert set(record["times"]) == {"whole_ms", "blocks", "pyramid", "nodes"}
