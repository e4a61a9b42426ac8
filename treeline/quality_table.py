"""A record of `treeline curve` as a table, and its variants' pictures side by side."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Group
from rich.text import Text

from engine.gpu.errors import UserError
from treeline.contact_sheet import Panel, contact_sheet
from treeline.error_rows import precise
from treeline.image_error import F32, displayed
from treeline.quality import pareto
from treeline.quality_picture import shown_measures
from treeline.report_reuse import REUSED, kept_sentence
from treeline.report_table import make_table, number, timing_label

COLUMNS = (
    *("variant", "ms", "p5", "p95", "rays", "nodes"),
    *("relative MSE", "+-", "trimmed", "bias %", "FLIP"),
)
SHEET_COLUMNS = 4
SHEET_WIDTH = 256  # pixels a picture at least: those of a CPU adapter are smaller than their names


def read_record(path: Path) -> dict[str, Any]:
    """A curve.json. UserError for what is none."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise UserError(f"{path}: cannot be read as JSON ({error})") from error
    rows = record.get("variants") if isinstance(record, dict) else None
    if not rows or not all(isinstance(row, dict) and "relative_mse" in row for row in rows):
        raise UserError(f"{path}: no record of `treeline curve`, it has no variants")
    return dict(record)


def quality_lines(record: dict[str, Any]) -> list[tuple[str, ...]]:
    """One of COLUMNS a variant; a star where no other is better in both time and error."""
    rows = record["variants"]
    measure, _ = shown_measures(rows)[0]
    front = pareto([(row["ms"]["median"], row[measure]) for row in rows])
    return [
        (
            row["name"] + (" *" if index in front else ""),
            *(number(row["ms"][part]) for part in ("median", "p5", "p95")),
            number(sum(row["rays"].values())),
            number(sum(row["nodes"].values())),
            precise(row["relative_mse"]),
            precise(row["relative_mse_sem"]),
            precise(row.get("trimmed_mse")),  # records from before it lack it
            "-" if row["bias"] is None else f"{100 * row['bias']:+.2f}",
            precise(row["flip"]),
        )
        for index, row in enumerate(rows)
    ]


def quality_tables(record: dict[str, Any]) -> Group:
    """For the terminal."""
    context, reference = record["context"], record["reference"]
    head = (
        f"{context['scene']}, {record['width']}x{record['height']}, against "
        f"{reference['samples'] or '?'} samples ({reference['source']})\n{timing_label(context)}"
    )
    foot = (
        "* Pareto front: no other variant is faster and nearer to the reference by "
        f"{shown_measures(record['variants'])[0][1]}.\n"
        "Trimmed: relative MSE without the worst 0.1% of pixels."
    )
    table = make_table("Cost against error", COLUMNS, quality_lines(record))
    kept = [kept_sentence(row["name"], row[REUSED]) for row in record["variants"] if REUSED in row]
    return Group(Text(head), table, Text("\n".join([foot, *kept])))


def quality_sheet(
    shown: Sequence[tuple[dict[str, Any], F32]],
    reference: F32,
    largest: tuple[int, int],
    corner: tuple[int, int] | None,
    exposure: float,
) -> NDArray[np.uint8]:
    """The reference and the pictures of variants, each with its row of the record, cut to at most
    `largest` (width, height) from `corner` (x, y) on; None: from their middle. Pixels of small
    pictures are shown larger."""
    height, width = reference.shape[:2]
    across, down = min(width, largest[0]), min(height, largest[1])
    x, y = corner or ((width - across) // 2, (height - down) // 2)
    x, y = min(x, width - across), min(y, height - down)
    times = -(-SHEET_WIDTH // across)

    def cut(picture: F32) -> NDArray[np.uint8]:
        part = displayed(np.nan_to_num(picture[y : y + down, x : x + across]), exposure)
        pixels = np.rint(np.clip(part, 0, 1) * 255).astype(np.uint8)
        return pixels.repeat(times, axis=0).repeat(times, axis=1)

    panels = [Panel("reference", cut(reference))]
    for row, picture in shown:
        ms, error = number(row["ms"]["median"]), precise(row["relative_mse"])
        panels.append(Panel(f"{row['name']}\n{ms} ms, relative MSE {error}", cut(picture)))
    return contact_sheet(panels, SHEET_COLUMNS)
