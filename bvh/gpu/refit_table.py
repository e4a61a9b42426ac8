"""Bounds of refitted BLASes into the BLAS table, so that a TLAS of the same submission has them.

The headers hold them after a refit; `GpuTlas` reads a table of BLAS_RECORDs. One dispatch for all
refitted BLASes of a scene buffer.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bvh.gpu.refit_records import HEADER_BOUNDS_WORD, NO_BLAS
from bvh.layout import UNIT_WORDS
from engine.gpu.device import Device
from engine.gpu.stage import Stage

U32 = NDArray[np.uint32]

GROUP_SIZE = 256


def refit_table(refitted: U32, words: U32, blases: NDArray[Any]) -> None:
    """Twin of refit_table.wgsl: numbers in `blases` (NO_BLAS for none) of what was refitted."""
    for number in refitted[refitted != NO_BLAS]:
        at = UNIT_WORDS * int(blases[number]["base_unit"]) + HEADER_BOUNDS_WORD
        bounds = words[at : at + 6].view(np.float32)
        if not np.isnan(bounds[0]):
            blases[number]["low"], blases[number]["high"] = bounds[:3], bounds[3:]


class GpuRefitTable:
    """Over the BLASes with the numbers `refitted` in the table."""

    def __init__(self, device: Device, refitted: Sequence[int]) -> None:
        self.stage = Stage(
            device, "refit/table", "bvh/gpu/shaders/refit_table.wgsl", twin=refit_table
        )
        self.groups = -(-len(refitted) // GROUP_SIZE)
        # A buffer has at least four words, and its length is the count.
        numbers = np.full(max(4, -(-len(refitted) // 4) * 4), NO_BLAS, np.uint32)
        numbers[: len(refitted)] = refitted
        self.numbers = numbers
        self.resources = {"refitted": device.upload("refit/numbers", numbers)}

    def encode(self, scope: Any, buffers: dict[str, Any]) -> None:
        """Within the compute pass `scope`: `words` (the scene buffer) and `blases` (the table,
        whose `base_unit`s say where the BLASes are)."""
        self.stage.dispatch(scope, {**self.resources, **buffers}, self.groups)
