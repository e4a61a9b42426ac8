"""`treeline inspect`: what a structure is made of, BLAS by BLAS, and its TLAS."""

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Group

from treeline.cli.console import emit_json, print_table, steps
from treeline.cli.options import Common, with_common


@with_common
def inspect(
    common: Common,
    bvh: Annotated[
        Path | None, typer.Option(help="A saved structure, instead of building the scene's.")
    ] = None,
) -> None:
    """Show nodes by kind, bytes, fill, depth, overlap and SAH of every BLAS, and the TLAS."""
    from bvh.describe import describe
    from treeline import structures
    from treeline.report import plain

    with steps(common.quiet) as progress:
        progress.begin("reading" if bvh else "loading and building")
        structure = (
            structures.read(bvh)
            if bvh
            else structures.build(common.load_scene(), common.build_options(), common.group)
        )
        progress.begin("describing")
        tables: dict[str, Any] = plain(describe(structure))
    emit_json(tables, common.json)
    if not common.to_stdout:
        print_table(as_tables(tables))


def as_tables(tables: dict[str, Any]) -> Group:
    """A table of single values a BLAS, then each one's histograms, then the TLAS."""
    raise NotImplementedError
