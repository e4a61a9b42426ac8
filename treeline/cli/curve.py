"""`treeline curve`: cost against error, one option at a time."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from engine.gpu.errors import UserError
from treeline.cli.console import emit_json, note, print_table, steps
from treeline.cli.frame_flags import FrameFlags
from treeline.cli.options import Common, parse_size, with_common
from treeline.cli.pose import ClipOption, TimeOption, choose_pose
from treeline.cli.reference import read_reference
from treeline.json_text import json_text
from treeline.outputs import whole_folder

# size, samples of the reference, pictures compared and timed turns: on a GPU, on a CPU driver.
GPU_DEFAULTS = ("1920x1080", 1024, 4, 20)
CPU_DEFAULTS = ("256x144", 64, 3, 4)
LARGEST_CROP = (400, 225)  # of a variant, in the pictures side by side


@with_common
def curve(
    common: Common,
    flags: FrameFlags,
    out: Annotated[
        Path,
        typer.Option(help="Folder for curve.json, curve.png and sheet.png, pictures side by side."),
    ],
    size: Annotated[
        str | None, typer.Option(metavar="WxH", help="Default 1920x1080; 256x144 on a CPU adapter.")
    ] = None,
    reference: Annotated[
        str | None,
        typer.Option(
            metavar="F.exr|F.npz|N",
            help="A linear picture, or samples of one made here. Default 1,024; 64 on a CPU "
            "adapter.",
        ),
    ] = None,
    pictures: Annotated[
        int | None,
        typer.Option(min=1, help="Of each variant, compared. Default 4; 3 on a CPU adapter."),
    ] = None,
    turns: Annotated[
        int | None,
        typer.Option(min=2, help="Timed frames of each. Default 20; 4 on a CPU adapter."),
    ] = None,
    only: Annotated[str, typer.Option(metavar="NAME;NAME", help="Some curves. Default: all.")] = "",
    crop: Annotated[
        str | None,
        typer.Option(metavar="X,Y", help="Top left of what sheet.png shows. Default: the middle."),
    ] = None,
    time: TimeOption = None,
    clip: ClipOption = None,
) -> None:
    """Measure what each option costs and what it does to the picture.

    Each option that trades one for the other is tried over its values, the rest being the frame
    asked for: its time, its rays, and its error against one reference, which is the mean of many
    frames with everything full. Frames that remember light are the 16th of a still camera's, or of
    one that walks and turns until it stands where the reference was made.
    """
    from passes.frame_options import FrameOptions
    from passes.gpu_scene import GpuScene
    from passes.hybrid import HybridFrame
    from treeline import structures
    from treeline.frame_error import bad_pixels_sentence
    from treeline.image_error import FORMULAS
    from treeline.pictures import save_png
    from treeline.quality import measure_quality
    from treeline.quality_picture import check_plotting, draw_curve
    from treeline.quality_table import quality_sheet, quality_tables
    from treeline.quality_variants import variants
    from treeline.reference import full_options, make_reference, parse_reference
    from treeline.report_context import plain, structure_context

    chosen = variants([name.strip() for name in only.split(";") if name.strip()])
    check_plotting()
    corner = _parse_corner(crop)
    with whole_folder(out) as folder, steps(common.quiet) as progress:
        device = common.open_device()
        defaults = CPU_DEFAULTS if device.info.is_cpu else GPU_DEFAULTS
        width, height = parse_size(size or defaults[0])
        wanted = parse_reference(reference) if reference is not None else defaults[1]
        base = FrameOptions(width, height, **flags.fields())
        progress.begin("loading the scene")
        scene = common.load_scene()
        pose = choose_pose(scene, time, clip)
        posed: dict[str, Any] = pose.fields() if pose else {}
        picture = read_reference(wanted, scene, base, posed)
        prepared = structures.build_for(common, scene, progress, device=device).prepared
        on_gpu = GpuScene(device, prepared)

        def make_frame(settings: FrameOptions) -> HybridFrame:
            frame = HybridFrame(device, prepared, settings, on_gpu)
            frame.inputs = replace(frame.inputs, **posed)
            return frame

        if picture is None:
            assert isinstance(wanted, int)
            progress.begin(f"making a reference of {wanted} samples")
            picture = make_reference(make_frame, base, wanted)
        found = measure_quality(
            make_frame,
            base,
            picture.pixels,
            chosen,
            progress,
            pictures=pictures or defaults[2],
            turns=turns or defaults[3],
        )
        for quality in found:
            said = bad_pixels_sentence(quality.error.bad_pixels)
            if said:
                note(f"warning: {quality.variant.name}: {said}")
        context = structure_context(
            scene, common.scene_name, device, common.build_options(), common.group
        )
        record = {
            "context": context,
            "width": width,
            "height": height,
            "pose": plain(posed),
            "turns": turns or defaults[3],
            "formulas": FORMULAS,
            "reference": {
                "source": wanted.name if isinstance(wanted, Path) else "made here",
                "samples": picture.facts.get("samples"),
                "roughness_cutoff": full_options(base).roughness_cutoff,
            },
            "variants": [plain(quality.row()) for quality in found],
        }
        (folder / "curve.json").write_text(json_text(record), encoding="utf-8")
        draw_curve(folder / "curve.png", record)
        sheet = quality_sheet(found, picture.pixels, LARGEST_CROP, corner, base.exposure)
        save_png(folder / "sheet.png", sheet)
    emit_json(record, common.json)
    if not common.to_stdout:
        print_table(quality_tables(record))
        for name in ("curve.json", "curve.png", "sheet.png"):
            print(out / name)


def _parse_corner(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    parts = text.split(",")
    if len(parts) != 2 or not all(part.strip().isdecimal() for part in parts):
        raise UserError(f"--crop is X,Y in pixels from the top left, not '{text}'")
    return int(parts[0]), int(parts[1])
