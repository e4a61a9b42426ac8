"""`treeline bench build`: what builders cost on the GPU, and what their trees cost rays."""

from pathlib import Path
from typing import Annotated, Any

import typer

from treeline.cli.console import emit_json, note, print_table, steps
from treeline.cli.options import Common, with_common

GPU_REPEATS, CPU_REPEATS = 20, 3
# An idle GPU needs about a second of work to reach its clock; a CPU only has to compile.
GPU_WARMUP_MS, CPU_WARMUP_MS = 1000.0, 0.0
CASES = "lbvh/greedy,lbvh,ploc,sah,ploc+30,sah+30"


@with_common
def build(
    common: Common,
    scenes: Annotated[
        list[Path] | None, typer.Argument(help="Scene files. Default: that of --scene.")
    ] = None,
    cases: Annotated[
        str,
        typer.Option(
            metavar="CASE,CASE",
            help="Builders, such as ploc, ploc+30 with rounds of reinsertion, ploc+30/greedy with "
            "greedy collapse; cpu:sah for one on the CPU.",
        ),
    ] = CASES,
    rays: Annotated[
        list[Path] | None,
        typer.Option(help="A ray set of the (only) scene to count and time; repeatable."),
    ] = None,
    random: Annotated[
        list[int] | None,
        typer.Option(min=1, help="Instead of scenes: so many random triangles; repeatable."),
    ] = None,
    repeats: Annotated[
        int | None, typer.Option(min=1, help="Builds. Default 20; 3 on a CPU adapter.")
    ] = None,
    warmup: Annotated[
        float | None,
        typer.Option(min=0, help="Milliseconds of work before them. Default 1000; 0 on a CPU."),
    ] = None,
    samples: Annotated[
        int, typer.Option(min=0, help="Surface points that estimate EPO; 0 leaves it out.")
    ] = 20_000,
) -> None:
    """Time builds on the GPU, phase by phase; every result is validated."""
    from bvh.raysets import load
    from engine.gpu.errors import UserError
    from treeline.bench_build import (
        build_all,
        case_row,
        parse_case,
        random_triangles,
        trace_all,
    )
    from treeline.report_context import device_context, plain
    from treeline.report_table import timing_label
    from treeline.scenes import baked_triangles

    wanted = [parse_case(text, common.leaf, common.nodes) for text in cases.split(",")]
    raysets = [(path.stem, load(path)) for path in rays or []]
    if raysets and (random or len(scenes or []) > 1):
        raise UserError("rays belong to one scene: give one with --rays")
    device = common.open_device()
    if repeats is None:
        repeats = CPU_REPEATS if device.info.is_cpu else GPU_REPEATS
    if warmup is None:
        warmup = CPU_WARMUP_MS if device.info.is_cpu else GPU_WARMUP_MS
    context = device_context(device)
    found = []
    with steps(common.quiet) as progress:
        for item in random or scenes or [common.scene]:
            if isinstance(item, int):
                name, sha256, triangles = f"{item:,} random", None, random_triangles(item)
            else:
                scene = common.load_file(item)
                name, sha256 = "hall" if item is None else item.name, scene.sha256
                triangles = baked_triangles(scene)
                for label, rayset in raysets:
                    if rayset.scene_sha256 not in ("", sha256):
                        raise UserError(
                            f"the rays {label} were made from another scene than {name}"
                        )
            results = build_all(device, triangles, wanted, repeats, warmup, progress)
            traced = trace_all(device, results, raysets, repeats, warmup, progress)
            found.append(
                {
                    "scene": name,
                    "scene_sha256": sha256,
                    "given_triangles": len(triangles),
                    "builds": [case_row(result, samples) for result in results],
                    "rays": traced,
                }
            )
    emit_json(
        plain({"context": {**context, "repeats": repeats, "warmup_ms": warmup}, "scenes": found}),
        common.json,
    )
    if not common.to_stdout:
        for part in found:
            for table in _tables(part):
                print_table(table)
        note(timing_label(context), quiet=common.quiet)


def _tables(part: dict[str, Any]) -> list[Any]:
    """A scene's tables: builds, their phases, and rays if there are any."""
    from treeline.report_table import make_table, number

    builds = part["builds"]
    columns = ("case", "ms", "quartiles", "SAH", "EPO", "fill", "depth", "B/triangle")
    rows = [
        (
            row["case"],
            number(row["ms"]["median"], 3),
            f"{number(row['ms']['low'], 3)} .. {number(row['ms']['high'], 3)}",
            number(row["sah"]),
            number(row.get("epo")),
            number(row["fill"]),
            number(row["depth"]),
            number(row["bytes_per_triangle"], 1),
        )
        for row in builds
    ]
    tables = [make_table(f"{part['scene']}: {part['given_triangles']:,} triangles", columns, rows)]
    phases = list(dict.fromkeys(name for row in builds for name in row["phases_ms"]))
    times = [
        (name, *(number(row["phases_ms"].get(name, {}).get("median"), 3) for row in builds))
        for name in phases
    ]
    title = "Phases, ms, each a pass of its own"
    tables.append(make_table(title, ("phase", *(row["case"] for row in builds)), times))
    if part["rays"]:
        work = [
            (
                row["kind"],
                row["case"],
                number(row["nodes"]),
                number(row["triangle_tests"]),
                number(row.get("mrays_per_s", {}).get("median"), 0),
                number(row["different"]),
            )
            for row in part["rays"]
        ]
        names = ("rays", "case", "nodes", "triangle tests", "Mrays/s", "different")
        tables.append(make_table("Work a ray", names, work))
    return tables
