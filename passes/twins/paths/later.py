"""Twin of paths/later.wgsl: what the record says."""

from typing import Any

import numpy as np

from passes.twins.wgsl_functions import F32, U32, Flags, unpack_2x16_float


def path_of(frame: Any, surface: U32, lobe_table: U32, records: Any) -> tuple[F32, Flags]:
    """[n, 3] weights, and [n] whether the ray sees lights."""
    first, rest = (unpack_2x16_float(records["path"][:, i]) for i in range(2))
    return np.concatenate([first, rest[:, :1]], -1), np.asarray(rest[:, 1] > 0.0)
