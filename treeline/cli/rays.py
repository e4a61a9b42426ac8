"""`treeline rays`: a documented ray set of a scene, with the oracle's answers."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from treeline.cli.build import check_npz
from treeline.cli.console import emit_json, steps
from treeline.cli.options import Common, SeedOption, parse_size, with_common
from treeline.outputs import whole_file


@with_common
def rays(
    common: Common,
    kind: Annotated[
        Literal["primary", "mirror", "diffuse", "shadow"], typer.Option(help="Which rays.")
    ],
    out: Annotated[Path, typer.Option(help="The .npz to write.")],
    size: Annotated[str, typer.Option(metavar="WxH", help="Pixels.")] = "1920x1080",
    seed: SeedOption = 0,
) -> None:
    """Make a ray set: 32-byte records in 8x4 tiles, with t from the CPU oracle."""
    from bvh.raysets import make_rayset, save
    from treeline import structures

    width, height = parse_size(size)
    check_npz(out)
    with whole_file(out) as path, steps(common.quiet) as progress:
        progress.begin("loading the scene")
        scene = common.load_scene()
        prepared = structures.build_for(common, scene, progress).prepared
        # The prepared scene is the one that is traced, in the space that it is traced in.
        camera, light = prepared.scene.camera, prepared.scene.light
        progress.begin(f"tracing {kind} rays on the CPU")
        made = make_rayset(
            kind,
            prepared.bvh,
            camera.transform,
            camera.y_fov,
            width,
            height,
            (light.center, light.half_u, light.half_v),
            seed,
            scene_sha256=scene.sha256,
        )
        save(path, made)
    result = {"out": str(out), "kind": kind, "rays": len(made.rays), "seed": seed}
    emit_json({**result, "width": width, "height": height}, common.json)
    if not common.to_stdout:
        print(f"{out}: {len(made.rays):,} {kind} rays of {width}x{height}")
