"""The embedded hall against a stored picture, on llvmpipe only: other drivers round differently.

A failure leaves the picture drawn and the difference (amplified) beside the reference in
tests/pictures. After an intended change, look at `hall_160x90.actual.png` and let it take the
reference's place.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

PICTURES = Path(__file__).resolve().parents[1] / "pictures"
SAMPLES = 4
# Bytes of 255. llvmpipe's versions fuse and round differently: a reflection ray that grazes an edge
# or a random direction that moves a little changes single pixels, not their mean.
MEAN_TOLERANCE = 1.0
PIXEL_TOLERANCE = 24
PIXELS_BEYOND = 0.02


def compare(drawn: Any, name: str) -> str:
    """What is wrong, or nothing."""
    reference = PICTURES / f"{name}.png"
    actual = PICTURES / f"{name}.actual.png"
    difference_path = PICTURES / f"{name}.difference.png"
    if not reference.exists():
        Image.fromarray(drawn).save(actual)
        return f"there is no {reference.name}; what was drawn is in {actual}"
    stored = np.asarray(Image.open(reference).convert("RGB")).astype(int)
    if stored.shape != drawn.shape:
        return f"{reference.name} is {stored.shape}, the picture {drawn.shape}"
    difference = np.abs(stored - drawn)
    beyond = float((difference.max(-1) > PIXEL_TOLERANCE).mean())
    shift = np.abs((drawn - stored).mean((0, 1)))
    if beyond <= PIXELS_BEYOND and difference.mean() <= 2 * MEAN_TOLERANCE:
        if shift.max() <= MEAN_TOLERANCE:
            for path in (actual, difference_path):
                path.unlink(missing_ok=True)
            return ""
    Image.fromarray(drawn).save(actual)
    Image.fromarray((8 * difference).clip(0, 255).astype(np.uint8)).save(difference_path)
    return (
        f"{beyond:.1%} of the pixels differ by more than {PIXEL_TOLERANCE}, mean difference "
        f"{difference.mean():.2f}, mean shift {shift.max():.2f}; see {difference_path}"
    )


@pytest.fixture(scope="module")
def picture(draw: Any, hall: Any, device: Any) -> Any:
    if "llvmpipe" not in device.info.adapter.lower():
        pytest.skip(f"pictures are compared on llvmpipe only, this is {device.info.adapter}")
    drawn = draw(hall, 160, 90, samples=SAMPLES)
    assert drawn.stats.valid
    return drawn.frame.image()


def test_the_hall_looks_as_it_did(picture: Any) -> None:
    assert compare(picture, "hall_160x90") == ""


def test_the_hall_is_a_picture(picture: Any) -> None:
    """Independent of the reference: it is neither black, nor burnt, nor flat."""
    grey = picture.mean(-1)
    assert 30 < grey.mean() < 200 and grey.std() > 20
    assert (grey < 3).mean() < 0.3 and (grey > 252).mean() < 0.1


def test_a_change_is_noticed(picture: Any) -> None:
    moved = np.roll(picture, 2, axis=1)
    brighter = (picture * 1.05).clip(0, 255).astype(np.uint8)
    for wrong in (moved, brighter):
        assert "see" in compare(wrong, "hall_160x90")
    compare(picture, "hall_160x90")  # takes the leftovers away
