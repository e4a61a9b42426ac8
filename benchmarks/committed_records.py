"""The records that are committed, read back for tables."""

import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RECORDS = ROOT / "benchmarks" / "records"

Record = dict[str, Any]


def read(name: str) -> Record:
    """A record of benchmarks/records by its stem."""
    record: Record = json.loads((RECORDS / f"{name}.json").read_text(encoding="utf-8"))
    return record


def ms(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.2f}"


def short_adapter(name: str) -> str:
    return "llvmpipe" if name.startswith("llvmpipe") else name
