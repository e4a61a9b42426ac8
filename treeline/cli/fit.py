"""`treeline fit`: the cost formula's coefficients on this adapter and scene, with what they are
worth."""

import math
from dataclasses import replace
from typing import Annotated, Any

import typer

from engine.gpu.errors import UserError
from treeline.cli.console import emit_json, note, print_table, steps
from treeline.cli.frame_flags import FrameFlags
from treeline.cli.idle_options import note_idle
from treeline.cli.options import Common, parse_size, with_common

GPU_DEFAULTS, CPU_DEFAULTS = ("1920x1080", 20), ("240x136", 3)  # size, frames
GPU_WARMUP_MS = 500.0


@with_common
def fit(
    common: Common,
    flags: FrameFlags,
    size: Annotated[
        str | None,
        typer.Option(
            metavar="WxH", help="Of the largest runs. Default 1920x1080; 240x136 on a CPU adapter."
        ),
    ] = None,
    frames: Annotated[
        int | None, typer.Option(min=1, help="Timed frames a run. Default 20; 3 on a CPU adapter.")
    ] = None,
) -> None:
    """Fit what a ray, a node, an any-hit call, a hit and a miss cost over runs of a scene.

    Some forty candidates that differ in size, view, roughness that still reflects, occlusion's
    reach and what rays see are counted; those that tell the coefficients best are timed, in turns.
    The chapter's formula has one cost for each ray, hit and miss; the formula by nodes counts nodes
    and triangle tests, and what passes take by themselves; the formula by subgroups counts steps
    that lanes take together, and the nodes of the longest ray, for which a GPU waits. A coefficient
    that the runs cannot tell from others, or that one run alone decides, is refused with the
    reason. Left-out is the error on a run that is predicted from the others.
    """
    from passes.gpu_scene import GpuScene
    from passes.hybrid import FrameOptions
    from treeline import structures
    from treeline.fit_bench import FitBench
    from treeline.fit_runs import design_runs, fit_frame, lowest, time_runs
    from treeline.fit_views import candidates, leaf_views
    from treeline.measure import median
    from treeline.report_context import plain, structure_context

    if size is not None:
        parse_size(size)
    options = replace(FrameOptions(0, 0, **flags.fields()), occlusion=True)
    if options.passes == "mixed":
        raise UserError("ray types have no time of their own with --passes mixed: fit needs own")
    note_idle(options, quiet=common.quiet)
    with steps(common.quiet) as progress:
        device = common.open_device()
        defaults = CPU_DEFAULTS if device.info.is_cpu else GPU_DEFAULTS
        largest = parse_size(size or defaults[0])
        progress.begin("loading the scene")
        scene = common.load_scene()
        structure = structures.build_for(common, scene, progress, device=device)
        on_gpu = GpuScene(device, structure.prepared)
        views = leaf_views(scene)
        bench = FitBench(device, on_gpu, options, largest, views)
        design = design_runs(bench, list(candidates(views)), progress)
        warmup_ms = 0.0 if device.info.is_cpu else GPU_WARMUP_MS
        measured = time_runs(bench, design, frames or defaults[1], progress, warmup_ms)
        is_cpu = device.info.is_cpu
        found = fit_frame(design, measured, lowest if is_cpu else median)
        context = structure_context(
            scene, common.scene_name, device, common.build_options(), common.group
        )
        settings = {
            "size": list(largest),
            "frames": frames or defaults[1],
            "of_turns": "minimum" if is_cpu else "median",
            **flags.fields(),
            "occlusion": True,
        }
    facts = found.facts()
    emit_json({"context": plain(context | settings), **plain(facts)}, common.json)
    if device.info.is_cpu:
        note(f"{device.info.adapter} is a CPU adapter: no GPU's times", quiet=common.quiet)
    if common.to_stdout:
        return
    _print_design(facts["design"])
    for name, formula in facts["formulas"].items():
        _print_formula(name, formula, len(measured))
    print(f"Updates, measured: {facts['build_update_cost_ms']:.3g} ms")


def _print_design(design: dict[str, Any]) -> None:
    """What was known before anything was timed."""
    from treeline.report_table import make_table

    rows = []
    for item in design["sums"]:
        deciding = ", ".join(f"{term} {n:.1f}" for term, n in item["deciding_runs"].items())
        rank = f"{item['rank']} of {item['terms']}"
        rows.append((item["sum"], rank, f"{item['largest_leverage']:.2f}", deciding))
    title = f"{design['chosen']} runs of {design['candidates']} candidates"
    columns = ("sum", "rank", "leverage, most", "runs that decide each term")
    print_table(make_table(title, columns, rows))


def _print_formula(name: str, facts: dict[str, Any], runs: int) -> None:
    from treeline.report_table import make_table, number

    rows, refused = [], []
    for ray_type, item in facts["types"].items():
        if "refused" in item:
            refused.append(f"{ray_type}: {item['refused']}")
            continue
        for part, fitted in item.items():
            for row in fitted["coefficients"]:
                rows.append(_line(ray_type, part, row, fitted, number))
                if row["refused"]:
                    refused.append(f"{ray_type}, {part} by {row['term']}: {row['refused']}")
    columns = ("ray type", "part by term", "ns", "interval, 95%", "rank", "left out, %")
    print_table(make_table(f"Formula: {name}, over {runs} runs", columns, rows))
    for line in refused:
        print(f"refused: {line}")
    print(left_out_text(name, facts))


def left_out_text(name: str, facts: dict[str, Any]) -> str:
    """The error of a formula on a run left out, or that there is none to tell."""
    from treeline.report_table import number

    if not math.isfinite(facts["left_out_ms"]):
        return f"Left out, {name}: not known, as of a part or a ray type it is not (see above)"
    share = percent(facts["left_out_share"])
    return f"Left out, {name}: {number(facts['left_out_ms'])} ms, {share}% of what ray types take"


def percent(share: float) -> str:
    """Of an error; a dash where one run alone says what something costs, so that there is none."""
    from treeline.report_table import number

    return number(100 * share, 1) if math.isfinite(share) else "-"


def _line(
    ray_type: str, part: str, row: dict[str, Any], fitted: dict[str, Any], number: Any
) -> tuple[str, ...]:
    interval = row["interval_ns"]
    return (
        ray_type,
        f"{part} by {row['term']}",
        "refused" if row["refused"] else number(row["ns"], 1),
        "" if interval is None else f"{interval[0]:,.1f} .. {interval[1]:,.1f}",
        str(fitted["rank"]),
        percent(fitted["left_out_share"]),
    )
