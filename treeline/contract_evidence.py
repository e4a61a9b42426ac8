"""The support statement with its evidence: what committed records say ran, and where.

Reads `benchmarks/records/contract*.json`: a record's context names the adapter and the commit. What
`treeline contract run --json` writes is one; so are records whose rows have `rules`, `cases` and
`differ`, comparisons of a backend with the CPU definition.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

import benchmarks
from bvh.contract.ledger import support_statement
from engine.gpu.device import Device
from treeline.version import commit, version

RECORDS = Path(benchmarks.__file__).parent / "records"


def records(folder: Path = RECORDS) -> list[dict[str, Any]]:
    """The contract's records in order of their names; none where the folder is not installed."""
    found = []
    for path in sorted(folder.glob("contract*.json")):
        record = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(record, dict) and "context" in record:
            found.append({"name": path.name, **record})
    return found


def run_context(vectors: Path, device: Device | None) -> dict[str, Any]:
    """Which file ran, by which version, and where (no device: the CPU definition)."""
    context: dict[str, Any] = {
        "version": version(),
        "commit": commit(),
        "vectors": vectors.name,
        "vectors_sha256": hashlib.sha256(vectors.read_bytes()).hexdigest(),
        "adapter": "CPU definition",
        "backend": "NumPy",
        "driver": None,
    }
    if device is not None:
        info = device.info
        context |= {"adapter": info.adapter, "backend": info.backend, "driver": info.driver}
    return context


def statement(folder: Path = RECORDS) -> str:
    """Lines, each of them generated."""
    evidence, adapters = [], []
    for record in records(folder):
        context = record["context"]
        adapter = f"{context['adapter']} ({context.get('backend', '?')})"
        adapters.append(adapter)
        if "passed" in record:
            evidence.append(
                f"{record['name']}: {context['vectors']}, rules {record['rules']}: "
                f"{record['passed']} passed, {record['failed']} failed, "
                f"{record['not_applicable']} not applicable, on {adapter}, commit "
                f"{context['commit']}"
            )
        for row in record.get("benchmarks", []):
            if {"rules", "cases", "differ"} <= set(row):
                evidence.append(
                    f"{record['name']}: {row['cases']:,} random cases, rules {row['rules']}, "
                    f"{row['differ']} differ from the definition, on {adapter}, commit "
                    f"{context.get('commit', '?')}"
                )
    return support_statement(tuple(evidence), tuple(dict.fromkeys(adapters))) + "\n"
