"""What the random numbers of a frame are (option `sampler`, passes/shaders/sample_number.wgsl).

* `hash`: every number by itself.
* `blue`: blue noise between pixels, from a table (assets/generate_blue_noise.py), so that a
  picture's noise has no coarse spots; all pixels go through one Sobol sequence from frame to frame.
* `sobol`: a Sobol sequence of its own, scrambled, for each pixel: means converge fastest.
"""

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

SAMPLERS = ("hash", "blue", "sobol")
BLUE_SIDE = 64  # pixels of the table
BLUE_BITS = 6  # of a place along a side
_TABLE = Path(__file__).parents[1] / "assets" / "blue_noise.npy"


@cache
def blue_noise_rows() -> Any:
    """[n, 4] words for a scene's `tables`: ranks, row by row, two in a word."""
    ranks = np.load(_TABLE)
    assert ranks.shape == (BLUE_SIDE, BLUE_SIDE)
    return ranks.astype("<u2").view(np.uint32).reshape(-1, 4)


def wgsl() -> str:
    """Numbers of the samplers and of the table."""
    numbers = "".join(
        f"const SAMPLER_{name.upper()}: u32 = {number}u;\n" for number, name in enumerate(SAMPLERS)
    )
    sizes = f"const BLUE_SIDE: u32 = {BLUE_SIDE}u;\nconst BLUE_BITS: u32 = {BLUE_BITS}u;\n"
    return numbers + sizes
