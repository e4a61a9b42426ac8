"""Records of `treeline curve` as one table for people: each option with its ms, rays and error.

`python -m benchmarks.quality_tables` prints it, of the records there are in benchmarks/records;
with names of variants (separated by semicolons) only their rows.
"""

import sys
from collections.abc import Sequence
from typing import Any

from benchmarks.readme_tables import RECORDS, Record, ms, read, short_adapter

# By scene: the record whose rays and errors are shown, then those that only add times.
NAMES = (
    ("curve-hall-h200", "curve-hall-llvmpipe"),
    ("curve-kitchen-frame-h200", "curve-kitchen-frame-llvmpipe"),
)


def quality_table(groups: Sequence[Sequence[Record]], only: Sequence[str] = ()) -> str:
    """Of records grouped by scene, the first of each group being the one whose rays and errors are
    shown; an empty text without records. Rows in the first record's order."""
    groups = [records for records in groups if records]
    if not groups:
        return ""
    head, units = [""], ["---"]
    for records in groups:
        scene = records[0]["context"]["scene"]
        head += [f"{scene}: ms, {short_adapter(r['context']['adapter'])}" for r in records]
        head += ["rays", "relative MSE", "bias"]
        units += ["---:"] * (len(records) + 3)
    lines = ["| " + " | ".join(head) + " |", "| " + " | ".join(units) + " |"]
    for name in (row["name"] for row in groups[0][0]["variants"]):
        if not only or name in only:
            cells = [cell for records in groups for cell in _cells(records, name)]
            lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n\n" + _stated(groups) + "\n"


def _cells(records: Sequence[Record], name: str) -> list[str]:
    found = [{row["name"]: row for row in record["variants"]}.get(name) for record in records]
    times = ["-" if row is None else ms(row["ms"]["median"]) for row in found]
    first = found[0]
    if first is None:
        return [*times, "-", "-", "-"]
    return [*times, f"{sum(first['rays'].values()):,}", _error(first), _bias(first)]


def _error(row: dict[str, Any]) -> str:
    return f"{row['relative_mse']:.3g}"


def _bias(row: dict[str, Any]) -> str:
    return "-" if row["bias"] is None else f"{100 * row['bias']:+.1f}%"


def _stated(groups: Sequence[Sequence[Record]]) -> str:
    """Where the numbers come from."""
    parts = []
    for records in groups:
        for record in records:
            context = record["context"]
            parts.append(
                f"{context['scene']}, {short_adapter(context['adapter'])}: "
                f"{record['width']}x{record['height']}, reference of "
                f"{record['reference']['samples']:,} samples, {context['timing_source']}, commit "
                f"{context['commit']}"
            )
    return "Rays, errors and bias are the first adapter's. " + "; ".join(parts) + "."


def committed() -> list[list[Record]]:
    """The records of NAMES that there are."""
    return [
        [read(name) for name in names if (RECORDS / f"{name}.json").exists()] for names in NAMES
    ]


if __name__ == "__main__":
    print(quality_table(committed(), [n.strip() for n in ";".join(sys.argv[1:]).split(";") if n]))
