"""The chapter's moving scenes as pictures, into docs/.

`python -m benchmarks.frame_pictures --assets FOLDER [--size 1280x720] [--samples 512] [--out docs]`

FOLDER holds the files that benchmarks/scenes/kitchen_frame.toml names. Each scene is drawn from its
camera path, at a moment in which what moves is seen; a picture is the mean of `--samples` frames,
as a JPEG of the best quality that stays below 250 KB.
"""

import io
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from numpy.typing import NDArray
from PIL import Image

from bvh.build import BuildOptions
from engine.gpu.device import open_device
from passes.frame_options import FrameOptions
from passes.hybrid import HybridFrame
from treeline import structures
from treeline.outputs import whole_folder
from treeline.playback import play
from treeline.scenes import load
from treeline.version import ROOT

MOST_BYTES = 250_000
QUALITIES = range(95, 40, -3)


@dataclass(frozen=True, slots=True)
class Shot:
    """`offset` is the camera's seconds behind its path's beginning, `time` the scene's clip's."""

    scene: str  # in benchmarks/scenes
    out: str
    offset: float
    time: float


SHOTS = (
    Shot("kitchen_frame.toml", "kitchen-frame.jpg", 6.0, 1.1),
    Shot("hall_frame.toml", "hall-frame.jpg", 4.0, 1.0),
)


def small_jpeg(pixels: NDArray[np.uint8]) -> bytes:
    """Of a picture [h, w, 3], the best that has fewer than MOST_BYTES."""
    for quality in QUALITIES:
        buffer = io.BytesIO()
        Image.fromarray(pixels).save(buffer, "JPEG", quality=quality, optimize=True)
        if buffer.tell() < MOST_BYTES:
            break
    return buffer.getvalue()


def main(
    assets: Annotated[list[str], typer.Option(help="where the scenes' files are")],
    size: Annotated[str, typer.Option(metavar="WxH")] = "1280x720",
    samples: Annotated[int, typer.Option(min=1)] = 512,
    gbuffer: Annotated[str, typer.Option(help="raster or rays")] = "rays",
    out: Annotated[Path, typer.Option(help="folder")] = Path("docs"),
    adapter: Annotated[str | None, typer.Option(help="index or part of the name")] = None,
) -> None:
    """Writes the pictures and prints their names."""
    width, height = (int(side) for side in size.split("x"))
    device = open_device(adapter)
    options = FrameOptions(width, height, gbuffer=gbuffer)
    with whole_folder(out) as folder:
        for shot in SHOTS:
            scene = load(ROOT / "benchmarks" / "scenes" / shot.scene, assets)
            built = structures.build(scene, BuildOptions(), "static", device=device, or_cpu=True)
            frame = HybridFrame(device, built.prepared, options)
            playback = replace(play(scene, fps=1.0), offsets=(shot.offset,))
            start = shot.time - shot.offset
            frame.inputs = replace(playback, time=start).inputs(frame.inputs, 0)
            frame.render(samples)
            (folder / shot.out).write_bytes(small_jpeg(frame.image()))
            print(out / shot.out)


if __name__ == "__main__":
    typer.run(main)
