"""`treeline build`: a scene's structures: how long they took, how good and how large they are, and
the file."""

from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Group
from rich.text import Text

from engine.gpu.errors import LimitError, UserError
from treeline.cli.console import emit_json, note, print_table, steps
from treeline.cli.options import Common, with_common
from treeline.outputs import whole_file


@with_common
def build(
    common: Common,
    out: Annotated[Path | None, typer.Option(help="The .npz to write; none without.")] = None,
    compact: Annotated[
        bool, typer.Option("--compact", help="Copy each BLAS to a buffer of its size on the GPU.")
    ] = False,
    samples: Annotated[
        int, typer.Option(min=0, help="Surface points that estimate EPO; 0 leaves it out.")
    ] = 20_000,
) -> None:
    """Build the scene's structures: phases, quality, bytes; save them with --out."""
    from bvh.container import save
    from treeline.report_context import host_context, options_context, plain
    from treeline.report_table import timing_label
    from treeline.scene_build import BuildLog, build_rows, total_row

    options = common.build_options()
    if out is not None:
        check_npz(out)
    with whole_file(out) if out else nullcontext() as path, steps(common.quiet) as progress:
        device = common.build_device()
        log = BuildLog(device, compact, progress)  # refuses what cannot be, before the scene loads
        progress.begin("loading the scene")
        scene = common.load_scene()
        cache = common.blas_cache(by_default=False)
        try:
            prepared = log.prepare(scene, options, common.group, cache)
        except LimitError:
            if device is None or compact or common.on != "auto":
                raise
            device, log = None, BuildLog(None, compact, progress)
            prepared = log.prepare(scene, options, common.group, cache)
        bvh = prepared.bvh
        rows = build_rows(bvh, log, samples, progress)
        if path is not None:
            progress.begin("writing")
            save(path, bvh, {"scene": common.scene_name, "scene_sha256": scene.sha256})
    result = plain(
        {
            "context": {
                **host_context(device),
                "scene": common.scene_name,
                "scene_sha256": scene.sha256,
                "triangles": scene.triangle_count,
                **options_context(options),
                "group": common.group,
                "on": "cpu" if device is None else "gpu",
                "epo_samples": samples,
            },
            "out": None if out is None else str(out),
            "instances": len(bvh.instances),
            "bytes": int(bvh.words.nbytes),
            "parent_bytes": int(bvh.parents.nbytes),
            "tlas_bytes": int(bvh.tlas_words.nbytes),
            "triangle_opacity": prepared.opacity_counts(),
            "blas": rows,
            "total": total_row(rows),
        }
    )
    emit_json(result, common.json)
    if not common.to_stdout:
        print_table(as_tables(result))
        if out is not None:
            print(out)
        note(timing_label(result["context"]), quiet=common.quiet)


def as_tables(result: dict[str, Any]) -> Group:
    """A line a BLAS, largest first, the phases of all together, and the rest in words."""
    from treeline.report_table import build_label, make_table, number, shortened

    context, total = result["context"], result["total"]
    columns = ("BLAS", "triangles", "ms", "SAH", "EPO", "overlap", "fill", "depth", "B/triangle")
    rows: list[tuple[str, ...]] = [
        (
            row["name"],
            number(row["triangles"]),
            "cached" if row["cached"] else number(row["build_ms"], 1),
            number(row["sah"]),
            _with_error(row),
            number(row.get("sibling_overlap")),
            number(row["fill"]),
            number(row["depth"]),
            number(row["bytes_per_triangle"], 1),
        )
        for row in sorted(result["blas"], key=lambda row: -row["triangles"])
    ]
    rows = shortened(rows)
    if len(result["blas"]) > 1:
        sums = ("-", "-", "-", "-", "-", number(total["bytes_per_triangle"], 1))
        rows.append(("all", number(total["triangles"]), number(total["build_ms"], 1), *sums))
    parts: list[Any] = [
        Text(f"{context['scene']}: {build_label(context)}"),
        make_table("Structures", columns, rows),
    ]
    if total["phases_ms"]:
        whole = sum(total["phases_ms"].values()) or 1.0
        times = [
            (name, number(ms, 3), number(100 * ms / whole, 1))
            for name, ms in total["phases_ms"].items()
        ]
        parts.append(make_table(f"Phases, {context['timing_source']}", ("", "ms", "%"), times))
    return Group(*parts, Text("\n".join(_facts(result))))


def _with_error(row: dict[str, Any]) -> str:
    from treeline.report_table import number

    if "epo" not in row:
        return "-"
    return f"{number(row['epo'])} ± {number(row['epo_standard_error'])}"


def _facts(result: dict[str, Any]) -> list[str]:
    """Totals in words."""
    total, opacity = result["total"], result["triangle_opacity"]
    lines = [
        f"nodes: {total['nodes_fp16']:,} FP16, {total['nodes_fp32']:,} FP32",
        f"blocks: {total['blocks']:,}, of them {total['pairs']:,} pairs, {total['fans']:,} fans; "
        f"{total['triangles_per_block']:.2f} triangles a block",
        f"dropped triangles: {total['dropped_degenerate']:,} degenerate, "
        f"{total['dropped_nonfinite']:,} not finite",
        f"opacity: {opacity['opaque']:,} triangles opaque, {opacity['mixed']:,} tested for holes, "
        f"{opacity['clear']:,} all hole and left out",
        f"bytes: {result['bytes']:,} with a TLAS of {result['instances']:,} instances, and "
        f"{result['parent_bytes']:,} of parent links beside them",
    ]
    if total["compaction"]:
        tight = total["compaction"]
        lines.append(
            f"compaction: {tight['before_bytes']:,} bytes before, {tight['after_bytes']:,} after, "
            f"{tight['peak_bytes']:,} at the peak, {tight['ms']:.3f} ms"
        )
    return lines


def check_npz(path: Path) -> None:
    """Raises UserError for a name that NumPy would change."""
    if path.suffix != ".npz":
        raise UserError(f"the file is written as .npz, not {path}")
