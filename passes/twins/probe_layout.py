"""Twin of probe_layout.wgsl: where a reflection probe keeps what."""

import numpy as np

from passes.probe_levels import level_sizes
from passes.twins.octahedral import octahedral_fold
from passes.twins.wgsl_functions import F32, normalize, vector


def probe_corner(size: int, level: int) -> tuple[int, int]:
    """(x, y) of a level's first texel."""
    return (0, 0) if level == 0 else (size, size - (size >> (level - 1)))


def octahedral_direction(place: F32) -> F32:
    """[n, 2] in 0 to 1 -> [n, 3]"""
    p = np.float32(2.0) * place - np.float32(1.0)
    z = np.float32(1.0) - np.abs(p[:, 0]) - np.abs(p[:, 1])
    folded = np.where((z >= 0.0)[:, None], p, octahedral_fold(p))
    return normalize(vector(folded[:, 0], folded[:, 1], z))


def octahedral_place(direction: F32) -> F32:
    """[n, 3] of any length -> [n, 2]"""
    a = np.abs(direction)
    p = direction[:, :2] / (a[:, 0] + a[:, 1] + a[:, 2])[:, None]
    folded = np.where((direction[:, 2] >= 0.0)[:, None], p, octahedral_fold(p))
    return np.asarray(np.float32(0.5) + np.float32(0.5) * folded)


__all__ = ["level_sizes", "octahedral_direction", "octahedral_place", "probe_corner"]
