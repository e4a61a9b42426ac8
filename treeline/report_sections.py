"""Parts of report.html that a report may lack, and the tables that all parts are made of."""

from collections.abc import Sequence
from html import escape
from typing import Any

from treeline.budgets import BUDGET_COLUMNS, budget_lines
from treeline.object_tables import (
    HIT_COLUMNS,
    UPDATE_COLUMNS,
    hit_lines,
    touched_sentence,
    update_lines,
)
from treeline.report_spreads import spread_table
from treeline.report_table import find, number

ROWS_SHOWN = 12  # of a long table; the rest is folded away


def html_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table; what does not fit into its first ROWS_SHOWN rows is folded away."""
    head = "".join(f"<th>{escape(c)}</th>" for c in columns)

    def table(some: Sequence[Sequence[str]]) -> str:
        body = "".join(
            "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in some
        )
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"

    if len(rows) <= ROWS_SHOWN + 3:
        return table(rows)
    rest = rows[ROWS_SHOWN:]
    folded = f"<details><summary>{len(rest)} more</summary>{table(rest)}</details>"
    return table(rows[:ROWS_SHOWN]) + folded


def path_section(report: dict[str, Any]) -> str:
    """What each frame of a camera path cost; nothing where there is none."""
    rows = find(report, "path/frame/")
    if not rows:
        return ""
    types = [field.removesuffix("_rays") for field in rows[0] if field.endswith("_rays")]
    fields = ["path_seconds", "real_time", "gbuffer_ms", "update_ms"]
    fields += [f"{name}_{what}" for name in types for what in ("rays", "ms", "nodes_per_ray")]
    labels = [field.replace("_", " ").replace("real time", "frame ms") for field in fields]
    body = [[number(row[field]) for field in fields] for row in rows]
    return f'<h2>Along the camera path</h2><div class="card">{html_table(labels, body)}</div>'


def budget_section(report: dict[str, Any]) -> str:
    """Nothing where nobody set a budget."""
    lines = budget_lines(find(report, "budget/"))
    if not lines:
        return ""
    rows = [tuple(number(value) for value in line) for line in lines]
    return f'<h2>Budgets</h2><div class="card">{html_table(BUDGET_COLUMNS, rows)}</div>\n'


def spread_section(report: dict[str, Any]) -> str:
    """Nothing where nobody counted."""
    table = spread_table(find(report, "spread/"))
    return f'<h2>How counts are spread</h2><div class="card">{table}</div>' if table else ""


def update_section(report: dict[str, Any]) -> str:
    """Nothing where nothing deforms."""
    found = find(report, "update/")
    if not found:
        return ""
    rows = [tuple(number(value) for value in line) for line in update_lines(found)]
    said = [text for row in found for text in row["decisions"]]
    log = "".join(f"<li>{escape(text)}</li>" for text in said)
    decisions = f"<details><summary>{len(said)} decisions</summary><ul>{log}</ul></details>"
    return (
        f'<h2>Updates</h2><div class="card">{html_table(UPDATE_COLUMNS, rows)}'
        f'{decisions if said else ""}<p class="soft">Visits are nodes each time that a ray '
        "enters. Several objects in one pass have no time of their own.</p></div>"
    )


def hit_section(report: dict[str, Any]) -> str:
    """Nothing where no hit was counted."""
    found = find(report, "hit_table/")
    if not found:
        return ""
    rows = [tuple(number(value) for value in line) for line in hit_lines(found)]
    grouping = report["context"].get("hit_table", "coarse")
    return (
        f'<h2>Hit table</h2><div class="card">{html_table(HIT_COLUMNS, rows)}<p class="soft">This '
        f"frame's is {escape(grouping)}. Coarse: a record a class, parameters once a material. "
        "Fine: a record an object, parameters in it. Of what any-hit rays hit only alpha tests "
        f"read, the same in both. {escape(touched_sentence(found))}</p></div>"
    )
