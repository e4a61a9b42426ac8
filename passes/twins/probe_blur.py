"""Twin of probe_blur.wgsl: a probe's levels of blur."""

from typing import Any

import numpy as np

from passes.probe_levels import texel_lanes
from passes.twins.probe_layout import level_sizes, probe_corner
from passes.twins.wgsl_functions import F32


def probe_blur(frame: Any, probe_light: F32, probe_out: F32) -> None:
    """Writes the levels into `probe_out` [size, size + size / 2, 4]."""
    size = probe_out.shape[0]
    lit = probe_light.reshape(size, size, 4)
    for level, side in enumerate(level_sizes(size)):
        block, lanes = size // side, texel_lanes(level)
        blocks = lit.reshape(side, block, side, block, 4).transpose(0, 2, 1, 3, 4)
        shares = blocks.reshape(side, side, -1, lanes, 4)
        sums = np.zeros((side, side, lanes, 4), np.float32)
        for share in range(shares.shape[2]):
            sums += shares[:, :, share]
        total = np.zeros((side, side, 4), np.float32)
        for lane in range(lanes):
            total += sums[:, :, lane]
        column, row = probe_corner(size, level)
        mean = total / np.float32(block * block)
        probe_out[row : row + side, column : column + side] = mean
