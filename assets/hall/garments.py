"""The figure's clothes that are not blended solids: skirt with folds, belt, cloak.

Same frame as `figure.py`: bind pose, metres, +Z is forwards.
"""

from __future__ import annotations

import numpy as np

from assets.hall.geometry import Floats, MeshData, join, tinted
from assets.hall.sdf import Shape
from assets.hall.shapes import loft


def skirt() -> Shape:
    """From the belt to the knee: an oval cone with folds that deepen downwards, hollow below."""

    def distance(points: Floats) -> Floats:
        x, y, z = points.T
        drop = np.clip((1.03 - y) / 0.47, -0.2, 1.1)
        around = np.arctan2(x, z)
        fold = np.cos(11.0 * around + 0.7 * np.sin(3.0 * around)) + 0.4 * np.cos(5.0 * around + 1.1)
        down = np.clip(drop, 0.0, 1.0)
        radius = 0.142 + 0.118 * down**0.85 + 0.013 * down**1.3 * fold
        oval = np.hypot(x, z * 1.22 - 0.006)
        outer = (oval - radius) * 0.85
        hollow = np.maximum(outer + 0.036, y - 0.74)
        shell = np.maximum(outer, -hollow)
        hem = 0.565 + 0.010 * np.sin(4.0 * around + 0.5)
        return np.asarray(np.maximum(np.maximum(shell, hem - y), y - 1.06))

    return distance


def belt() -> MeshData:
    """A closed band round the waist with a square buckle."""
    around = np.linspace(0.0, 2.0 * np.pi, 72, endpoint=False)
    rows = [(0.0, 1.012), (0.016, 1.016), (0.018, 1.05), (0.016, 1.084), (0.0, 1.088)]
    points = []
    for offset, height in rows:
        x, z = (0.146 + offset) * np.sin(around), (0.114 + offset) * np.cos(around)
        points.append(np.stack([x, np.full(72, height) - 0.012 * np.cos(around), z], axis=1))
    return loft(np.stack(points), closed=True, crease_degrees=50.0)


def cloak(detail: float) -> MeshData:
    """A sheet over the shoulders and down to the calves, open in front, both faces modelled."""
    columns, rows = max(30, int(66 / detail)), max(16, int(34 / detail))
    t, d = np.meshgrid(np.linspace(-1.0, 1.0, columns), np.linspace(0.0, 1.0, rows) ** 1.25)
    # Down the cloak: neck, top of the shoulder, its edge, then the fall.
    stations = [0.0, 0.04, 0.085, 0.13, 0.18, 0.26, 1.0]
    height = np.interp(d, stations, [1.530, 1.536, 1.524, 1.487, 1.420, 1.31, 0.44])
    width = np.interp(d, stations, [0.070, 0.122, 0.186, 0.240, 0.262, 0.268, 0.305])
    depth = np.interp(d, stations, [0.062, 0.090, 0.122, 0.146, 0.156, 0.162, 0.250])
    opening = np.interp(d, [0.0, 0.10, 0.30, 1.0], [158.0, 142.0, 104.0, 92.0])
    around = np.pi + t * np.radians(opening)  # 180 degrees: the back
    fold = np.cos(13.0 * around + 1.2 * np.sin(2.0 * around)) + 0.5 * np.cos(7.0 * around + 0.6)
    free = np.clip(d * 1.5 - 0.20, 0.0, 1.0)
    ripple = 1.0 + 0.085 * free * fold
    height = height - 0.012 * np.cos(9.0 * around) * d
    boxy = 1.0 - 0.24 * np.clip(d * 8.0, 0.0, 1.0) * (1.0 - d)  # the arms hang inside the corners
    side, ahead = np.sin(around), np.cos(around)
    side, ahead = np.sign(side) * np.abs(side) ** boxy, np.sign(ahead) * np.abs(ahead) ** boxy
    outer = np.stack([width * ripple * side, height, depth * ripple * ahead - 0.020], axis=-1)
    inner = outer - 0.012 * np.stack(
        [np.sin(around), 0.0 * d + 0.5 * (d < 0.1), np.cos(around)], -1
    )
    inner[:, 0], inner[:, -1] = outer[:, 0], outer[:, -1]
    inner[0], inner[-1] = outer[0], outer[-1]
    shade = np.clip(0.80 + 0.22 * fold * free, 0.45, 1.0)
    color = np.repeat(shade[..., None], 3, axis=2)
    return join(
        [
            loft(outer, flip=True, crease_degrees=80.0, colors=color),
            loft(inner, crease_degrees=80.0, colors=0.6 * color),
        ]
    )


def creased(tunic: MeshData) -> MeshData:
    """Darker in the skirt's folds and under the arms."""
    x, y, z = tunic.positions.T
    around = np.arctan2(x, z)
    fold = np.cos(11.0 * around + 0.7 * np.sin(3.0 * around)) + 0.4 * np.cos(5.0 * around + 1.1)
    deep = np.clip((1.0 - y) / 0.3, 0.0, 1.0)
    shade = np.clip(1.0 - 0.16 * deep * (1.0 - fold / 1.4), 0.5, 1.0)
    return tinted(tunic, shade[:, None])
