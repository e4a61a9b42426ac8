"""A record of `treeline curve` as a picture: error over milliseconds, a line an option."""

from pathlib import Path
from typing import Any

from engine.gpu.errors import UserError
from treeline.quality import pareto
from treeline.quality_variants import BASE
from treeline.report_table import timing_label

# Okabe and Ito's colours, which the colour-blind tell apart; markers tell lines of one colour.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
MARKERS = "osD^vP*Xhp"


def draw_curve(path: Path, record: dict[str, Any]) -> None:
    """Writes it as a PNG; log-log, the Pareto front as a grey step line. UserError where matplotlib
    is not installed."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise UserError(
            "the curve's picture needs matplotlib: pip install 'treeline[metrics]'"
        ) from error

    rows, context = record["variants"], record["context"]
    figure = Figure(figsize=(11, 7), dpi=110, layout="constrained")
    axes = figure.add_subplot(xscale="log", yscale="log")
    points = [(row["ms"]["median"], row["relative_mse"]) for row in rows]
    front = [points[i] for i in pareto(points)]
    axes.step(
        *zip(*front, strict=True), where="post", color="0.75", lw=5, zorder=1, label="Pareto front"
    )
    base = next(row for row in rows if row["name"] == BASE)
    curves: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        if row is not base:
            curves.setdefault(row["curve"], []).append(row)
    for number, (name, along) in enumerate(curves.items()):
        colour, marker = COLOURS[number % len(COLOURS)], MARKERS[number % len(MARKERS)]
        at = sorted([base, *along] if name == "samples" else along, key=_ms)
        axes.errorbar(
            [_ms(row) for row in at],
            [row["relative_mse"] for row in at],
            yerr=[row["relative_mse_sem"] or 0.0 for row in at],
            color=colour,
            marker=marker,
            ms=6,
            lw=1.2,
            capsize=2,
            ls="--" if "moving" in name else "-",
            label=name,
        )
        for row in along:
            if len(along) > 1:
                axes.annotate(
                    point_label(row),
                    (_ms(row), row["relative_mse"]),
                    textcoords="offset points",
                    xytext=(6, 5),
                    fontsize=8,
                    color=colour,
                )
    axes.plot(
        _ms(base),
        base["relative_mse"],
        marker="*",
        ms=17,
        color="white",
        markeredgecolor="black",
        ls="",
        label="the frame as asked for",
        zorder=5,
    )
    axes.set_xlabel(f"ms a picture. {timing_label(context)}", fontsize=8)
    axes.set_ylabel(f"relative MSE against {record['reference']['samples'] or '?'} samples")
    axes.set_title(
        f"{context['scene']}, {record['width']}x{record['height']}: what a millisecond buys "
        "(down and left is better)"
    )
    axes.grid(True, which="both", color="0.92")
    axes.legend(fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
    figure.savefig(path, format="png")


def point_label(row: dict[str, Any]) -> str:
    """What tells the points of a curve apart: the value of its option, or how many samples."""
    values = list(row["changes"].values())
    return str(values[0] if values else row["samples"])


def _ms(row: dict[str, Any]) -> float:
    return float(row["ms"]["median"])
