"""How far one frame is from a reference: the mean over several, each of other random numbers."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from passes.frame_uniforms import FrameInputs
from passes.hybrid import HybridFrame
from treeline.image_error import F32, ImageError, image_error
from treeline.whole_frame import draw_whole

ERROR_FRAMES = 4  # whose errors are averaged
HISTORY_FRAMES = 16  # that a frame with memory draws before it is looked at, that one included
SEED_STEP = 101  # between the seeds of one picture and the next
PERCEPTUAL = ("ssim", "flip")  # measured of the first picture
MEASURES = ("relative_mse", "trimmed_mse", "mean_relative", "bias", "ssim", "flip")


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
        told = self.errors[:1] if measure in PERCEPTUAL else self.errors
        values = [getattr(error, measure) for error in told]
        return None if None in values else np.array(values, np.float64)

    @property
    def bad_pixels(self) -> tuple[tuple[int, int], ...]:
        """(x, y) of those that were not finite in any frame, or in the reference."""
        return tuple(sorted({at for error in self.errors for at in error.bad_pixels}))


def frame_error(
    make_frame: Callable[[], HybridFrame],
    reference: F32,
    frames: int = ERROR_FRAMES,
    *,
    samples: int = 1,
    inputs: Sequence[FrameInputs] = (),
) -> FrameError:
    """Draws so many pictures of `samples` frames each, with a seed of its own, and compares each. A
    frame that remembers light draws HISTORY_FRAMES (or one for each of `inputs`), and the last one
    counts. CheckFailed where one was not whole. SSIM and FLIP are the first picture's alone."""
    pictures: list[F32] = []
    errors: list[ImageError] = []
    for picture, exposure in draw_pictures(make_frame, frames, samples=samples, inputs=inputs):
        errors.append(image_error(picture, reference, exposure, perceptual=not pictures))
        pictures.append(picture)
    return FrameError(tuple(pictures), tuple(errors))


def draw_pictures(
    make_frame: Callable[[], HybridFrame],
    frames: int,
    *,
    samples: int = 1,
    inputs: Sequence[FrameInputs] = (),
) -> Iterator[tuple[F32, float]]:
    """The pictures that `frame_error` compares, one after the other, each with its exposure."""
    frame = make_frame()
    seed = frame.inputs.seed
    for number in range(frames):
        if number and frame.options.history:
            frame = make_frame()  # which remembers nothing
        frame.inputs = replace(frame.inputs, seed=seed + SEED_STEP * number)
        yield draw_picture(frame, samples, inputs), frame.inputs.exposure


def draw_picture(frame: HybridFrame, samples: int, inputs: Sequence[FrameInputs] = ()) -> F32:
    """The linear mean of `samples` frames; of a frame that remembers, the last of those that lead
    up to it."""
    if frame.options.history:
        for index, given in enumerate(inputs or [frame.inputs] * HISTORY_FRAMES):
            draw_whole(frame, index, 1, replace(given, seed=frame.inputs.seed))
        return frame.radiance()
    for sample in range(samples):
        draw_whole(frame, sample, sample + 1)
    return frame.radiance()


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
