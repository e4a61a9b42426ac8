"""A record of `treeline curve` as a picture: error over milliseconds, a line an option.

Two rows: the relative MSE without its outliers, and FLIP. Two columns: everything, and what lies
near the frame as asked for, where most options are.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.gpu.errors import UserError
from treeline.quality import pareto
from treeline.quality_variants import BASE
from treeline.report_table import timing_label

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Okabe and Ito's colours, which the colour-blind tell apart; markers tell lines of one colour.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
MARKERS = "osD^vP*Xhp"
NEAR = 1.7  # times what the frame as asked for takes: the end of the right column
# Records of before it have no trimmed error; where FLIP's library was not there, no row is drawn.
MEASURES = (
    ("trimmed_mse", "relative MSE without the worst 0.1% of pixels"),
    ("relative_mse", "relative MSE"),
    ("flip", "FLIP"),
)

Row = dict[str, Any]


def draw_curve(path: Path, record: dict[str, Any]) -> None:
    """Writes it as a PNG; Pareto fronts as grey step lines. UserError where matplotlib is
    not installed."""
    try:
        from matplotlib.figure import Figure
        from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter
    except ImportError as error:
        raise UserError(
            "the curve's picture needs matplotlib: pip install 'treeline[metrics]'"
        ) from error

    rows, context = record["variants"], record["context"]
    measures = shown_measures(rows)
    figure = Figure(figsize=(15, 5.2 * len(measures)), dpi=100, layout="constrained")
    grid = figure.subplots(len(measures), 2, squeeze=False, width_ratios=(2, 3))
    close = [row for row in rows if _ms(row) <= NEAR * _ms(_base(rows))]
    styles = _styles(rows)
    for (whole, near), (measure, label) in zip(grid, measures, strict=True):
        for axes in (whole, near):
            # What is all the same has no decades.
            differs = len({row[measure] for row in rows}) > 1
            axes.set_yscale("log" if differs and measure != "flip" else "linear")
            axes.grid(True, which="both", color="0.92")
        whole.set_ylabel(label)
        whole.set_xscale("log")
        whole.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        whole.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        whole.xaxis.set_minor_formatter(NullFormatter())
        _draw(whole, rows, measure, styles, named=["samples"])
        _draw(near, close, measure, styles, named=[row["curve"] for row in close])
    samples = record["reference"]["samples"] or "?"
    figure.suptitle(
        f"{context['scene']}, {record['width']}x{record['height']}, against {samples} samples: "
        "what a millisecond buys (down and left is better; on the right, near the frame as asked "
        "for)",
        fontsize=12,
    )
    figure.supxlabel(f"ms a picture. {timing_label(context)}", fontsize=9)
    handles, labels = grid[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, fontsize=9, loc="outside right center")
    figure.savefig(path, format="png")


def shown_measures(rows: list[Row]) -> list[tuple[str, str]]:
    """Of MEASURES those that every row has, the relative MSE only in place of the trimmed one."""
    there = [m for m in MEASURES if all(row.get(m[0]) is not None for row in rows)]
    return [m for m in there if m is not MEASURES[1] or MEASURES[0] not in there]


def _styles(rows: list[Row]) -> dict[str, dict[str, Any]]:
    """Of each curve, the same in every part of the picture."""
    curves = dict.fromkeys(row["curve"] for row in rows if row["name"] != BASE)
    return {
        name: {
            "color": COLOURS[number % len(COLOURS)],
            "marker": MARKERS[number % len(MARKERS)],
            "ls": "--" if "moving" in name else "-",
        }
        for number, name in enumerate(curves)
    }


def _draw(
    axes: "Axes",
    rows: list[Row],
    measure: str,
    styles: dict[str, dict[str, Any]],
    named: list[str],
) -> None:
    """Every curve of the rows; points of those that are `named` have labels."""
    points = [(_ms(row), row[measure]) for row in rows]
    front = [points[i] for i in pareto(points)]
    axes.step(
        *zip(*front, strict=True), where="post", color="0.8", lw=6, zorder=1, label="Pareto front"
    )
    base = _base(rows)
    for name, style in styles.items():
        along = [row for row in rows if row["curve"] == name and row is not base]
        at = sorted([base, *along] if name == "samples" else along, key=_ms)
        if not along:
            continue
        axes.errorbar(
            [_ms(row) for row in at],
            [row[measure] for row in at],
            yerr=[row.get(f"{measure}_sem") or 0.0 for row in at],
            ms=6,
            lw=1.2,
            capsize=2,
            label=name,
            **style,
        )
        if name in named and len(along) > 1:
            others = [row for row in along if not same_point(row, base)]
            _name_points(axes, others, measure, style["color"])
    axes.plot(
        _ms(base),
        base[measure],
        marker="*",
        ms=17,
        color="white",
        markeredgecolor="black",
        ls="",
        label="the frame as asked for",
        zorder=5,
    )


def _name_points(axes: "Axes", rows: list[Row], measure: str, colour: str) -> None:
    """Labels above and below by turns, as values of one option are often close to each other."""
    for number, row in enumerate(sorted(rows, key=_ms)):
        axes.annotate(
            point_label(row),
            (_ms(row), row[measure]),
            textcoords="offset points",
            xytext=(5, 5) if number % 2 == 0 else (5, -11),
            fontsize=8,
            color=colour,
        )


def same_point(row: Row, base: Row) -> bool:
    """Whether the option has the value there that the frame as asked for has: the same times."""
    return bool(row["ms"] == base["ms"])


def point_label(row: Row) -> str:
    """What tells the points of a curve apart: the value of its option, or how many samples."""
    values = list(row["changes"].values())
    return str(values[0] if values else row["samples"])


def _base(rows: list[Row]) -> Row:
    return next(row for row in rows if row["name"] == BASE)


def _ms(row: Row) -> float:
    return float(row["ms"]["median"])
