"""A frame's error against a reference: the report's row, and its lines of text."""

from dataclasses import dataclass

from treeline.frame_error import FrameError, error_fields
from treeline.image_error import F32, FORMULAS, missing_libraries
from treeline.report_row import Row, add, make_row

ROW = "error/frame"
# Field of the row -> what people read.
ERROR_LINES = {
    "relative_mse": "relative MSE",
    "trimmed_mse": "the same without the worst 0.1% of pixels",
    "mean_relative": "mean relative error",
    "bias": "bias of the whole picture",
    "ssim": "SSIM",
    "flip": "FLIP, mean",
}


@dataclass(frozen=True, slots=True)
class Compared:
    """A frame's error, and the reference that it was measured against; `source` names that."""

    found: FrameError
    reference: F32
    source: str
    samples: int | None  # of the reference, as far as it is known
    exposure: float


def error_rows(compared: Compared) -> list[Row]:
    frames = len(compared.found.errors)
    row = make_row(ROW, frames, 0.0)
    row["run"] = {}
    add(row, "compared", **error_fields(compared.found))
    row |= {
        "reference": compared.source,
        "reference_samples": compared.samples,
        "bad_pixels_at": [list(at) for at in compared.found.bad_pixels[:16]],
        "formulas": FORMULAS,
    }
    return [row]


def error_sentence(row: Row) -> str:
    """What was compared with what."""
    samples = row["reference_samples"]
    made = f" of {samples:,} samples" if samples else ""
    text = f"Means of {row['iterations']} frames of one sample, against {row['reference']}{made}."
    if row["bad_pixels"]:
        text += f" {row['bad_pixels']:,} pixels are not finite and left out."
    missing = missing_libraries()
    if missing:
        text += f" SSIM and FLIP need {' and '.join(missing)}: pip install 'treeline[metrics]'."
    return text


def error_lines(row: Row) -> list[tuple[str, str, str]]:
    """(measure, value, standard error) as text."""
    return [
        (label, precise(row[field]), precise(row[f"{field}_sem"]))
        for field, label in ERROR_LINES.items()
    ]


def precise(value: float | None) -> str:
    """Errors keep three significant digits."""
    return "-" if value is None else f"{value:.3g}"
