"""`treeline tune`: measures which structure and which kernels trace this scene fastest here."""

from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any

import typer

from engine.gpu.errors import UserError
from treeline.cli.console import emit_json, note, steps
from treeline.cli.frame_flags import RaysSent
from treeline.cli.options import Common, parse_size, with_common
from treeline.cli.pose import ClipOption, TimeOption, choose_pose

GPU_SIZE, CPU_SIZE = "1920x1080", "160x90"
MINUTES = 2.0
# (turns of the first race, of the decision, pairs of the confirmation, ms of warm-up a block)
GPU_TURNS, CPU_TURNS = (6, 30, 60, 150.0), (2, 8, 20, 0.0)


@with_common
def tune(
    common: Common,
    rays: RaysSent,
    out: Annotated[
        Path | None, typer.Option(help="The profile to write, for report and view --tuned.")
    ] = None,
    minutes: Annotated[
        float, typer.Option(min=0.01, help="Of measuring, builds included; then it decides.")
    ] = MINUTES,
    size: Annotated[
        str | None, typer.Option(metavar="WxH", help="Default 1920x1080; 160x90 on a CPU adapter.")
    ] = None,
    time: TimeOption = None,
    clip: ClipOption = None,
    confirm: Annotated[
        Path | None,
        typer.Option(metavar="P.json", help="Only measure this profile against the default."),
    ] = None,
) -> None:
    """Find the structure and the kernels that trace this scene's rays fastest on this adapter.

    Grouping, builder, leaf, node kind and rounds of reinsertion are chosen for all ray types
    together, by the time of all rays of the scene's frame; order of visits, loops and stack for
    each ray type. Cases take turns with the default and have to hit the same: over one structure
    to the last ray, over another but for 1 in 10,000, by rounding. What is faster beyond noise is
    measured again in a process of its own; else the default is kept. Group and build options of
    the command line are the default.

    A search that was interrupted goes on from OUT.state when it is started again.
    """
    from passes.frame_options import FrameOptions
    from passes.rays import frame_rays
    from treeline.json_text import json_text
    from treeline.outputs import check_writable, whole_file
    from treeline.tune.confirm import confirmation
    from treeline.tune.explain import confirmed_texts
    from treeline.tune.profile import read_profile
    from treeline.tune.run import Subject, search_and_confirm

    if (out is None) == (confirm is None):
        raise UserError("tune takes --out, or --confirm of a profile: one of them")
    if out is not None:
        check_writable(out)
    if size is not None:
        parse_size(size)
    sent = rays.fields()
    if not frame_rays(FrameOptions(0, 0, **sent)):
        raise UserError(
            "a frame without rays has nothing to tune: take reflections or shadows by rays"
        )
    common.build_options()
    profile = None if confirm is None else read_profile(confirm)
    with steps(common.quiet) as progress:
        device = common.open_device()
        is_cpu = device.info.is_cpu
        size = size or (CPU_SIZE if is_cpu else GPU_SIZE)
        if is_cpu:
            note(
                f"{device.info.adapter} is a CPU adapter: {size}, few turns; its times are the "
                "wall clock's and no GPU's",
                quiet=common.quiet,
            )
        progress.begin("loading the scene")
        scene = common.load_scene()
        pose = choose_pose(scene, time, clip)
        subject = Subject(
            common,
            device,
            scene,
            FrameOptions(*parse_size(size), **sent),
            pose.fields() if pose else {},
            CPU_TURNS if is_cpu else GPU_TURNS,
            progress,
        )
        if profile is not None:
            mismatch = profile.mismatch(subject.context())
            if mismatch:
                raise UserError(mismatch)
            document = confirmation(subject.against_default(profile.case))
        else:
            assert out is not None
            words = [*command_words(common), *command_words(rays), "--size", size]
            for flag, value in (("--time", time), ("--clip", clip)):
                words += [] if value is None else [flag, str(value)]
            document = search_and_confirm(subject, out, minutes, words)
            with whole_file(out) as path:
                path.write_text(json_text(document), encoding="utf-8")
    emit_json(document, common.json)
    if common.to_stdout:
        return
    if out is None:
        for line in confirmed_texts(document):
            print(line)
        return
    for line in document["explained"]:
        print(line)
    print(out)


def command_words(group: Common | RaysSent) -> list[str]:
    """Options as words of a command line, but for those of what is printed."""
    words: list[str] = []
    default = type(group)()
    for item in fields(group):
        value: Any = getattr(group, item.name)
        if item.name in ("json", "quiet") or value == getattr(default, item.name):
            continue
        flag = "--" + item.name.replace("_", "-")
        if item.name == "cache":
            words.append("--cache" if value else "--no-cache")
        elif value is True:
            words.append(flag)
        elif isinstance(value, list):
            words += [word for one in value for word in (flag, str(one))]
        else:
            words += [flag, str(value)]
    return words
