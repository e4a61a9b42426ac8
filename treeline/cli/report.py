"""`treeline report`: what each ray type cost, as JSON, CSV, one HTML page and a table."""

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from engine.gpu.errors import CheckFailed
from treeline.cli.budget import BudgetOption
from treeline.cli.camera_path import CameraPathOption, choose_playback
from treeline.cli.console import emit_json, note, print_table, steps
from treeline.cli.frame_flags import FrameFlags
from treeline.cli.idle_options import note_idle
from treeline.cli.options import Common, parse_size, with_common
from treeline.cli.pose import ClipOption, TimeOption, choose_pose
from treeline.cli.profile import ProfileFlags, check_profile, use_profile
from treeline.cli.reference import (
    ErrorPictureOption,
    ReferenceOption,
    check_reference_options,
    compare_frame,
    read_reference,
)
from treeline.cli.tuned import TunedFlags, check_tuned, use_tuned
from treeline.json_text import json_text
from treeline.outputs import whole_file, whole_folder

# size, frames, warm-up: on a GPU, and on a CPU driver, where a frame takes seconds.
GPU_DEFAULTS = ("1920x1080", 60, 5)
CPU_DEFAULTS = ("640x360", 6, 1)  # six: the fewest that `compare` takes
PICTURE_SAMPLES = 8  # frames averaged into frame.png; a timed frame is one sample a pixel
GPU_WARMUP_MS = 1000.0  # at least, before the timed frames of each size


@with_common
def report(
    common: Common,
    flags: FrameFlags,
    tuned: TunedFlags,
    profile: ProfileFlags,
    out: Annotated[Path, typer.Option(help="Folder for frame.png and report.json, .csv, .html.")],
    size: Annotated[
        str | None,
        typer.Option(metavar="WxH", help="Default 1920x1080; 640x360 on a CPU adapter."),
    ] = None,
    frames: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Timed frames, and frames of --camera-path. Default 60; 6 on a CPU adapter.",
        ),
    ] = None,
    warmup: Annotated[
        int | None, typer.Option(min=0, help="Frames before them. Default 5; 1 on a CPU adapter.")
    ] = None,
    time: TimeOption = None,
    clip: ClipOption = None,
    camera_path: CameraPathOption = False,
    trace: Annotated[
        Path | None,
        typer.Option(metavar="F.json", help="The timed frames as a Chrome trace, for Perfetto."),
    ] = None,
    budget: BudgetOption = None,
    reference: ReferenceOption = None,
    error_picture: ErrorPictureOption = None,
) -> None:
    """Measure a frame and report what each ray type cost; exit code 1 where it is over budget."""
    from passes.frame_uniforms import frame_inputs
    from passes.gpu_scene import GpuScene
    from passes.hybrid import FrameOptions, HybridFrame
    from treeline import structures
    from treeline.budgets import budget_rows, check_budgets, over_sentence, parse_budgets
    from treeline.chrome_trace import chrome_trace
    from treeline.error_page import error_pictures
    from treeline.error_rows import error_rows
    from treeline.measure import MeasuredFrame, measure
    from treeline.path_report import path_rows
    from treeline.phase_log import PhaseLog
    from treeline.pictures import save_png
    from treeline.playback import PathFrame, measure_path
    from treeline.report import make_report
    from treeline.report_context import Setting, plain
    from treeline.report_csv import report_csv
    from treeline.report_html import report_html
    from treeline.report_table import report_tables

    if size is not None:
        parse_size(size)
    check_profile(profile.profile)
    check_tuned(tuned)
    frame_options = FrameOptions(0, 0, **flags.fields())
    budgets = parse_budgets(budget) if budget is not None else ()
    check_budgets(budgets, frame_options)
    wanted = check_reference_options(reference, error_picture)
    trace_file = whole_file(trace) if trace else nullcontext()
    error_file = whole_file(error_picture) if error_picture else nullcontext()
    with (
        whole_folder(out) as folder,
        trace_file as trace_path,
        error_file as error_path,
        steps(common.quiet) as shown,
    ):
        progress = PhaseLog(shown)
        device = common.open_device()
        defaults = CPU_DEFAULTS if device.info.is_cpu else GPU_DEFAULTS
        if device.info.is_cpu and None in (size, frames, warmup):
            note(
                f"{device.info.adapter} is a CPU adapter: {defaults[0]}, {defaults[1]} frames, "
                f"{defaults[2]} warm-up unless asked otherwise; its times are no GPU's",
                quiet=common.quiet,
            )
        width, height = parse_size(size or defaults[0])
        frame_options = replace(frame_options, width=width, height=height)
        progress.begin("loading the scene")
        scene = common.load_scene()
        choice = use_tuned(common, tuned, device, scene)
        common, frame_options = choice.common, replace(frame_options, **choice.frame)
        asked = use_profile(profile, flags, device, quiet=common.quiet)
        frame_options = replace(frame_options, **asked.frame)
        check_budgets(budgets, frame_options)
        note_idle(frame_options, quiet=common.quiet)
        options = common.build_options()
        pose = choose_pose(scene, time, clip)
        shown_picture = read_reference(wanted, scene, frame_options, pose.fields() if pose else {})
        timed_frames = defaults[1] if frames is None else frames
        playback = choose_playback(scene, pose, count=timed_frames) if camera_path else None
        structure = structures.build_for(common, scene, progress, device=device)
        prepared = structure.prepared
        on_gpu = GpuScene(device, prepared)

        def make_frame(width: int, height: int, count: bool) -> MeasuredFrame:
            settings = replace(
                frame_options, width=width, height=height, count=count, count_lanes=count
            )
            frame = HybridFrame(device, prepared, settings, on_gpu)
            if pose is not None:
                frame.inputs = replace(frame.inputs, **pose.fields())
            if not count:
                frame.remember()
            return frame

        measurement = measure(
            make_frame,
            width,
            height,
            timed_frames,
            defaults[2] if warmup is None else warmup,
            progress,
            lambda: device.allocated_bytes,
            0.0 if device.info.is_cpu else GPU_WARMUP_MS,
            PICTURE_SAMPLES,
        )
        along: list[PathFrame] = []
        if playback is not None:
            along = measure_path(
                make_frame,
                playback,
                (width, height),
                progress,
                new_numbers=frame_options.history > 0,
            )
        compared = None
        if wanted is not None:

            def make_other(settings: FrameOptions) -> HybridFrame:
                frame = HybridFrame(device, prepared, settings, on_gpu)
                if pose is not None:
                    frame.inputs = replace(frame.inputs, **pose.fields())
                return frame

            compared = compare_frame(make_other, frame_options, wanted, shown_picture, progress)
        errors = None if compared is None else error_pictures(compared)
        used = {}
        if frame_options.occlusion:
            inputs = frame_inputs(prepared, frame_options)
            used = {"occlusion_radius": inputs.occlusion_radius}
        setting = Setting(
            scene=scene,
            scene_path=common.scene_name,
            device=device,
            options=options,
            group=common.group,
            frame=frame_options.sized(len(scene.lights)),
            tuned=choice.context,
            profile=asked.context,
            occlusion=used,
            built=structure.context(),
            pose=pose.fields() if pose else {},
        )
        progress.begin("writing the report")
        document = make_report(setting, prepared.bvh, measurement)
        limits = [plain(row) for row in budget_rows(budgets, measurement.main)]
        document["benchmarks"] += limits
        if along:
            document["benchmarks"] += path_rows(along)
        if compared is not None:
            document["benchmarks"] += [plain(row) for row in error_rows(compared)]
        (folder / "report.json").write_text(json_text(document), encoding="utf-8")
        (folder / "report.csv").write_text(report_csv(document), encoding="utf-8")
        page = report_html(document, measurement.main.image, measurement.main.nodes, errors)
        (folder / "report.html").write_text(page, encoding="utf-8")
        save_png(folder / "frame.png", measurement.main.image)
        if error_path is not None and errors is not None:
            save_png(error_path, errors)
        progress.close()
        if trace_path is not None:
            events = chrome_trace(measurement.main, progress.phases, document["context"])
            trace_path.write_text(json_text(events), encoding="utf-8")
    emit_json(document, common.json)
    if not common.to_stdout:
        print_table(report_tables(document))
        for name in ("frame.png", "report.json", "report.csv", "report.html"):
            print(out / name)
        for path in (trace, error_picture):
            if path is not None:
                print(path)
    over = over_sentence(limits)
    if over is not None:
        raise CheckFailed(over)
