import json
from pathlib import Path

from benchmarks.build_instances import main


def test_record_has_every_phase_and_no_fault(tmp_path: Path) -> None:
    out = tmp_path / "record.json"
    main(meshes=6, triangles=50, instances=[5, 700], repeats=2, warmup_ms=0.0, out=out)
    record = json.loads(out.read_text())
    small = record["small_blas"]
    assert list(small["phases_ms"]) == ["blocks", "trees", "encode"]
    assert small["single_ms"]["median"] > 0 and 20 < small["bytes_a_triangle"] < 200
    assert list(record["tlas"]) == ["5", "700"]
    for count, row in record["tlas"].items():
        assert list(row["phases_ms"]) == ["set-up", "order", "trees", "encode"]
        assert row["kept"] == int(count) and row["faults"] == 0
        assert row["whole_ms"]["median"] > 0
