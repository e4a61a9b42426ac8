"""One bay of the arcade: the arch with its mouldings, the wall above, the cornice.

Local frame: the wall's middle plane is x = 0, the bay runs along Z from -2 to 2 m, y = 0 is the
springing. Front and back are alike; the cornice projects to +X.
"""

from __future__ import annotations

import numpy as np

from assets.hall.geometry import Floats, MeshData, join, moved, placed, tinted
from assets.hall.shapes import arc_frames, box, convex, loft, sweep

BAY = 4.0
HALF_THICKNESS = 0.32
WALL_HEIGHT = 2.5
CORNICE_HEIGHT = 0.9


def arch() -> MeshData:
    """The arch ring with soffit and fasciae, spandrel walls on both faces, and a keystone."""
    return join(
        [_ring(), _spandrel(), moved(_spandrel(), placed(scale=(-1.0, 1.0, 1.0))), _keystone()]
    )


def cornice() -> MeshData:
    """Architrave, frieze, dentils and crown along one bay; back at x = 0, top at CORNICE_HEIGHT."""
    profile = [
        (0.0, 0.0),
        (0.03, 0.0),
        (0.03, 0.10),
        (0.055, 0.10),
        (0.055, 0.20),
        (0.10, 0.24),
        (0.10, 0.27),
        (0.02, 0.27),
        (0.02, 0.50),
        (0.06, 0.54),
        (0.10, 0.54),
        (0.10, 0.68),
        (0.22, 0.68),
        (0.22, 0.72),
        (0.30, 0.74),
        (0.30, 0.80),
        (0.33, 0.82),
        (0.37, 0.86),
        (0.38, CORNICE_HEIGHT),
        (0.0, CORNICE_HEIGHT),
    ]
    line = np.array(profile)
    points = np.stack([np.column_stack([line, np.full(len(line), z)]) for z in (-BAY / 2, BAY / 2)])
    height = line[:, 1]
    shade = 1.0 - 0.35 * np.exp(-(((height - 0.60) / 0.09) ** 2))
    shade -= 0.22 * np.exp(-(((height - 0.28) / 0.03) ** 2))
    colors = np.repeat(np.repeat(shade[None, :, None], 2, axis=0), 3, axis=2)
    tooth = tinted(box((0.09, 0.11, 0.13), (0.145, 0.615, 0.0)), 0.9)
    teeth = [moved(tooth, placed(z=-1.9 + 0.2 * k)) for k in range(20)]
    return join([loft(points, crease_degrees=20.0, colors=colors), *teeth])


def _ring() -> MeshData:
    half = HALF_THICKNESS
    face = [
        (1.60, half),
        (1.665, half),
        (1.665, half + 0.025),
        (1.77, half + 0.025),
        (1.77, half + 0.05),
        (1.86, half + 0.05),
        (1.89, half + 0.10),
        (1.95, half + 0.11),
        (1.95, half - 0.02),
    ]
    profile = np.array([*face, *[(radius, -offset) for radius, offset in face[::-1]]])
    return sweep(profile[::-1], arc_frames(1.0, 0.0, 180.0, 36) + _no_growth(36))


def _no_growth(steps: int) -> Floats:
    """arc_frames puts the origin on the arc; a profile in absolute radii wants it at the centre."""
    frames = arc_frames(1.0, 0.0, 180.0, steps)
    shift = np.zeros_like(frames)
    shift[:, 0] = -frames[:, 0]
    return shift


def _spandrel() -> MeshData:
    """The wall face at x = +HALF_THICKNESS between the ring and the bay's rectangle."""
    corner = np.degrees(np.arctan2(WALL_HEIGHT, BAY / 2))
    angle = np.radians(
        np.unique(np.concatenate([np.linspace(0.0, 180.0, 33), [corner, 180.0 - corner]]))
    )
    out = np.stack([np.sin(angle), np.cos(angle)], axis=1)  # (up, along)
    reach = np.minimum(
        WALL_HEIGHT / np.maximum(out[:, 0], 1e-9), BAY / 2 / np.maximum(np.abs(out[:, 1]), 1e-9)
    )
    inner, outer = 1.94 * out, reach[:, None] * out
    points = np.stack(
        [np.column_stack([np.full(len(ring), HALF_THICKNESS), ring]) for ring in (inner, outer)]
    )
    return _wall_mapped(points)


def _wall_mapped(points: Floats) -> MeshData:
    """A loft in the plane of X with one texture repeat every two metres."""
    uvs = np.stack([points[..., 2] / 2.0, -points[..., 1] / 2.0], axis=-1)
    return loft(points, uvs=uvs)


def _keystone() -> MeshData:
    half, low, high = HALF_THICKNESS + 0.13, 1.56, 2.10
    points = np.array(
        [
            (x, y, z * width)
            for y, width in ((low, 0.11), (high, 0.17))
            for x in (-half, half)
            for z in (-1.0, 1.0)
        ]
    )
    center = np.array([0.0, (low + high) / 2, 0.0])
    faces = [(0, 1, 3, 2), (4, 5, 7, 6), (0, 1, 5, 4), (2, 3, 7, 6), (0, 2, 6, 4), (1, 3, 7, 5)]
    return convex(points - center, faces, center=(0.0, float(center[1]), 0.0))
