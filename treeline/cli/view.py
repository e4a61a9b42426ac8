"""`treeline view`: the frame live, with what every ray cost; or N frames of it for a script."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from engine.gpu.errors import LimitError, UserError
from treeline.cli.budget import BudgetOption
from treeline.cli.console import note, steps
from treeline.cli.frame_flags import FrameFlags
from treeline.cli.idle_options import note_idle
from treeline.cli.options import Common, parse_size, with_common
from treeline.cli.profile import ProfileFlags, check_profile, use_profile
from treeline.cli.tuned import TunedFlags, check_tuned, use_tuned
from treeline.outputs import check_writable

if TYPE_CHECKING:
    from engine.gpu.device import Device

WINDOW_SIZE = "1280x720"
CPU_WINDOW_SIZE = "960x540"


@with_common
def view(
    common: Common,
    flags: FrameFlags,
    tuned: TunedFlags,
    profile: ProfileFlags,
    size: Annotated[
        str | None,
        typer.Option(
            metavar="WxH", help="Of the window. Default 1280x720; 960x540 on a CPU adapter."
        ),
    ] = None,
    render: Annotated[
        str | None,
        typer.Option(metavar="WxH", help="Of the frame. Default: its place in the window."),
    ] = None,
    offscreen: Annotated[
        bool, typer.Option("--offscreen", help="No window and no display; needs --frames.")
    ] = False,
    frames: Annotated[
        int | None, typer.Option(min=1, help="Draw so many frames, then save and exit.")
    ] = None,
    screenshot: Annotated[
        Path | None, typer.Option(help="The window as PNG, after --frames.")
    ] = None,
    stats: Annotated[
        Path | None, typer.Option(help="The numbers shown, in report.json's format.")
    ] = None,
    panel: Annotated[str | None, typer.Option(help="The panel that is open at first.")] = None,
    show: Annotated[
        str, typer.Option(help="What the picture shows at first, such as depth or nodes/shadow.")
    ] = "picture",
    pick: Annotated[
        str | None, typer.Option(metavar="X,Y", help="Pick this pixel of the frame at the end.")
    ] = None,
    camera: Annotated[
        Path | None, typer.Option(help="A camera as the viewer copied it: a JSON file.")
    ] = None,
    counters: Annotated[
        bool, typer.Option("--counters/--no-counters", help="Count node visits at rest.")
    ] = True,
    budget: BudgetOption = None,
    out: Annotated[Path, typer.Option(help="Folder of what is exported.")] = Path("."),
) -> None:
    """Look at the frame live: heat maps, passes, structure, single rays, options side by side."""
    from engine.view.display import check_display, require_interface_library

    require_interface_library()
    from passes.frame_options import FrameOptions
    from treeline.budgets import parse_budgets
    from treeline.view.start import StartOptions, run

    for text in (size, render):
        if text is not None:
            parse_size(text)
    if frames is None and (screenshot is not None or stats is not None or offscreen):
        raise UserError("--offscreen, --screenshot and --stats need --frames")
    if screenshot is not None and screenshot.suffix.lower() != ".png":
        raise UserError(f"a picture is written as .png, not {screenshot.name}")
    for path in (screenshot, stats):
        if path is not None:
            check_writable(path)
    picked = None if pick is None else parse_pixel(pick)
    check_profile(profile.profile)
    check_tuned(tuned)
    frame_fields = flags.fields()
    budgets = parse_budgets(budget) if budget is not None else ()
    with steps(common.quiet) as progress:
        device = common.open_device()
        window_size = size or (CPU_WINDOW_SIZE if device.info.is_cpu else WINDOW_SIZE)
        if device.info.is_cpu:
            note(
                f"{device.info.adapter} is a CPU adapter: a small picture while the camera moves, "
                "the full one at rest; its times are no GPU's",
                quiet=common.quiet,
            )
        check_window_size(parse_size(window_size), device)
        asked = use_profile(profile, flags, device, quiet=common.quiet)
        if not offscreen:
            check_display()
        progress.begin("loading the scene")
        scene = common.load_scene()
        choice = use_tuned(common, tuned, device, scene)
        common = choice.common
        frame = {**frame_fields, **choice.frame, **asked.frame}
        note_idle(FrameOptions(0, 0, **frame), quiet=common.quiet)
        start = StartOptions(
            window_size=parse_size(window_size),
            render_size=None if render is None else parse_size(render),
            offscreen=offscreen,
            frames=frames,
            screenshot=screenshot,
            stats=stats,
            panel=panel,
            show=show,
            pick=picked,
            camera=camera,
            counters=counters,
            frame=frame,
            out=out,
            budgets=budgets,
        )
        run(common, device, scene, start, progress)


def check_window_size(size: tuple[int, int], device: "Device") -> None:
    """LimitError for a window that the device cannot draw."""
    side = device.limits["max-texture-dimension-2d"]
    if max(size) > side:
        raise LimitError(
            f"a window of {size[0]}x{size[1]} is beyond {device.info.adapter}'s largest picture, "
            f"{side} a side"
        )


def parse_pixel(text: str) -> tuple[int, int]:
    """`X,Y`, whole numbers from 0."""
    x, comma, y = text.partition(",")
    if not comma or not (x.strip().isdecimal() and y.strip().isdecimal()):
        raise UserError(f"a pixel is X,Y, such as 320,200, not '{text}'")
    return int(x), int(y)
