"""`treeline compare A.json B.json`: what became slower, if that is both large and certain."""

from pathlib import Path
from typing import Annotated

import typer

from engine.gpu.errors import CheckFailed, UserError
from treeline.cli.console import emit_json, note, print_table
from treeline.cli.options import Common, with_common


@with_common
def compare(
    common: Common,
    a: Annotated[Path, typer.Argument(help="Before: a report.json, its folder, or a record.")],
    b: Annotated[Path, typer.Argument(help="After.")],
    threshold: Annotated[
        str, typer.Option(metavar="PERCENT", help="What a row may become slower by.")
    ] = "5%",
    floor: Annotated[
        str,
        typer.Option(metavar="PERCENT", help="Rows that take less of the frame are not judged."),
    ] = "1%",
    allow: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY", help="A context's key that may differ, or all; repeatable."),
    ] = None,
) -> None:
    """Compare the repetitions of two reports or records; exit code 1 names what became slower.

    A regression is large (the interval of its change reaches the threshold) and certain (the
    interval is above half of it, and the ranks of the repetitions say so). Files of different
    scenes, adapters or settings are refused without --allow; an option that one of them does not
    know yet had its default there. The scene options are not used.
    """
    from treeline import compare as comparing
    from treeline.report_table import make_table, number

    before, after = comparing.read_series(a), comparing.read_series(b)
    for text in comparing.check_settings(before, after, allow or ()):
        note(text, quiet=common.quiet)
    found = comparing.compare(
        before, after, percentage(threshold, "--threshold"), percentage(floor, "--floor")
    )
    emit_json(found.facts(), common.json)
    if not common.to_stdout:
        cells = [
            (
                row.name,
                number(row.a_ms, 3),
                number(row.b_ms, 3),
                f"{100 * (row.change.ratio - 1):+.1f}",
                f"{100 * (row.change.low - 1):+.1f} .. {100 * (row.change.high - 1):+.1f}",
                f"{min(row.change.p_slower, row.change.p_faster):.2g}",
                row.verdict,
            )
            for row in found.rows
        ]
        columns = ("row", "A, ms", "B, ms", "change, %", "interval, %", "p by ranks", "verdict")
        print_table(make_table(f"{a} and {b}", columns, cells))
        for file, name in found.only:
            print(f"only in {a if file == 'a' else b}: {name}")
    if few := comparing.too_few(found):
        fewest = comparing.fewest_samples(found.limit)
        note(
            f"{few[0].samples[0]} and {few[0].samples[1]} repetitions cannot be certain of any of "
            f"{len(few)} rows; each file needs {fewest} (report --frames {fewest})",
            quiet=common.quiet,
        )
    if slower := found.named("slower"):
        worst = slower[0]
        more = f", and {len(slower) - 1} more rows" if len(slower) > 1 else ""
        raise CheckFailed(
            f"{worst.name} became {100 * (worst.change.ratio - 1):.1f}% slower "
            f"({worst.a_ms:.3f} to {worst.b_ms:.3f} ms){more}"
        )


def percentage(text: str, option: str) -> float:
    """ "5%" as 0.05. UserError for anything else, and beyond 0 to 1000%."""
    try:
        value = float(text.removesuffix("%"))
    except ValueError:
        value = -1.0
    if not text.endswith("%") or not 0 < value <= 1000:
        raise UserError(f"{option} is a percentage such as 5%, not '{text}'")
    return value / 100
