"""`treeline curve`: cost against error, one option at a time."""

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from engine.gpu.errors import UserError
from treeline.cli.console import emit_json, note, print_table, steps
from treeline.cli.frame_flags import FrameFlags
from treeline.cli.idle_options import note_idle
from treeline.cli.options import Common, parse_size, with_common
from treeline.cli.pose import ClipOption, TimeOption, choose_pose
from treeline.cli.reference import read_reference
from treeline.json_text import json_text
from treeline.outputs import whole_file, whole_folder
from treeline.time_limit import NO_TIME, TimeLimit

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# size, samples of the reference, pictures compared and timed turns: on a GPU, on a CPU driver.
GPU_DEFAULTS = ("1920x1080", 1024, 4, 20)
CPU_DEFAULTS = ("192x108", 64, 2, 4)
GPU_WARMUP_MS = 1000.0  # an idle GPU needs about a second of work to reach its clock
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
        str | None, typer.Option(metavar="WxH", help="Default 1920x1080; 192x108 on a CPU adapter.")
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
        typer.Option(min=1, help="Of each variant, compared. Default 4; 2 on a CPU adapter."),
    ] = None,
    turns: Annotated[
        int | None,
        typer.Option(min=2, help="Timed frames of each. Default 20; 4 on a CPU adapter."),
    ] = None,
    minutes: Annotated[
        float | None,
        typer.Option(
            min=0.01,
            help="What all of it may take: curves that do not fit are left out and named. Default: "
            "no limit.",
        ),
    ] = None,
    only: Annotated[
        str, typer.Option(metavar="NAME;NAME", help="Some curves, in this order. Default: all.")
    ] = "",
    crop: Annotated[
        str | None,
        typer.Option(metavar="X,Y", help="Top left of what sheet.png shows. Default: the middle."),
    ] = None,
    shown: Annotated[
        str, typer.Option(metavar="NAME;NAME", help="Variants that sheet.png shows. Default: all.")
    ] = "",
    resume: Annotated[
        bool,
        typer.Option(
            "--resume",
            help="Measure only what the folder lacks after an earlier run at the same commit and "
            "settings, which was ended or left curves out.",
        ),
    ] = False,
    record: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="F.json",
            help="Draw curve.png of a curve.json that was measured before, or elsewhere.",
            show_default=False,
        ),
    ] = None,
    time: TimeOption = None,
    clip: ClipOption = None,
) -> None:
    """Measure what each option costs and what it does to the picture.

    Each option that trades one for the other is tried over its values, the rest being the frame
    asked for: its time, its rays, and its error against one reference, which is the mean of many
    frames with everything full. Frames that remember light are the 16th of a still camera's, or of
    one that walks and turns until it stands where the reference was made.

    Until all are measured, curve.json.partial in the folder has those that are: --resume goes on
    with it, --from draws it.
    """
    from importlib.util import find_spec

    from treeline.pictures import save_png
    from treeline.quality_picture import draw_curve
    from treeline.quality_resume import PARTIAL, RECORD
    from treeline.quality_table import quality_tables, read_record

    corner = _parse_corner(crop)
    if resume and record is not None:
        raise UserError(
            "--resume goes on measuring: not with --from, which draws what was measured"
        )
    partial = out / PARTIAL
    asked = Asked(
        flags=flags,
        size=size,
        reference=reference,
        pictures=pictures,
        turns=turns,
        limit=TimeLimit.of(minutes),
        only=_names(only),
        shown=_names(shown),
        time=time,
        clip=clip,
        partial=partial,
        resume=resume,
    )
    written = ["curve.png"]
    with whole_folder(out) as folder:
        if record is not None:
            measured = read_record(record)
            draw_curve(folder / "curve.png", measured)
        else:
            measured, sheet = _measure(common, asked, corner)
            (folder / RECORD).write_text(json_text(measured), encoding="utf-8")
            save_png(folder / "sheet.png", sheet)
            written = [RECORD, "sheet.png"]
            if find_spec("matplotlib") is not None:
                draw_curve(folder / "curve.png", measured)
                written.append("curve.png")
            else:
                note("no curve.png: that needs matplotlib (treeline[metrics]); --from draws it")
    if record is None:
        partial.unlink(missing_ok=True)
    emit_json(measured, common.json)
    if not common.to_stdout:
        print_table(quality_tables(measured))
        for name in measured.get("left_out", ()):
            print(f"{name}: not measured, {NO_TIME}")
        for name in written:
            print(out / name)


@dataclass(frozen=True, slots=True)
class Asked:
    """What is to be measured, as the command line has it."""

    flags: FrameFlags
    size: str | None
    reference: str | None
    pictures: int | None
    turns: int | None
    limit: TimeLimit
    only: list[str]
    shown: list[str]
    time: float | None
    clip: str | None
    partial: Path  # for what is known so far
    resume: bool


def _measure(
    common: Common, asked: Asked, corner: tuple[int, int] | None
) -> tuple[dict[str, Any], "NDArray[np.uint8]"]:
    """The record, and the variants' pictures side by side."""
    from passes.frame_options import FrameOptions
    from passes.gpu_scene import GpuScene
    from passes.hybrid import HybridFrame
    from treeline import structures
    from treeline.frame_error import bad_pixels_sentence
    from treeline.image_error import FORMULAS
    from treeline.quality import Quality, first_picture, measure_quality
    from treeline.quality_resume import earlier_record, rows_to_keep
    from treeline.quality_table import quality_sheet
    from treeline.quality_variants import variants
    from treeline.reference import make_reference, parse_reference, reference_facts
    from treeline.report_context import plain, structure_context

    chosen = variants(asked.only)
    for name in asked.shown:
        if name not in [variant.name for variant in chosen]:
            there = "; ".join(variant.name for variant in chosen)
            raise UserError(f"no variant is named '{name}'; there are {there}")
    given = parse_reference(asked.reference) if asked.reference is not None else None
    earlier = earlier_record(asked.partial.parent) if asked.resume else None
    with steps(common.quiet) as progress:
        device = common.open_device()
        defaults = CPU_DEFAULTS if device.info.is_cpu else GPU_DEFAULTS
        width, height = parse_size(asked.size or defaults[0])
        wanted, turns = given or defaults[1], asked.turns or defaults[3]
        base = FrameOptions(width, height, **asked.flags.fields())
        note_idle(base, quiet=common.quiet)
        progress.begin("loading the scene")
        scene = common.load_scene()
        pose = choose_pose(scene, asked.time, asked.clip)
        posed: dict[str, Any] = pose.fields() if pose else {}
        picture = read_reference(wanted, scene, base, posed)
        known = {
            "context": structure_context(
                scene, common.scene_name, device, common.build_options(), common.group
            ),
            "width": width,
            "height": height,
            "frame": plain(asdict(base)),
            "pose": plain(posed),
            "pictures": asked.pictures or defaults[2],
            "turns": turns,
            "formulas": FORMULAS,
            "reference": reference_facts(wanted, picture),
        }
        names = [variant.name for variant in chosen]
        kept: dict[str, dict[str, Any]] = {}
        if earlier is not None:
            kept = rows_to_keep(*earlier, known, names)
            dates = [*earlier[1].get("earlier", ()), earlier[1]["context"]["date"]]
            known["earlier"] = dates
            note(f"{earlier[0]} has {len(kept)} of {len(names)} variants", quiet=common.quiet)
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

        def record(found: list[Quality]) -> dict[str, Any]:
            rows = {**kept, **{item.variant.name: plain(item.row()) for item in found}}
            left_out = [name for name in names if name not in rows]
            return {
                **known,
                "variants": [rows[name] for name in names if name in rows],
                "left_out": left_out,
            }

        def keep(found: list[Quality]) -> None:
            with whole_file(asked.partial) as path:
                path.write_text(json_text(record(found)), encoding="utf-8")

        found = measure_quality(
            make_frame,
            base,
            picture.pixels,
            [variant for variant in chosen if variant.name not in kept],
            progress,
            pictures=known["pictures"],
            turns=turns,
            warmup_ms=0.0 if device.info.is_cpu else GPU_WARMUP_MS,
            limit=asked.limit,
            keep=keep,
        )
        measured = record(found)
        drawn = {item.variant.name: item.error.pictures[0] for item in found}
        rows = {row["name"]: row for row in measured["variants"]}
        wanted_rows = [n for n in names if n in rows and (not asked.shown or n in asked.shown)]
        again = [v for v in chosen if v.name in wanted_rows and v.name not in drawn]
        if again:
            progress.begin("drawing what was measured before", len(again))
        for variant in again:
            drawn[variant.name] = first_picture(make_frame, base, variant)
            progress.advance(variant.name)
    for quality in found:
        said = bad_pixels_sentence(quality.error.bad_pixels)
        if said:
            note(f"warning: {quality.variant.name}: {said}")
    shown = [(rows[name], drawn[name]) for name in wanted_rows]
    return measured, quality_sheet(shown, picture.pixels, LARGEST_CROP, corner, base.exposure)


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(";") if name.strip()]


def _parse_corner(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    parts = text.split(",")
    if len(parts) != 2 or not all(part.strip().isdecimal() for part in parts):
        raise UserError(f"--crop is X,Y in pixels from the top left, not '{text}'")
    return int(parts[0]), int(parts[1])
