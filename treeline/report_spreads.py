"""How counts are spread over a ray type's rays: rows of the report, and the page's table."""

from collections.abc import Sequence
from html import escape
from typing import Any

from passes.ray_spread import PERCENTS, octave_bounds
from passes.slot_counts import COUNT_LABELS
from treeline.measure import Measurement
from treeline.report_row import Row, add, make_row

BAR_WIDTH, BAR_HEIGHT = 9, 26  # of an octave, in pixels of the page
BAR_COLOUR = "#4e79a7"
PREFIX = "rays_"  # of fields that count rays


def spread_rows(measurement: Measurement) -> list[Row]:
    """How each count is spread over a type's rays (passes/ray_spread.py), one row a count: `rays_4`
    rays have 4 to 7 of it. And how many rays are of which bounce."""
    rows = []
    for ray_type, found in measurement.main.spreads.items():
        for name, spread in found.counts.items():
            row = make_row(f"spread/{ray_type}/{name}", 1, 0.0)
            row["run"] = {}
            named = zip(PERCENTS, spread.percentiles, strict=True)
            percentiles = {f"p{percent}": value for percent, value in named}
            add(row, "counted", mean=spread.mean, **percentiles, max=spread.largest)
            octaves = enumerate(spread.octaves)
            add(row, "counted", **{f"rays_{octave_bounds(i)[0]}": count for i, count in octaves})
            rows.append(row)
        row = make_row(f"spread/{ray_type}/bounce", 1, 0.0)
        row["run"] = {}
        bounces = enumerate(found.bounces, 1)
        add(row, "counted", mean=found.mean_bounce, max=len(found.bounces) if found.rays else None)
        add(row, "counted", **{f"rays_{bounce}": count for bounce, count in bounces})
        rows.append(row)
    return rows


def histogram(row: Row) -> dict[int, int]:
    """Least count of an octave (or the bounce) -> rays, of a spread's row."""
    found = {field: row[field] for field in row["run"] if field.startswith(PREFIX)}
    return {int(field.removeprefix(PREFIX)): count for field, count in found.items()}


def spread_table(rows: Sequence[Row]) -> str:
    """HTML: a line a count, its percentiles and its histogram as bars; empty without rows."""
    percentiles = [f"p{percent}" for percent in PERCENTS]
    columns = ("ray type", "count of a ray", "mean", *percentiles, "max", "rays by count")
    lines = [
        "".join(f"<td>{escape(cell)}</td>" for cell in _cells(row, percentiles))
        + f"<td>{_bars(histogram(row))}</td>"
        for row in rows
        if not row["name"].endswith("/bounce")
    ]
    if not lines:
        return ""
    head = "".join(f"<th>{escape(column)}</th>" for column in columns)
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return (
        f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        f'<p class="soft">Bars stand for rays with 0, 1, 2 to 3, 4 to 7 and so on of a count, each '
        f"bar twice as wide a range as the one before. {escape(bounce_sentence(rows))}</p>"
    )


def bounce_sentence(rows: Sequence[Row]) -> str:
    """How many rays are of which bounce."""
    said = []
    for row in rows:
        if row["name"].endswith("/bounce") and row["mean"] is not None:
            parts = [f"{count:,} of bounce {bounce}" for bounce, count in histogram(row).items()]
            said.append(f"{row['name'].split('/')[1]}: {', '.join(parts)}.")
    return " ".join(said)


def _cells(row: Row, percentiles: Sequence[str]) -> list[str]:
    _, ray_type, count = row["name"].split("/")
    numbers: list[Any] = [row["mean"], *(row[name] for name in percentiles), row["max"]]
    label = COUNT_LABELS[count][0]
    return [ray_type, label, *("-" if n is None else f"{n:,.1f}" for n in numbers)]


def _bars(rays: dict[int, int]) -> str:
    """Inline SVG, one bar an octave."""
    most = max(rays.values(), default=0) or 1
    bars = []
    for place, (low, count) in enumerate(rays.items()):
        height = BAR_HEIGHT * count / most
        text = f"from {low}: {count:,} rays"
        bars.append(
            f'<rect x="{place * BAR_WIDTH}" y="{BAR_HEIGHT - height:.1f}" '
            f'width="{BAR_WIDTH - 1}" height="{height:.1f}" fill="{BAR_COLOUR}">'
            f"<title>{text}</title></rect>"
        )
    width = BAR_WIDTH * len(rays)
    return f'<svg width="{width}" height="{BAR_HEIGHT}" role="img">{"".join(bars)}</svg>'
