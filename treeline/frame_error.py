"""How far one frame is from a reference: the mean over several, each of other random numbers."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.gpu.errors import CheckFailed
from passes.hybrid import HybridFrame
from treeline.image_error import F32, ImageError, image_error

ERROR_FRAMES = 4  # whose errors are averaged
MEASURES = ("relative_mse", "mean_relative", "bias", "ssim", "flip")


@dataclass(frozen=True, slots=True)
class FrameError:
    """`pictures` [frames][height, width, 3] linear, `errors` of each."""

    pictures: tuple[F32, ...]
    errors: tuple[ImageError, ...]

    def mean(self, measure: str) -> float | None:
        """Of one of MEASURES over the frames; None where it does not exist."""
        values = self._values(measure)
        return None if values is None else float(values.mean())

    def standard_error(self, measure: str) -> float | None:
        """Of that mean; None for a single frame."""
        values = self._values(measure)
        if values is None or len(values) < 2:
            return None
        return float(values.std(ddof=1) / np.sqrt(len(values)))

    def _values(self, measure: str) -> NDArray[np.float64] | None:
        values = [getattr(error, measure) for error in self.errors]
        return None if None in values else np.array(values, np.float64)

    @property
    def bad_pixels(self) -> tuple[tuple[int, int], ...]:
        """(x, y) of those that were not finite in any frame, or in the reference."""
        return tuple(sorted({at for error in self.errors for at in error.bad_pixels}))


def frame_error(
    frame: HybridFrame, reference: F32, frames: int = ERROR_FRAMES, first_index: int = 0
) -> FrameError:
    """Draws so many frames, one sample each, and compares each. CheckFailed where one was not
    whole."""
    pictures, errors = [], []
    for index in range(first_index, first_index + frames):
        pictures.append(draw_sample(frame, index))
        errors.append(image_error(pictures[-1], reference, frame.inputs.exposure))
    return FrameError(tuple(pictures), tuple(errors))


def draw_sample(frame: HybridFrame, index: int) -> F32:
    """The linear picture of one frame; one whose queues were too small is drawn again."""
    for _ in range(3):
        stats = frame.run(index)
        if stats.valid:
            return frame.radiance()
    raise CheckFailed(f"a frame misses rays: {'; '.join(stats.failures) or 'no room'}")


def bad_pixels_sentence(pixels: Sequence[tuple[int, int]]) -> str:
    """Which pixels are not finite; empty where all are."""
    if not pixels:
        return ""
    named = ", ".join(f"({x}, {y})" for x, y in pixels[:4])
    more = f" and {len(pixels) - 4} more" if len(pixels) > 4 else ""
    return f"{len(pixels)} pixels are not finite and left out of the errors: {named}{more}"


def error_fields(found: FrameError) -> dict[str, Any]:
    """Of a row or a record: each measure with its standard error, and how many pixels are bad."""
    fields: dict[str, Any] = {}
    for measure in MEASURES:
        fields[measure] = found.mean(measure)
        fields[f"{measure}_sem"] = found.standard_error(measure)
    return fields | {"bad_pixels": len(found.bad_pixels)}
