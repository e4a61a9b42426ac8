"""The error that a sample's noise is measured by."""

from typing import Any

import numpy as np

from treeline.image_error import FLOOR


def relative_mse(picture: Any, reference: Any) -> float:
    """Of some pixels' radiance, as reports have it."""
    return float(np.mean((picture - reference) ** 2 / (reference**2 + FLOOR)))
