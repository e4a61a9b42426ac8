"""`--reference` and `--error-picture`: what a frame is compared with, and where that is shown."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from engine.gpu.errors import UserError
from treeline.cli.console import note

if TYPE_CHECKING:
    from engine.scene.scene import Scene
    from passes.frame_options import FrameOptions
    from treeline.error_rows import Compared
    from treeline.measure import Progress
    from treeline.radiance_file import RadiancePicture
    from treeline.reference import MakeFrame

ERROR = "Error"

ReferenceOption = Annotated[
    str | None,
    typer.Option(
        metavar="F.exr|F.npz|N",
        help="Compare the frame with this linear picture (render --out F.exr makes one), or with "
        "the mean of N frames made here, with everything full and another seed.",
        rich_help_panel=ERROR,
    ),
]
ErrorPictureOption = Annotated[
    Path | None,
    typer.Option(
        metavar="F.png",
        help="Frame, reference and error maps side by side.",
        rich_help_panel=ERROR,
    ),
]


def check_reference_options(reference: str | None, error_picture: Path | None) -> Path | int | None:
    """What is to be compared with; None where nothing is. UserError for a file that is no linear
    picture, and for an error picture of no error."""
    from treeline.reference import parse_reference

    if error_picture is not None:
        if reference is None:
            raise UserError("--error-picture needs --reference")
        if error_picture.suffix.lower() != ".png":
            raise UserError(f"a picture is written as .png, not {error_picture.name}")
    return None if reference is None else parse_reference(reference)


def read_reference(
    wanted: Path | int | None, scene: "Scene", options: "FrameOptions", pose: dict[str, Any]
) -> "RadiancePicture | None":
    """The file's picture, where it is one. UserError where it is not of this frame."""
    from treeline.reference import load_reference, picture_facts

    if not isinstance(wanted, Path):
        return None
    return load_reference(wanted, picture_facts(scene, options, pose))


def compare_frame(
    make_frame: "MakeFrame",
    options: "FrameOptions",
    wanted: Path | int,
    picture: "RadiancePicture | None",
    progress: "Progress",
) -> "Compared":
    """Draws the frame a few times and compares it with `picture`, or with one made here of `wanted`
    samples; pixels that are not finite are noted."""
    from treeline.error_rows import Compared
    from treeline.frame_error import bad_pixels_sentence, frame_error
    from treeline.reference import make_reference

    if picture is None or isinstance(wanted, int):
        assert isinstance(wanted, int)
        progress.begin(f"making a reference of {wanted} samples")
        picture, source = make_reference(make_frame, options, wanted), "a reference made here"
    else:
        source = wanted.name
    progress.begin("comparing with the reference")
    found = frame_error(lambda: make_frame(options), picture.pixels)
    said = bad_pixels_sentence(found.bad_pixels)
    if said:
        note(f"warning: {said}")
    samples = picture.facts.get("samples")
    return Compared(
        found=found,
        reference=picture.pixels,
        source=source,
        samples=samples if isinstance(samples, int) else None,
        exposure=options.exposure,
    )
