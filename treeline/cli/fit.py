"""`treeline fit`: the cost formula's coefficients on this adapter and scene, with what they are
worth."""

from dataclasses import replace
from typing import Annotated, Any

import typer

from engine.gpu.errors import UserError
from treeline.cli.console import emit_json, note, print_table, steps
from treeline.cli.frame_flags import FrameFlags
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
    """Fit what a ray, an any-hit call, a hit and a miss cost over a dozen runs of a scene.

    Runs differ in size, view, roughness that still reflects, occlusion rays, any-hit on and off.
    A coefficient that the runs cannot tell from others is refused and named with them. Left-out is
    the error on a run that is predicted from the others.
    """
    from passes.gpu_scene import GpuScene
    from passes.hybrid import FrameOptions, HybridFrame
    from treeline import structures
    from treeline.fit_runs import FitRun, fit_frame, measure_runs, turned
    from treeline.measure import MeasuredFrame
    from treeline.report_context import plain, structure_context
    from treeline.report_table import make_table, number

    if size is not None:
        parse_size(size)
    options = FrameOptions(0, 0, **flags.fields())
    if options.passes == "mixed":
        raise UserError("ray types have no time of their own with --passes mixed: fit needs own")
    with steps(common.quiet) as progress:
        device = common.open_device()
        defaults = CPU_DEFAULTS if device.info.is_cpu else GPU_DEFAULTS
        largest = parse_size(size or defaults[0])
        progress.begin("loading the scene")
        scene = common.load_scene()
        structure = structures.build_for(common, scene, progress, device=device)
        prepared = structure.prepared
        on_gpu = GpuScene(device, prepared)

        def make_run(run: FitRun, width: int, height: int, count: bool) -> MeasuredFrame:
            settings = replace(options, width=width, height=height, count=count, **run.options)
            frame = HybridFrame(device, prepared, settings, on_gpu)
            camera = turned(frame.inputs.camera, run.turn)
            frame.inputs = replace(frame.inputs, camera=camera)
            if not count:
                frame.remember()
            return frame

        warmup_ms = 0.0 if device.info.is_cpu else GPU_WARMUP_MS
        measured = measure_runs(make_run, largest, frames or defaults[1], 1, progress, warmup_ms)
        found = fit_frame(measured)
        context = structure_context(
            scene, common.scene_name, device, common.build_options(), common.group
        )
        settings = {"size": list(largest), "frames": frames or defaults[1], **flags.fields()}
    facts = found.facts()
    emit_json({"context": plain(context | settings), **plain(facts)}, common.json)
    if device.info.is_cpu:
        note(f"{device.info.adapter} is a CPU adapter: no GPU's times", quiet=common.quiet)
    if common.to_stdout:
        return
    rows, refused = [], []
    for ray_type, item in facts["types"].items():
        if "refused" in item:
            refused.append(f"{ray_type}: {item['refused']}")
        for part in ("trace", "shade"):
            for row in item.get(part, {"coefficients": ()})["coefficients"]:
                rows.append(_line(ray_type, part, row, item[part], number))
                if row["refused"]:
                    refused.append(f"{ray_type}, {part} by {row['term']}: {row['refused']}")
    columns = ("ray type", "part by term", "ns", "interval, 95%", "rank", "left out, %")
    print_table(make_table(f"Cost formula over {len(measured)} runs", columns, rows))
    for line in refused:
        print(f"refused: {line}")
    print(
        f"Left out: {number(facts['left_out_ms'])} ms, {number(100 * facts['left_out_share'], 1)}% "
        f"of what the ray types take; updates, measured: {number(facts['build_update_cost_ms'])} ms"
    )


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
        number(100 * fitted["left_out_share"], 1),
    )
