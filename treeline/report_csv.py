"""report.csv: the report's numbers one a line, so that any tool can filter and pivot them.

Columns: benchmark, field, value, unit, run (which run gave the number).
"""

import csv
import io
from typing import Any

COLUMNS = ("benchmark", "field", "value", "unit", "run")


def report_csv(report: dict[str, Any]) -> str:
    """The CSV text, with a header line; a number that does not exist is an empty value."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in report["benchmarks"]:
        for field, run in row["run"].items():
            value = row[field]
            unit = unit_of(field)
            writer.writerow((row["name"], field, "" if value is None else value, unit, run))
    return buffer.getvalue()


def unit_of(field: str) -> str:
    """A field's unit, from its name."""
    if field in ("real_time", "real_time_p95", "cpu_time", "predicted", "measured", "residual"):
        return "ms"
    if field.endswith(("_ms", "_predicted", "_cost")) or "_ms_" in field:
        return "ms"
    if field.endswith(("_ns_per_ray", "_ns_per_hit", "_ns_per_miss")):
        return "ns"
    if field in ("bytes", "bytes_read") or field.endswith("_bytes"):
        return "bytes"
    return "Mrays/s" if field == "mrays_per_s" else ""
