"""The support statement with its evidence: what committed records say ran, and where.

Reads `benchmarks/records/contract*.json`: a record's context names the adapter and the commit; its
rows with `rules`, `cases` and `differ` are comparisons of a backend with the CPU definition.
"""

import json
from pathlib import Path
from typing import Any

import benchmarks
from bvh.contract.ledger import support_statement

RECORDS = Path(benchmarks.__file__).parent / "records"


def records(folder: Path = RECORDS) -> list[dict[str, Any]]:
    """The contract's records in order of their names; none where the folder is not installed."""
    found = []
    for path in sorted(folder.glob("contract*.json")):
        record = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(record, dict) and "context" in record:
            found.append({"name": path.name, **record})
    return found


def statement(folder: Path = RECORDS) -> str:
    """Lines, each of them generated."""
    evidence, adapters = [], []
    for record in records(folder):
        context = record["context"]
        adapter = f"{context['adapter']} ({context.get('backend', '?')})"
        adapters.append(adapter)
        for row in record.get("benchmarks", []):
            if {"rules", "cases", "differ"} <= set(row):
                evidence.append(
                    f"{record['name']}: {row['cases']:,} random cases, rules {row['rules']}, "
                    f"{row['differ']} differ from the definition, on {adapter}, commit "
                    f"{context.get('commit', '?')}"
                )
    return support_statement(tuple(evidence), tuple(dict.fromkeys(adapters))) + "\n"
