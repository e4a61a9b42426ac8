"""The tables of `treeline contract open`."""

from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from treeline.report_table import make_table


def dump_tables(data: dict[str, Any], faults_shown: int) -> Group:
    """What `treeline.contract_dump.summary` found."""
    descriptor = data["descriptor"]
    where = " to ".join(data["address_range"] or ["nothing"])
    parts: list[RenderableType] = [
        Text(
            f"{data['file']}: base {descriptor['base']}, {descriptor['size_bytes']:,} bytes, "
            f"growth {descriptor['growth']}, sort {descriptor['sort']}, return mode "
            f"{descriptor['return_mode']}, other bits {descriptor['other_bits']}"
        ),
        Text(f"root {data['root']}, {data['depth']} levels, addresses {where}"),
    ]
    if data["bounds"]:
        low, high = (" ".join(f"{value:.6g}" for value in side) for side in data["bounds"])
        parts.append(Text(f"bounds {low} to {high}"))
    kinds = [(name, f"{count:,}") for name, count in data["nodes"].items()]
    parts.append(make_table("Nodes reached", ("type", "count"), kinds))
    fields = [
        (row["node"], row["field"], str(row["byte"]), row["label"], row["ledger"], row["source"])
        for row in data["fields"]
    ]
    columns: tuple[str, ...] = ("node", "field", "byte", "label", "ledger", "source")
    parts.append(_left(make_table("Fields", columns, fields)))
    if data["unread_bits"]:
        rows = [
            (row["node"], str(row["byte"]), row["word"], f"{row['count']:,}")
            for row in data["unread_bits"]
        ]
        columns = ("node", "byte", "word", "count")
        parts.append(make_table("Kept, read by no test", columns, rows))
    for fault in data["faults"][:faults_shown]:
        at = "" if fault["address"] is None else f" at {fault['address']}"
        file = "" if fault["file_offset"] is None else f", file offset {fault['file_offset']}"
        parts.append(
            Text(
                f"fault: node {fault['node_pointer']}{at}{file}: {fault['message']}"
                f"{': ' * bool(fault['words'])}{' '.join(fault['words'])}"
            )
        )
    if data["fault_count"] > faults_shown:
        parts.append(Text(f"and {data['fault_count'] - faults_shown:,} more faults"))
    if not data["faults"]:
        parts.append(Text("no fault"))
    return Group(*parts)


def _left(table: Table) -> Table:
    for column in table.columns:
        column.justify = "left"
    return table
