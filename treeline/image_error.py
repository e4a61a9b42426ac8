"""How far a picture is from a reference: linear radiance x against r, [height, width, 3] each.

relative MSE: mean over pixels and channels of (x - r)^2 / (r^2 + 0.01) (Rousselle, Knaus, Zwicker,
"Adaptive Sampling and Reconstruction using Greedy Error Minimization", 2011).
trimmed MSE: the same without the WORST_SHARE of pixels that are farthest off. Where it is far below
the relative MSE, a few pixels (a lamp that one path in thousands finds) outweigh all others.
mean relative error: mean of |x - r| / (m + 0.01), m being the mean of r's three channels.
bias: sum of x over sum of r, less 1: noise averages out of it.
SSIM (Wang et al. 2004, Gaussian window, by scikit-image) and FLIP (Andersson et al. 2020, LDR at 67
pixels a degree, by NVIDIA's flip-evaluator) compare what a screen shows: tone-mapped sRGB.

Pixels that are not finite in either picture are counted, named and left out.
"""

from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from passes.twins.tone_map import linear_to_srgb, tone_map

F32 = NDArray[np.float32]

FLOOR = 0.01  # keeps the relative errors of black pixels finite
WORST_SHARE = 0.001  # of the pixels, rounded down, that the trimmed MSE leaves out
SSIM_SIDE = 11  # pixels a side of SSIM's window
PIXELS_PER_DEGREE = 67.0  # 0.7 m from a 0.7 m wide screen of 3,840 pixels, FLIP's own default
FORMULAS = (
    "relative MSE: mean of (x - r)^2 / (r^2 + 0.01); trimmed: without the worst 0.1% of pixels; "
    "mean relative: mean of |x - r| / (m + 0.01), m the mean of r's channels; bias: sum x / "
    "sum r - 1; linear radiance. SSIM and FLIP (67 pixels a degree): of the tone-mapped picture."
)


@dataclass(frozen=True, slots=True)
class ImageError:
    """`bias` is None where the reference is black, `ssim` where the picture is smaller than its
    window; it and `flip` where nobody asked or their library is not installed. `bad_pixels` are
    (x, y) of those that are not finite, in either picture."""

    relative_mse: float
    trimmed_mse: float
    mean_relative: float
    bias: float | None
    ssim: float | None
    flip: float | None
    bad_pixels: tuple[tuple[int, int], ...]


def image_error(
    picture: F32, reference: F32, exposure: float = 1.0, *, perceptual: bool = True
) -> ImageError:
    """`perceptual`: SSIM and FLIP, too, which take a second a megapixel. ValueError where the sizes
    differ."""
    x, r, good = _finite(picture, reference)
    bad = tuple((int(column), int(row)) for row, column in np.argwhere(~good))
    kept = int(good.sum())
    squares = ((x - r) ** 2 / (r * r + FLOOR)).mean(axis=2, dtype=np.float64)[good]
    differences = np.abs(x - r) / (r.mean(axis=2, keepdims=True) + FLOOR)
    total = _sum(r)
    return ImageError(
        relative_mse=float(squares.mean()) if kept else 0.0,
        trimmed_mse=_trimmed_mean(squares) if kept else 0.0,
        mean_relative=_sum(differences) / (3 * kept) if kept else 0.0,
        bias=_sum(x) / total - 1.0 if total > 0 else None,
        ssim=_ssim(x, r, exposure) if perceptual else None,
        flip=_flip_mean(x, r, good, exposure) if perceptual else None,
        bad_pixels=bad,
    )


def _sum(values: NDArray[Any]) -> float:
    return float(values.sum(dtype=np.float64))


def _trimmed_mean(values: NDArray[np.float64]) -> float:
    """Of [n], without the largest WORST_SHARE of them."""
    keep = len(values) - int(WORST_SHARE * len(values))
    return float(np.partition(values, keep - 1)[:keep].mean())


def _finite(picture: F32, reference: F32) -> tuple[Any, Any, NDArray[np.bool_]]:
    """Both, with black where either is not finite, and where both are."""
    if picture.shape != reference.shape:
        raise ValueError(f"a picture of {picture.shape} against a reference of {reference.shape}")
    both = np.isfinite(picture) & np.isfinite(reference)
    good = np.asarray(both.all(axis=2), np.bool_)
    black = np.float32(0.0)
    x, r = (np.where(good[..., None], image, black) for image in (picture, reference))
    return x, r, good


def relative_error_map(picture: F32, reference: F32) -> NDArray[np.float64]:
    """[height, width] a pixel's share of the mean relative error; NaN where it is not finite."""
    x, r, good = _finite(picture, reference)
    errors = np.abs(x - r).mean(axis=2) / (r.mean(axis=2) + FLOOR)
    return np.where(good, errors, np.nan)


def flip_map(picture: F32, reference: F32, exposure: float = 1.0) -> F32 | None:
    """[height, width] 0 (equal) to 1; None without the library."""
    x, r, _ = _finite(picture, reference)
    return _flip(x, r, exposure)


def displayed(radiance: NDArray[Any], exposure: float = 1.0) -> F32:
    """What a screen shows of linear radiance: sRGB 0 to 1, as the frame's last pass makes it."""
    linear = np.maximum(np.asarray(radiance, np.float32) * np.float32(exposure), np.float32(0.0))
    return linear_to_srgb(tone_map(linear)).astype(np.float32)


def missing_libraries() -> tuple[str, ...]:
    """Of those that SSIM and FLIP are measured with."""
    return tuple(name for name in ("skimage", "flip_evaluator") if find_spec(name) is None)


def _ssim(x: NDArray[Any], r: NDArray[Any], exposure: float) -> float | None:
    if min(x.shape[:2]) < SSIM_SIDE or find_spec("skimage") is None:
        return None
    from skimage.metrics import structural_similarity

    return float(
        structural_similarity(
            displayed(r, exposure),
            displayed(x, exposure),
            data_range=1.0,
            channel_axis=2,
            gaussian_weights=True,
            sigma=1.5,
            use_sample_covariance=False,
        )
    )


def _flip(x: NDArray[Any], r: NDArray[Any], exposure: float) -> F32 | None:
    if find_spec("flip_evaluator") is None:
        return None
    from flip_evaluator import evaluate

    errors, _, _ = evaluate(
        displayed(r, exposure),
        displayed(x, exposure),
        "LDR",
        applyMagma=False,
        parameters={"ppd": PIXELS_PER_DEGREE},
    )
    return np.asarray(errors, np.float32)[..., 0]


def _flip_mean(
    x: NDArray[Any], r: NDArray[Any], good: NDArray[np.bool_], exposure: float
) -> float | None:
    errors = _flip(x, r, exposure)
    if errors is None:
        return None
    return float(errors[good].mean(dtype=np.float64)) if good.any() else 0.0
