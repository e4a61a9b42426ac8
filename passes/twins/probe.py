"""Twin of probe.wgsl: what a reflection probe shows in a direction."""

from typing import Any

import numpy as np

from passes.twins.environment import environment
from passes.twins.probe_layout import level_sizes, octahedral_place, probe_corner
from passes.twins.wgsl_functions import F32, Index, mix

ONE = np.float32(1.0)


def probe_size(probe: F32) -> int:
    """Texels a side of its sharpest level."""
    return int(probe.shape[0])


def probe_texel(probe: F32, level: Index, x: Index, y: Index) -> F32:
    """[n, 4]; `probe` is its texture [size, size + size / 2, 4]."""
    size = probe_size(probe) >> level
    over = (x < 0) | (x >= size)
    x, y = (
        np.where(over, np.where(x < 0, -1 - x, 2 * size - 1 - x), x),
        np.where(over, size - 1 - y, y),
    )
    over = (y < 0) | (y >= size)
    x, y = (
        np.where(over, size - 1 - x, x),
        np.where(over, np.where(y < 0, -1 - y, 2 * size - 1 - y), y),
    )
    levels = len(level_sizes(probe_size(probe)))
    corners = np.array([probe_corner(probe_size(probe), k) for k in range(levels)])[level]
    return probe[corners[:, 1] + y, corners[:, 0] + x]


def probe_bilinear(probe: F32, level: Index, place: F32) -> F32:
    """[n, 4]"""
    size = (probe_size(probe) >> level).astype(np.float32)
    p = place * size[:, None] - np.float32(0.5)
    corner = np.floor(p)
    weight = p - corner
    x, y = corner.astype(np.int64).T
    top, bottom = (
        mix(probe_texel(probe, level, x, row), probe_texel(probe, level, x + 1, row), weight[:, :1])
        for row in (y, y + 1)
    )
    return mix(top, bottom, weight[:, 1:])


def probe_direction(frame: Any, position: F32, direction: F32) -> F32:
    """[n, 3] from the probe's point, of any length."""
    planes = np.where(direction > 0.0, frame["scene_high"][:3], frame["scene_low"][:3])
    t = (planes - position) / np.where(direction == 0.0, np.float32(1.0e-20), direction)
    leaves = np.minimum(t[:, 0], np.minimum(t[:, 1], t[:, 2]))[:, None]
    corrected = position + leaves * direction - frame["probe_origin"][:3]
    return np.where(leaves <= 0.0, direction, corrected)


def probe_cone(
    frame: Any, probe: F32, position: F32, direction: F32, angle: F32
) -> tuple[F32, F32]:
    """Radiance [n, 3] and the part [n] of it that shows surfaces."""
    place = octahedral_place(probe_direction(frame, position, direction))
    size = np.float32(probe_size(probe))
    wanted = np.log2(np.maximum(angle * size * np.float32(0.28209479), ONE))
    most = len(level_sizes(probe_size(probe))) - 1
    level = np.minimum(wanted, np.float32(most))
    sharp = level.astype(np.int64)
    blurred = np.minimum(sharp + 1, most)
    between = (level - sharp.astype(np.float32))[:, None]
    c = mix(probe_bilinear(probe, sharp, place), probe_bilinear(probe, blurred, place), between)
    return c[:, :3] + (ONE - c[:, 3:]) * environment(frame, direction), c[:, 3]


def probe_radiance(frame: Any, probe: F32, position: F32, direction: F32, roughness: F32) -> F32:
    """[n, 3]"""
    angle = np.float32(4.0) * roughness * roughness
    return probe_cone(frame, probe, position, direction, angle)[0]
