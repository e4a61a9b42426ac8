"""`treeline bench kdtree`: the BVH beside a KD-tree over the same triangles."""

from typing import Annotated

import typer

from engine.gpu.errors import CheckFailed
from treeline.cli.console import emit_json, note, print_table, steps
from treeline.cli.options import Common, parse_size, with_common

# Rays through an edge may go either way: the BVH may hold a mesh's vertices in other blocks.
ALLOWED_DIFFERENCE = 1e-4


@with_common
def kdtree(
    common: Common,
    size: Annotated[str, typer.Option(metavar="WxH", help="Pixels of the view.")] = "320x180",
    seed: Annotated[int, typer.Option(min=0, help="Seed of the rays.")] = 0,
) -> None:
    """Compare the BVH with a KD-tree: build, update, bytes, duplication, work a ray. On the CPU."""
    from treeline.bench_kdtree import compare, context
    from treeline.report_context import plain
    from treeline.report_table import make_table, number

    width, height = parse_size(size)
    options = common.build_options()
    with steps(common.quiet) as progress:
        progress.begin("loading")
        scene = common.load_scene()
        result = compare(scene, options, width, height, seed, progress)
    emit_json(
        plain(
            {
                "context": context(scene, common.scene_name, options, width, height, seed),
                "triangles": result.triangles,
                "structures": result.rows,
                "rays": result.rays,
            }
        ),
        common.json,
    )
    if not common.to_stdout:
        columns = (
            "structure",
            "build ms",
            "update ms",
            "bytes a triangle",
            "references a triangle",
            "inner nodes",
            "leaves",
            "depth",
        )
        cells = [
            (
                row["structure"],
                number(row["build_ms"], 0),
                f"{number(row['update_ms'], 0)} ({row['update']})",
                number(row["bytes_per_triangle"], 1),
                number(row["duplication"], 2),
                number(row["inner_nodes"]),
                number(row["leaves"]),
                number(row["depth"]),
            )
            for row in result.rows
        ]
        print_table(make_table(f"{result.triangles:,} triangles", columns, cells))
        work = [
            (
                f"{row['kind']} ({row['rays']:,}, {100 * row['hit_share']:.0f}% hit)",
                row["structure"],
                number(row["inner_nodes"], 1),
                number(row["leaves"], 1),
                number(row["triangle_tests"], 1),
                number(row["different"]),
            )
            for row in result.rays
        ]
        names = ("rays", "structure", "inner nodes", "leaves", "triangle tests", "different hits")
        print_table(make_table("Work a ray", names, work))
        note("Times are this CPU's, through NumPy: they compare the two.", quiet=common.quiet)
    if result.different > ALLOWED_DIFFERENCE * sum(row["rays"] for row in result.rays):
        raise CheckFailed(f"{result.different:,} hits differ between the two structures")
