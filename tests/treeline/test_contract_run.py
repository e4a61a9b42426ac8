"""`treeline contract run` and `ledger`: counts, failure lines, exit codes, both backends."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]
OneLine = Callable[[Any, int], str]
NODE = (
    "bf800000 bf800000 40000000 3f800000 bf800000 40000000 00000000 3f800000 40000000 40000000 "
    "3f800000 40000000 00000000 40400000 40000000 04040404"
).split()
HIT = ["0xc1000000", "0xc0800000", "0xbf800000", "0xbf800000"]
VECTOR = {
    "name": "fan",
    "descriptor": ["0x00000100", "0x80000000", "0x00000100", "0x81000000"],
    "node_pointer": "0x0",
    "node_words": [f"0x{word}" for word in NODE],
    "ray": {
        "extent": "0x40c00000",
        "origin": ["0x0", "0x0", "0x0"],
        "direction": ["0x0", "0x0", "0x3f800000"],
        "inverse_direction": ["0x7f800000", "0x7f800000", "0x3f800000"],
    },
    "expected": {"kyty": HIT, "gpurt": HIT},
}
ENCODING = {
    "name": "root",
    "op": "pointer_pack",
    "input": {"byte_offset": 128, "type": 5},
    "output": "0x15",
}


def vector_file(folder: Path, *vectors: dict[str, Any]) -> Path:
    path = folder / "vectors.json"
    content = {"schema": 1, "intersection": list(vectors), "encoding": [ENCODING]}
    path.write_text(json.dumps(content))
    return path


@pytest.mark.parametrize("rules", ["chapter", "gpurt"])
@pytest.mark.parametrize("backend", ["cpu", "gpu"])
def test_all_pass(tmp_path: Path, run: Run, rules: str, backend: str) -> None:
    skipped = {**VECTOR, "name": "radv only", "expected": {"kyty": None, "gpurt": None}}
    path = vector_file(tmp_path, VECTOR, skipped)
    result = run("contract", "run", "--vectors", path, "--rules", rules, "--backend", backend, "-q")
    assert result.exit_code == 0
    assert result.stdout == "2 passed, 0 failed, 1 not applicable\n"


@pytest.mark.parametrize("backend", ["cpu", "gpu"])
def test_a_failure_is_a_line_and_exit_code_1(tmp_path: Path, run: Run, backend: str) -> None:
    wrong = {**VECTOR, "expected": {"kyty": [*HIT[:3], "0x0"], "gpurt": HIT}}
    result = run(
        "contract", "run", "--vectors", vector_file(tmp_path, wrong), "--backend", backend, "-q"
    )
    assert result.exit_code == 1
    assert result.stdout.splitlines() == [
        "FAIL fan: expected c1000000 c0800000 bf800000 00000000, "
        "got c1000000 c0800000 bf800000 bf800000",
        "1 passed, 1 failed, 0 not applicable",
    ]


def test_json(tmp_path: Path, run: Run) -> None:
    result = run("contract", "run", "--vectors", vector_file(tmp_path, VECTOR), "--json", "-")
    data = json.loads(result.stdout)
    assert (data["passed"], data["failed"], data["failures"]) == (2, 0, [])
    assert data["context"]["vectors"] == "vectors.json" and data["context"]["commit"]
    assert len(data["context"]["vectors_sha256"]) == 64


def test_bad_files(tmp_path: Path, run: Run, one_line: OneLine) -> None:
    path = tmp_path / "vectors.json"
    assert "vectors.json" in one_line(run("contract", "run", "--vectors", path), 2)
    path.write_text('{"schema": 9}')
    assert "schema 9" in one_line(run("contract", "run", "--vectors", path), 2)
    broken = {key: value for key, value in VECTOR.items() if key != "ray"}
    text = one_line(run("contract", "run", "--vectors", vector_file(tmp_path, broken)), 2)
    assert "fan" in text and "'ray'" in text


def test_the_ledger(run: Run) -> None:
    result = run("contract", "ledger")
    assert result.exit_code == 0
    for word in ("documented", "observed", "inferred", "unknown", "experiment:", "box.nan"):
        assert word in result.stdout
    unknown = run("contract", "ledger", "--label", "unknown", "--json", "-")
    rows = json.loads(unknown.stdout)
    assert rows and all(row["experiment"] for row in rows)
    differences = run("contract", "ledger", "--differences")
    assert "chapter rules" in differences.stdout and "gpurt rules" in differences.stdout
    boxes = run("contract", "ledger", "--about", "box.", "--rules", "gpurt")
    assert "box.sort_gpurt" in boxes.stdout and "box.sort_chapter" not in boxes.stdout
    assert run("contract", "ledger", "--markdown").stdout.startswith("# Contract ledger")
    statement = run("contract", "ledger", "--statement").stdout
    assert "0xE6" in statement and "Refused encodings" in statement


def test_the_support_statement_cites_records(tmp_path: Path) -> None:
    from treeline.contract_evidence import RECORDS, records, statement

    assert "the CPU definition only" in statement(tmp_path)
    record = {
        "context": {"adapter": "Some GPU", "backend": "Vulkan", "commit": "abc1234"},
        "benchmarks": [{"rules": "gpurt", "cases": 1000000, "differ": 0}, {"other": 1}],
    }
    (tmp_path / "contract-random.json").write_text(json.dumps(record))
    (tmp_path / "trace.json").write_text(json.dumps(record))
    ran = {"context": {**record["context"], "vectors": "v.json"}, "rules": "chapter",
           "passed": 50, "failed": 0, "not_applicable": 0}  # fmt: skip
    (tmp_path / "contract-vectors.json").write_text(json.dumps(ran))
    text = statement(tmp_path)
    assert "Adapters tested: Some GPU (Vulkan)." in text
    assert "1,000,000 random cases, rules gpurt, 0 differ" in text and text.count("abc1234") == 2
    assert "v.json, rules chapter: 50 passed, 0 failed" in text
    assert all("adapter" in record["context"] for record in records(RECORDS))
