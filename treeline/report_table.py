"""The report as tables on a terminal."""

from collections.abc import Sequence
from typing import Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from treeline.budgets import BUDGET_COLUMNS, budget_lines
from treeline.error_rows import ROW as ERROR_ROW
from treeline.error_rows import error_lines, error_sentence
from treeline.object_tables import (
    HIT_COLUMNS,
    TERMINAL_FIELDS,
    UPDATE_COLUMNS,
    hit_lines,
    object_lines,
    touched_sentence,
    update_lines,
)
from treeline.ray_measures import labels, terminal_fields
from treeline.report_found import FOUND_ROW, found_sentence
from treeline.report_reuse import pass_label, path_label, reused_sentence
from treeline.report_row import Row

FAR_OFF = 0.25  # of the measured time: the residual from which a cost model is not to be believed
ROWS_SHOWN = 10  # of a long table; report.json has them all


def timing_label(context: dict[str, Any]) -> str:
    """Whose time the report's milliseconds are, in one sentence."""
    if context["adapter_type"] is None:
        return "Times are this CPU's, by the wall clock."
    if context["adapter_type"] == "CPU":
        return (
            f"Times are a CPU's, through the software driver {context['adapter']} "
            f"({context['timing_source']}): they compare with each other, not with a GPU's."
        )
    if context["timing_source"] == "wall-clock":
        return (
            f"{context['adapter']} offers no timestamps: times are by the host's clock, each pass "
            "submitted and waited for on its own, and no GPU times."
        )
    return f"Times are {context['adapter']}'s, from {context['timing_source']}."


def find(report: dict[str, Any], prefix: str) -> list[dict[str, Any]]:
    """The rows whose name starts with `prefix`, in order."""
    return [row for row in report["benchmarks"] if row["name"].startswith(prefix)]


def number(value: Any, digits: int = 2) -> str:
    """A number for people: grouped digits, a dash where there is none. Small times keep
    three significant digits."""
    if value is None:
        return "-"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if isinstance(value, int):
        return f"{value:,}"
    small = digits >= 2 and 0 < abs(value) < 0.1
    return f"{value:.3g}" if small else f"{value:,.{digits}f}"


def make_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    """A table whose first column is text and whose others are numbers."""
    table = Table(title=title, title_justify="left", title_style="bold", header_style="bold")
    for index, column in enumerate(columns):
        table.add_column(column, justify="right" if index else "left", overflow="fold")
    for row in rows:
        table.add_row(*row)
    return table


def frame_table(report: dict[str, Any]) -> Table:
    total = find(report, "frame/total")[0]["real_time"]
    unit = "CPU ms" if report["context"]["adapter_type"] == "CPU" else "ms"
    rows = []
    for row in (*find(report, "pass/"), *find(report, "frame/")):
        share = None if not total or row["real_time"] is None else 100 * row["real_time"] / total
        name = pass_label(row)
        rows.append(
            (name, number(row["real_time"]), number(row["real_time_p95"]), number(share, 1))
        )
    return make_table("Passes", ("pass", f"{unit}, median", "p95", "% of frame"), rows)


# Field of a ray row -> what the terminal calls it.
RAY_LINES = {
    "rays": "rays",
    "real_time": "traverse ms, median",
    "mrays_per_s": "Mrays/s",
    **{field: labels()[field] for field in terminal_fields()},
}


def ray_table(report: dict[str, Any]) -> Table:
    """A column a ray type, so that it fits a narrow terminal."""
    types = find(report, "ray/")
    rows = [
        (label, *(number(row[field]) for row in types), types[0]["run"][field])
        for field, label in RAY_LINES.items()
        if types
    ]
    names = (row["name"].removeprefix("ray/") for row in types)
    return make_table("Rays", ("", *names, "run"), rows)


def budget_table(report: dict[str, Any]) -> Table:
    lines = budget_lines(find(report, "budget/"))
    rows = [tuple(number(value) for value in line) for line in lines]
    return make_table("Budgets", BUDGET_COLUMNS, rows)


def build_table(report: dict[str, Any]) -> Table:
    fields = ("triangles", "bytes", "nodes_fp16", "nodes_fp32", "fill", "depth", "sah")
    found = sorted(find(report, "build/"), key=lambda row: -row["bytes"])
    rows = [
        (
            row["name"].removeprefix("build/"),
            *(number(row.get(field)) for field in fields),
            number(row["real_time"], 0),
        )
        for row in found
    ]
    columns = ("BLAS", "triangles", "bytes", "FP16", "FP32", "fill", "depth", "SAH", "build ms")
    return make_table("Structures", columns, shortened(rows))


def object_table(report: dict[str, Any]) -> Table:
    lines = object_lines(find(report, "object/"), tuple(TERMINAL_FIELDS), ROWS_SHOWN)
    rows = [
        (name, ray_type, number(share, 1), *(number(count) for count in counts))
        for name, ray_type, share, *counts, _ in lines
    ]
    columns = ("object", "ray type", "% nodes", *TERMINAL_FIELDS.values())
    return make_table("Objects (counted run)", columns, rows)


def update_table(report: dict[str, Any]) -> Table:
    lines = update_lines(find(report, "update/"))
    rows = [tuple(number(value) for value in line) for line in lines]
    return make_table("Updates (of what deforms)", UPDATE_COLUMNS, shortened(rows))


def path_table(report: dict[str, Any]) -> Table:
    """The frame along a camera path, each pass's part of it, and the slowest frame."""
    unit = "CPU ms" if report["context"]["adapter_type"] == "CPU" else "ms"
    fields = ("real_time_p5", "real_time", "real_time_p95", "real_time_max")
    spreads = (*find(report, "path/total"), *find(report, "path/pass/"))
    rows = [(path_label(row), *(number(row[f]) for f in fields)) for row in spreads]
    slowest = max(find(report, "path/frame/"), key=lambda row: row["real_time"])
    title = (
        f"Along the camera path: {spreads[0]['iterations']} frames, the slowest at "
        f"{slowest['path_seconds']:.2f} s"
    )
    return make_table(title, ("pass", f"{unit}, p5", "median", "p95", "most"), rows)


def hit_table(report: dict[str, Any]) -> Table:
    """A line a class: its names share a column, so that it fits a narrow terminal."""
    rows = [
        (" ".join(line[:3]).rstrip(), *(number(value) for value in line[3:]))
        for line in hit_lines(find(report, "hit_table/"))
    ]
    title = f"Hit table ({report['context'].get('hit_table', 'coarse')} in this frame)"
    return make_table(title, ("class", *HIT_COLUMNS[3:]), rows)


def error_table(row: dict[str, Any]) -> Table:
    return make_table("Error", ("", "value", "standard error"), error_lines(row))


def shortened(rows: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """The first ROWS_SHOWN rows and how many more there are."""
    if len(rows) <= ROWS_SHOWN + 1:
        return rows
    more = f"and {len(rows) - ROWS_SHOWN} more"
    return [*rows[:ROWS_SHOWN], (more, *("" for _ in rows[0][1:]))]


def build_label(context: dict[str, Any]) -> str:
    """How the structures were made, in one line."""
    built = ""
    if "blas_built" in context:
        built = f"; {context['blas_built']} BLAS built on the {context['on'].upper()}"
        built += f", {context['blas_cached']} from the cache"
    opacity = context["opacity"]
    if "triangle_opacity" in context:
        counts = (f"{count:,} {name}" for name, count in context["triangle_opacity"].items())
        opacity += f" ({', '.join(counts)})"
    return (
        f"builder {context['builder']}, leaf {context['leaf']}, nodes {context['nodes']}, "
        f"collapse {context['collapse']}, optimize {context['optimize']}, "
        f"pairing {context['pairing']}, opacity {opacity}{built}"
    )


def report_tables(report: dict[str, Any]) -> Group:
    """Everything the terminal shows at the end of a report."""
    context = report["context"]
    head = (
        f"{context['scene']}: {context['triangles']:,} triangles, "
        f"{context['width']}x{context['height']}, {context['frames']} frames, "
        f"group {context['group']}\n{build_label(context)}\n{timing_label(context)}"
    )
    parts: list[Any] = [Text(head)]
    if not context["valid"]:
        parts.append(Text("INVALID: records were dropped; these numbers miss rays.", "bold red"))
    parts += [frame_table(report)]
    if reused_sentence(report):
        parts.append(Text(reused_sentence(report)))
    if find(report, "budget/"):
        parts.append(budget_table(report))
    parts += [ray_table(report)]
    parts += [Text(found_sentence(row)) for row in find(report, FOUND_ROW)]
    for row in find(report, ERROR_ROW):
        parts += [error_table(row), Text(error_sentence(row))]
    parts.append(object_table(report))
    if find(report, "update/"):
        parts.append(update_table(report))
    hits = find(report, "hit_table/")
    if hits:
        parts += [hit_table(report), Text(touched_sentence(hits))]
    parts.append(build_table(report))
    if find(report, "path/total"):
        parts.append(path_table(report))
    for model in find(report, "model/frame"):
        parts.append(Text(model_sentence(model)))
    return Group(*parts)


def model_sentence(model: Row) -> str:
    """What costs fitted at two other sizes say of this one, and where not to believe them."""
    text = (
        f"Cost model: {number(model['predicted'])} ms predicted, {number(model['measured'])} "
        f"measured, residual {number(model['residual'])}"
    )
    residual, measured = model["residual"], model["measured"]
    if residual is not None and measured is not None and abs(residual) > FAR_OFF * measured:
        text += ": two sizes are too few here; `treeline fit` says how far off its costs are"
    return text
