"""`treeline bench trace`: Mrays/s of saved ray sets, by kernel variant."""

from pathlib import Path
from typing import Annotated

import typer

from engine.gpu.errors import CheckFailed, UserError
from treeline.cli.console import emit_json, note, print_table, steps
from treeline.cli.frame_flags import TraversalOption
from treeline.cli.options import Common, with_common

GPU_REPEATS, CPU_REPEATS = 50, 5
# An idle GPU needs about a second of work to reach its clock; a CPU only has to compile.
GPU_WARMUP_MS, CPU_WARMUP_MS = 1000.0, 0.0


@with_common
def trace(
    common: Common,
    rays: Annotated[list[Path], typer.Option(help="A ray set from `treeline rays`; repeatable.")],
    repeats: Annotated[
        int | None, typer.Option(min=1, help="Dispatches. Default 50; 5 on a CPU adapter.")
    ] = None,
    warmup: Annotated[
        float | None,
        typer.Option(min=0, help="Milliseconds of work before them. Default 1000; 0 on a CPU."),
    ] = None,
    traversal: TraversalOption = "fast",
) -> None:
    """Time the traversal kernel on ray sets and check every hit against the oracle's."""
    from bvh.raysets import load
    from treeline import structures
    from treeline.bench_trace import bench, trace_row
    from treeline.report_context import plain, structure_context
    from treeline.report_table import make_table, number, timing_label

    loaded = [(path.stem, load(path)) for path in rays]
    with steps(common.quiet) as progress:
        device = common.open_device()
        options = common.build_options()
        progress.begin("loading the scene")
        scene = common.load_scene()
        for path, (_, rayset) in zip(rays, loaded, strict=True):
            if rayset.scene_sha256 not in ("", scene.sha256):
                raise UserError(f"{path} was made from another scene file than {scene.name}")
        structure = structures.build_for(common, scene, progress, device=device, cached=False)
        if repeats is None:
            repeats = CPU_REPEATS if device.info.is_cpu else GPU_REPEATS
        if warmup is None:
            warmup = CPU_WARMUP_MS if device.info.is_cpu else GPU_WARMUP_MS
        results = bench(device, structure.bvh, loaded, repeats, warmup, progress, traversal)
    context = structure_context(scene, common.scene_name, device, options, common.group)
    context |= structure.context()
    rows = [plain(trace_row(result)) for result in results]
    emit_json(
        {
            "context": {**context, "repeats": repeats, "warmup_ms": warmup, "traversal": traversal},
            "benchmarks": rows,
        },
        common.json,
    )
    if not common.to_stdout:
        columns = (
            "ray set, variant",
            "rays",
            "ms",
            "Mrays/s",
            "quartiles",
            "different",
            "unexplained",
        )
        cells = [
            (
                row["name"].removeprefix("trace/"),
                number(row["rays"]),
                number(row["real_time"], 3),
                number(row["mrays_per_s"], 1),
                f"{number(row['mrays_per_s_low'], 1)} .. {number(row['mrays_per_s_high'], 1)}",
                number(row["different"]),
                number(row["unexplained"]),
            )
            for row in rows
        ]
        print_table(make_table(f"Traversal over {len(cells)} kernels", columns, cells))
        note(timing_label(context), quiet=common.quiet)
    failed = [result for result in results if not result.passed]
    if failed:
        worst = failed[0]
        reason = "; ".join(worst.failures) or f"{worst.unexplained:,} rays differ from the oracle"
        raise CheckFailed(f"{worst.name}: {reason}")
