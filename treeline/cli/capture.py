"""`treeline capture`: a frame's rays, what they met and all that traces them again, in a file."""

from pathlib import Path
from typing import Annotated

import typer

from engine.gpu.errors import CheckFailed, UserError
from treeline.cli.build import check_npz
from treeline.cli.console import emit_json, steps
from treeline.cli.frame_flags import RaysSent
from treeline.cli.idle_options import note_idle
from treeline.cli.options import Common, parse_size, with_common
from treeline.outputs import check_writable


@with_common
def capture(
    common: Common,
    rays_sent: RaysSent,
    out: Annotated[Path, typer.Option(help="The .npz to write.")],
    size: Annotated[str, typer.Option(metavar="WxH", help="Picture size in pixels.")] = "320x180",
    queue: Annotated[
        list[str] | None, typer.Option(help="A ray queue, repeatable. Default: all.")
    ] = None,
    max_rays: Annotated[int, typer.Option(min=1, help="Rays kept of each queue.")] = 1 << 20,
    limit: Annotated[float, typer.Option(min=0, metavar="MB", help="Refuse a larger file.")] = 512,
    frame_index: Annotated[
        int, typer.Option(min=0, max=2**32 - 1, help="Which frame's samples.")
    ] = 0,
) -> None:
    """Capture one frame: guest buffers, rays of chosen queues and their results."""
    from passes.hybrid import FrameOptions, HybridFrame
    from passes.rays import frame_rays
    from treeline import structures
    from treeline.capture import capture_frame, find_queues, save

    check_npz(out)
    check_writable(out)
    width, height = parse_size(size)
    options = FrameOptions(width, height, **rays_sent.fields())
    sent = frame_rays(options)
    if not sent:
        raise UserError("a frame with these options sends no rays: there is nothing to capture")
    chosen = find_queues(queue, sent) if queue else sent
    note_idle(options, quiet=common.quiet)
    with steps(common.quiet) as progress:
        device = common.open_device()
        progress.begin("loading the scene")
        scene = common.load_scene()
        prepared = structures.build_for(common, scene, progress, device=device).prepared
        progress.begin(f"rendering {width}x{height} on {device.info.adapter}")
        frame = HybridFrame(device, prepared, options)
        stats = frame.run(frame_index)
        if stats.dropped:
            stats = frame.run(frame_index)
        if not stats.valid:
            raise CheckFailed(f"the frame is not valid: {'; '.join(stats.failures)}")
        progress.begin("reading back")
        taken = capture_frame(
            frame,
            chosen,
            scene_name=common.scene_name,
            scene_sha256=scene.sha256,
            max_rays=max_rays,
            limit_mb=limit,
        )
        save(out, taken)
    result = {
        "out": str(out),
        "bytes": taken.nbytes,
        "rays": {q.ray.name: len(q.records) for q in taken.queues},
        "identity": taken.identity,
    }
    emit_json(result, common.json)
    if not common.to_stdout:
        rays = ", ".join(f"{len(q.records):,} {q.ray.name} rays" for q in taken.queues)
        print(f"{out}: {rays}, {taken.nbytes:,} bytes")
