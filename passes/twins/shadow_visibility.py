"""Twin of shadow_visibility.wgsl: what shadow results say."""

import numpy as np

from passes.shadow_slots import ShadowSlots
from passes.twins.wgsl_functions import F32, U32


def shadow_visibility(slots: ShadowSlots, results: U32) -> F32:
    """[n] in 0 to 1, of `results` [n]."""
    return np.asarray(results.astype(np.float32) / np.float32(slots.steps))
