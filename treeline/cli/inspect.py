"""`treeline inspect`: what a structure is made of, BLAS by BLAS, and its TLAS."""

from typing import Any

from rich.console import Group
from rich.text import Text

from treeline.cli.console import emit_json, print_table, steps
from treeline.cli.options import Common, SavedOption, with_common


@with_common
def inspect(common: Common, bvh: SavedOption = None) -> None:
    """Show nodes by kind, bytes, fill, depth, overlap and SAH of every BLAS, and the TLAS."""
    from bvh.describe import describe
    from treeline import structures
    from treeline.report_context import plain

    with steps(common.quiet) as progress:
        structure = structures.read_or_build(bvh, common, progress)
        progress.begin("describing")
        tables: dict[str, Any] = plain(describe(structure))
    emit_json(tables, common.json)
    if not common.to_stdout:
        print_table(as_tables(tables))


# Field of a BLAS table -> its column.
COLUMNS = {
    "primitives": "triangles",
    "nodes_fp16": "FP16",
    "nodes_fp32": "FP32",
    "leaves": "blocks",
    "bytes": "bytes",
    "bytes_per_primitive": "bytes/tri",
    "fill": "fill",
    "depth": "depth",
    "sibling_overlap": "overlap",
    "sah": "SAH",
}
BARS = " ▁▂▃▄▅▆▇█"


def as_tables(tables: dict[str, Any]) -> Group:
    """One line a BLAS, its histograms, and the TLAS."""
    from treeline.report_table import make_table, number

    rows = [(t["name"], *(number(t[field]) for field in COLUMNS)) for t in tables["blas"]]
    blas = make_table("BLAS", ("name", *COLUMNS.values()), rows)
    histograms = make_table(
        "Histograms (slots used a node: 0 to 4; blocks by level; blocks by triangles: 0 to 4)",
        ("name", "slots", "levels", "blocks by level", "triangles"),
        [
            (
                t["name"],
                " ".join(number(n) for n in t["fill_histogram"]),
                number(t["depth"]),
                bars(t["depth_histogram"]),
                " ".join(number(n) for n in t["leaf_histogram"]),
            )
            for t in tables["blas"]
        ],
    )
    top = tables["tlas"]
    fields = {**COLUMNS, "primitives": "instances", "leaves": "leaves"}
    del fields["bytes_per_primitive"]
    tlas = make_table(
        "TLAS", ("name", *fields.values()), [("TLAS", *(number(top[f]) for f in fields))]
    )
    total = f"{tables['bytes']:,} bytes, and {tables['parent_bytes']:,} of parent links beside them"
    return Group(blas, histograms, tlas, Text(total))


def bars(counts: list[int]) -> str:
    """A histogram as one character a bin."""
    most = max(counts, default=0)
    # A bin with anything in it shows at least the lowest bar.
    return "".join(BARS[-(-8 * n // most) if most else 0] for n in counts)
