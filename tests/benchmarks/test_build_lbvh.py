import json
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.build_lbvh import CODES, baked_triangles, main
from engine.scene.load import load_scene


def test_record_has_every_code_and_phase(tmp_path: Path) -> None:
    out = tmp_path / "record.json"
    main(count=3000, repeats=2, warmup_ms=0.0, out=out)
    record = json.loads(out.read_text())
    assert record["triangles"] == 3000 and set(record["rows"]) == set(CODES)
    assert record["context"]["adapter"]
    for row in record["rows"].values():
        build = ["morton", "sort", "hierarchy", "bounds"]
        back = ["levels", "subtrees", "collapse best", "collapse greedy"]
        assert list(row["phases_ms"]) == build + back
        assert all(0 < p["min"] <= p["median"] <= p["max"] for p in row["phases_ms"].values())
        assert row["whole_ms"]["median"] > 0 and row["kept"] == 3000
        assert 12 <= row["depth"] <= 48 and 2.5 < row["fill"]["greedy"] < row["fill"]["best"] <= 4
        assert row["sah_wide"]["best"] < row["sah_wide"]["greedy"]


def test_baked_triangles_are_the_scenes(shared_scenes: Any) -> None:
    scene = load_scene(shared_scenes / "CesiumMilkTruck.glb")
    triangles = baked_triangles(scene)
    assert len(triangles) == scene.triangle_count
    low, high = scene.bounds()
    assert np.allclose(triangles.min(axis=(0, 1)), low, atol=1e-5)
    assert np.allclose(triangles.max(axis=(0, 1)), high, atol=1e-5)
