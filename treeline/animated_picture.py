"""Pictures one after the other: a numbered series of files, or one animated file (pillow)."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from engine.gpu.errors import UserError
from treeline.pictures import save_png

U8 = NDArray[np.uint8]

# Suffix of an animated file -> pillow's name of its format, the ms that its times are whole in, and
# what it is saved with.
ANIMATED: dict[str, tuple[str, int, dict[str, object]]] = {
    ".apng": ("PNG", 1, {}),
    ".gif": ("GIF", 10, {}),
    ".webp": ("WEBP", 1, {"quality": 90}),
}
MOST_BYTES = 2 << 30  # of pictures that an animated file keeps in memory until it is whole


def check_animation(out: Path, frames: int, width: int, height: int) -> None:
    """UserError where `out` is no file of pictures, or an animated one too large."""
    suffix = out.suffix.lower()
    if suffix != ".png" and suffix not in ANIMATED:
        kinds = ", ".join(ANIMATED)
        raise UserError(f"a series of pictures is .png, an animated one {kinds}, not {out.name}")
    size = 3 * width * height * frames
    if suffix in ANIMATED and size > MOST_BYTES:
        raise UserError(
            f"{frames:,} frames of {width}x{height} take {size / 2**30:.1f} GiB until {out.name} "
            f"is whole, more than {MOST_BYTES >> 30}: a numbered series (.png) takes one at a time"
        )


def series_path(out: Path, number: int, frames: int) -> Path:
    """`walk.png`: `walk-0000.png` and so on, with as many digits as the last one needs."""
    digits = max(4, len(str(frames - 1)))
    return out.with_name(f"{out.stem}-{number:0{digits}d}{out.suffix}")


def durations(frames: int, fps: float, unit: int) -> list[int]:
    """ms that each frame stays, whole units, so that their sum never strays by more than one."""
    ends = np.rint(np.arange(frames + 1) * 1000 / (fps * unit)).astype(int)
    return np.maximum(unit, unit * np.diff(ends)).tolist()


def save_pictures(folder: Path, out: Path, pictures: Iterator[U8], frames: int, fps: float) -> int:
    """Writes them into `folder` by the name of `out`; how many files came of it."""
    if out.suffix.lower() == ".png":
        for number, pixels in enumerate(pictures):
            save_png(folder / series_path(out, number, frames).name, pixels)
        return frames
    kind, unit, settings = ANIMATED[out.suffix.lower()]
    first, *rest = [Image.fromarray(pixels) for pixels in pictures]
    first.save(
        folder / out.name,
        kind,
        save_all=True,
        append_images=rest,
        duration=durations(frames, fps, unit),
        loop=0,
        **settings,
    )
    return 1
