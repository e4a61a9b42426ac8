"""`treeline render`: one picture of a scene, or one of the frame's arbitrary output values."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from engine.gpu.errors import UserError
from passes.slot_counts import SLOT_COUNTS
from treeline.cli.camera_path import (
    CameraPathOption,
    FpsOption,
    check_fps,
    choose_playback,
)
from treeline.cli.console import emit_json, note, steps
from treeline.cli.frame_flags import FrameFlags
from treeline.cli.idle_options import note_idle
from treeline.cli.options import Common, parse_size, with_common
from treeline.cli.pose import ClipOption, TimeOption, choose_pose
from treeline.cli.profile import ProfileFlags, use_profile
from treeline.outputs import whole_file

if TYPE_CHECKING:
    from passes.frame_options import FrameOptions

AOVS = ("depth", "normal", "roughness", "material", "object", "metalness", "base_color")
COUNT_AOVS = f"{'|'.join(SLOT_COUNTS)}/TYPE"


@with_common
def render(
    common: Common,
    flags: FrameFlags,
    profile: ProfileFlags,
    out: Annotated[
        Path,
        typer.Option(
            help="The PNG to write, or the linear picture as .exr or .npz. With --camera-path a "
            "numbered series of PNGs, or one animated .gif, .webp or .apng."
        ),
    ],
    size: Annotated[str, typer.Option(metavar="WxH", help="Picture size in pixels.")] = "1280x720",
    aov: Annotated[
        str | None,
        typer.Option(help=f"Instead of the picture: {', '.join(AOVS)}, {COUNT_AOVS}."),
    ] = None,
    time: TimeOption = None,
    clip: ClipOption = None,
    camera_path: CameraPathOption = False,
    fps: FpsOption = None,
    samples: Annotated[int, typer.Option(min=1, help="Frames averaged into the picture.")] = 4,
    oracle: Annotated[
        Literal["pyrender"] | None,
        typer.Option(help="Write the depth difference to an independent rasteriser instead."),
    ] = None,
) -> None:
    """Render one picture, or those along the scene's camera path."""
    from passes.frame_options import FrameOptions
    from passes.hybrid import HybridFrame
    from treeline import structures
    from treeline.animated_picture import check_animation, save_pictures, series_path
    from treeline.draw_pictures import PathDrawing, draw, pixels_of
    from treeline.pictures import save_png
    from treeline.radiance_file import SUFFIXES, RadiancePicture, check_suffix, save_radiance
    from treeline.reference import MOST_SAMPLES, picture_facts

    width, height = parse_size(size)
    if samples > MOST_SAMPLES:
        raise UserError(f"a picture is of at most {MOST_SAMPLES:,} samples, not {samples:,}")
    options = FrameOptions(
        width,
        height,
        count=aov is not None and "/" in aov,
        **flags.fields(),
    )
    if profile.profile is None:
        check_output(aov, options)
    rate = check_fps(camera_path, fps)
    if oracle is not None and (camera_path or aov is not None):
        raise UserError("--oracle compares one picture: not with --camera-path or --aov")
    linear = out.suffix.lower() in SUFFIXES
    if linear:
        if camera_path or aov is not None or oracle is not None:
            raise UserError(f"{out.name}: a linear picture is of one frame, without --aov")
        check_suffix(out)
    elif out.suffix.lower() != ".png" and not camera_path:
        raise UserError(f"a picture is written as .png, {' or '.join(SUFFIXES)}, not {out}")
    with whole_file(out) as path, steps(common.quiet) as progress:
        device = common.open_device()
        options = replace(options, **use_profile(profile, flags, device, quiet=common.quiet).frame)
        check_output(aov, options)
        note_idle(options, quiet=common.quiet)
        progress.begin("loading the scene")
        scene = common.load_scene()
        pose = choose_pose(scene, time, clip)
        playback = choose_playback(scene, pose, fps=rate) if camera_path else None
        if playback is not None:
            check_animation(out, len(playback.offsets), width, height)
        prepared = structures.build_for(common, scene, progress, device=device).prepared
        progress.begin(f"rendering {width}x{height} on {device.info.adapter}")
        frame = HybridFrame(device, prepared, options)
        if pose is not None:
            frame.inputs = replace(frame.inputs, **pose.fields())
        if playback is not None:
            count = len(playback.offsets)
            drawing = PathDrawing(frame, playback, samples, aov, progress)
            files = save_pictures(path.parent, out, drawing.pictures(), count, rate)
            assert drawing.stats is not None  # a path has at least one frame
            stats, result_hash = drawing.stats, drawing.result_hash
        else:
            stats, result_hash = draw(frame, 1 if aov or oracle else samples)
        if not stats.valid:
            note(f"warning: {'; '.join(stats.failures)}: the picture misses rays")
        difference = None
        if oracle is not None:
            from engine.scene.pose import posed
            from treeline.raster_oracle import compare, render_oracle

            placed = prepared.scene
            if pose is not None and placed.animation is not None:
                placed = posed(placed, placed.animation.clip(pose.clip), pose.time)
            view = render_oracle(placed, width, height)
            difference = compare(placed, view, frame.aov("depth"), frame.aov("object"))
            save_png(path, difference.picture)
        elif linear:
            facts = picture_facts(scene, options, pose.fields() if pose else {}, samples)
            save_radiance(path, RadiancePicture(frame.radiance(), facts))
        elif playback is None:
            save_png(path, pixels_of(frame, aov))
    result = {
        "out": str(out),
        "width": width,
        "height": height,
        "valid": bool(stats.valid),
        "samples": samples,
        "result_hash": result_hash,
        "rays": {name: counts.rays for name, counts in stats.rays.items()},
    }
    if options.history:
        result["history_losses"] = frame.history_losses
    if pose is not None:
        result.update(pose.fields())
    if playback is not None:
        result.update(frames=count, fps=rate, files=files, clip=playback.clip, time=playback.time)
    if difference is not None:
        result["oracle"] = difference.summary()
    emit_json(result, common.json)
    if not common.to_stdout:
        several = playback is not None and files > 1
        print(f"{series_path(out, 0, count)} and {files - 1} more" if several else out)
        if difference is not None:
            print(difference)


def check_output(aov: str | None, options: "FrameOptions") -> None:
    """UserError where frames with these options have no such output."""
    from passes.rays import frame_rays
    from passes.rays.ray_sum import with_sums

    ray_types = [rays.name for rays in with_sums(frame_rays(options))]
    known = [*AOVS, *(f"{count}/{name}" for name in ray_types for count in SLOT_COUNTS)]
    if aov is not None and aov not in known:
        raise UserError(f"no output is named '{aov}'; there are {', '.join(known)}")
