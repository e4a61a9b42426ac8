"""`treeline example triangle`: the smallest whole path, in a window or into a file."""

import os
import signal
from pathlib import Path
from types import FrameType
from typing import Annotated, Any

import numpy as np
import typer

from engine.gpu.errors import AdapterError, UserError
from engine.gpu.faults import works_around
from treeline.cli.console import emit_json, note
from treeline.cli.options import Common, with_common
from treeline.outputs import whole_file


@with_common
def triangle(
    common: Common,
    out: Annotated[
        Path | None, typer.Option(help="Write a PNG instead of opening a window.")
    ] = None,
) -> None:
    """One triangle through a BLAS, a TLAS and one traversal pass (see treeline/triangle.py)."""
    from treeline.pictures import save_png
    from treeline.triangle import SIZE, plug_in

    options = common.build_options()
    if out is not None and out.suffix.lower() != ".png":
        raise UserError(f"a picture is written as .png, not {out}")
    if out is None:
        shown = os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
        if not shown and works_around("window-abort"):
            raise AdapterError("no display: use --out F.png, or run under xvfb-run -a")
        from rendercanvas.glfw import RenderCanvas, loop

        device = common.open_device()
        window = RenderCanvas(size=SIZE, title="Treeline: one triangle", update_mode="ondemand")
        plug_in(device, window, options)
        note("a window is open: close it, or press Ctrl-C here", quiet=common.quiet)
        show(loop)
        return
    from rendercanvas.offscreen import OffscreenRenderCanvas

    with whole_file(out) as path:
        device = common.open_device()
        canvas = OffscreenRenderCanvas(size=SIZE, pixel_ratio=1)
        plug_in(device, canvas, options)
        save_png(path, np.asarray(canvas.draw())[..., :3])
    emit_json({"out": str(out), "width": SIZE[0], "height": SIZE[1]}, common.json)
    if not common.to_stdout:
        print(out)


def show(loop: Any) -> None:
    """Runs the window's loop until it is closed; Ctrl-C ends the command as everywhere."""
    interrupted = []

    def stop(number: int, frame: FrameType | None) -> None:
        interrupted.append(number)
        loop.stop()

    # The loop takes the signal over when it starts, and would end like a closed window.
    loop.call_soon(signal.signal, signal.SIGINT, stop)
    loop.run()
    if interrupted:
        raise typer.Exit(130)
