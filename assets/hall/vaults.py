"""Ceilings: the nave's coffered barrel vault, and the aisles' groin vault with ribs.

Nave vault: half circle of NAVE_RADIUS about the Z axis, y = 0 the springing, one bay along Z.
Aisle vault: two elliptic barrels that cross; y = 0 the springing, its middle at the origin.
"""

from __future__ import annotations

import numpy as np

from assets.hall.arcade import BAY
from assets.hall.geometry import Floats, MeshData, join, moved, placed, shaded
from assets.hall.shapes import arc_frames, lathe, loft, sweep, tube

NAVE_RADIUS = 3.18
AISLE_HALF = 1.49
AISLE_RISE = 1.75
COFFERS_ROUND, COFFERS_ALONG = 9, 2
RIB_HALF = 0.25


def nave_vault() -> list[tuple[str, MeshData]]:
    """One bay of coffers with a gilded rosette in each, and half a transverse rib at both ends."""
    coffers, rosettes = [], []
    span = (BAY - 2.0 * RIB_HALF) / COFFERS_ALONG
    step = 180.0 / COFFERS_ROUND
    for row in range(COFFERS_ROUND):
        for column in range(COFFERS_ALONG):
            middle = (row + 0.5) * step
            z = -BAY / 2 + RIB_HALF + (column + 0.5) * span
            coffers.append(_coffer(middle, z, step / 2.0, span / 2.0))
            place = placed(roll=middle - 90.0)
            place[:3, 3] = _on_vault(np.array([middle]), np.array([z]), 0.215)[0]
            rosettes.append(moved(_rosette(), place))
    profile = np.array(
        [
            (-0.14, RIB_HALF),
            (-0.14, 0.07),
            (-0.10, 0.04),
            (-0.10, -0.04),
            (-0.14, -0.07),
            (-0.14, -RIB_HALF),
            (0.03, -RIB_HALF),
            (0.03, RIB_HALF),
        ]
    )
    rib = sweep(profile, arc_frames(NAVE_RADIUS, 0.0, 180.0, 36, plane="xy"))
    return [
        ("plaster", join(coffers)),
        ("limestone", moved(rib, placed(z=-BAY / 2))),
        ("brass", join(rosettes)),
    ]


def aisle_vault() -> list[tuple[str, MeshData]]:
    """One aisle bay: webs, diagonal and transverse ribs, a boss."""
    phi = np.radians(np.linspace(-90.0, 90.0, 15))
    s, t = np.meshgrid(np.sin(phi), np.sin(phi), indexing="ij")
    height = AISLE_RISE * np.sqrt(np.clip(1.0 - np.minimum(np.abs(s), np.abs(t)) ** 2, 0.0, 1.0))
    points = np.stack([AISLE_HALF * s, height, BAY / 2 * t], axis=-1).reshape(-1, 3)
    count = len(phi)
    index = np.arange(count * count).reshape(count, count)
    a, b = index[:-1, :-1].ravel(), index[1:, :-1].ravel()
    c, d = index[1:, 1:].ravel(), index[:-1, 1:].ravel()
    # The cut of each square follows the groin, else the crease turns into a saw.
    rising = (s[:-1, :-1] + s[1:, 1:]).ravel() * (t[:-1, :-1] + t[1:, 1:]).ravel() >= 0.0
    first = np.where(rising[:, None], np.stack([a, b, c], 1), np.stack([a, b, d], 1))
    second = np.where(rising[:, None], np.stack([a, c, d], 1), np.stack([b, c, d], 1))
    away = np.sqrt(np.clip(1.0 - np.maximum(np.abs(s), np.abs(t)) ** 2, 0.0, 1.0))
    shade = np.repeat((0.70 + 0.30 * away).reshape(-1, 1), 3, axis=1)
    web = shaded(points, np.concatenate([first, second]), colors=shade)
    ribs = []
    arc = np.radians(np.linspace(-90.0, 90.0, 19))
    for side in (-1.0, 1.0):
        path = np.stack(
            [AISLE_HALF * np.sin(arc), AISLE_RISE * np.cos(arc), side * BAY / 2 * np.sin(arc)], 1
        )
        ribs.append(tube(path * (0.99, 0.985, 0.99), 0.065, 6, caps=False))
    path = np.stack([AISLE_HALF * np.sin(arc), AISLE_RISE * np.cos(arc), 0.0 * arc - BAY / 2], 1)
    ribs.append(tube(path * (0.99, 0.985, 1.0), 0.12, 6, caps=False))
    boss = lathe(
        [(0.0, -0.13), (0.05, -0.12), (0.10, -0.07), (0.13, -0.06), (0.17, 0.0), (0.15, 0.06)], 20
    )
    return [
        ("plaster", web),
        ("limestone", join(ribs)),
        ("brass", moved(boss, placed(y=AISLE_RISE - 0.03))),
    ]


def _coffer(middle: float, z: float, half_angle: float, half_along: float) -> MeshData:
    """A stepped recess: nested loops on the vault, each (share of the cell, depth, tone)."""
    loops = [
        (1.0, 0.0, 1.0),
        (0.80, 0.0, 0.98),
        (0.775, 0.09, 0.72),
        (0.62, 0.09, 0.80),
        (0.595, 0.17, 0.55),
        (0.45, 0.17, 0.62),
        (0.43, 0.22, 0.45),
        (0.0, 0.22, 0.56),
    ]
    side = np.linspace(-1.0, 1.0, 5)[:-1]
    one = np.ones_like(side)
    square = np.concatenate(
        [np.stack(pair, 1) for pair in ((side, -one), (one, side), (-side, one), (-one, -side))]
    )
    rows = [
        _on_vault(
            middle + half_angle * share * square[:, 0], z + half_along * share * square[:, 1], depth
        )
        for share, depth, _ in loops
    ]
    tone = np.array([tone for *_, tone in loops])
    colors = np.repeat(np.repeat(tone[:, None, None], len(square), axis=1), 3, axis=2)
    return loft(np.stack(rows), closed=True, flip=True, crease_degrees=30.0, colors=colors)


def _on_vault(degrees: Floats, along: Floats, depth: float) -> Floats:
    angle = np.radians(degrees)
    radius = NAVE_RADIUS + depth
    return np.stack([radius * np.cos(angle), radius * np.sin(angle), along], axis=-1)


def _rosette() -> MeshData:
    """Eight petals and a knob, facing -Y."""
    angle = np.linspace(0.0, 2.0 * np.pi, 16, endpoint=False)
    petals = 1.0 + 0.18 * np.cos(8.0 * angle)
    rows = [
        (0.14, 0.0, True),
        (0.125, -0.035, True),
        (0.055, -0.03, False),
        (0.04, -0.075, False),
        (0.0, -0.09, False),
    ]
    points = [
        np.stack(
            [
                radius * (petals if lobed else 1.0) * np.cos(angle),
                np.full(16, y),
                radius * (petals if lobed else 1.0) * np.sin(angle),
            ],
            1,
        )
        for radius, y, lobed in rows
    ]
    return loft(np.stack(points), closed=True)
