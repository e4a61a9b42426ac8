"""How far ambient light is occluded: the two options of every command that draws frames."""

from typing import Annotated, Any

import typer

from engine.gpu.errors import UserError

OcclusionOption = Annotated[
    bool, typer.Option("--occlusion", help="Occlude ambient light, by a ray a pixel.")
]
OcclusionRadiusOption = Annotated[
    float | None,
    typer.Option(metavar="METRES", help="How far those rays reach. Default: by the scene's size."),
]


def occlusion_fields(occlusion: bool, radius: float | None) -> dict[str, Any]:
    """The fields of FrameOptions. UserError for a radius of rays that are not sent, or for one that
    is no distance."""
    if radius is not None and not occlusion:
        raise UserError("--occlusion-radius needs --occlusion")
    if radius is not None and not radius > 0:
        raise UserError(f"--occlusion-radius is more than 0 metres, not {radius:g}")
    return {"occlusion": occlusion, "occlusion_radius": radius or 0.0}
