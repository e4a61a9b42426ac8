"""Floors: inlaid panels of polished stone, instanced over the hall. Tops lie at y = 0.

Tiles have a small chamfer into the joint, so that every edge catches the light and no two tiles
share a plane with a gap of zero.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from assets.hall.geometry import Floats, MeshData, join, moved, placed, tinted
from assets.hall.shapes import box, loft

JOINT = 0.006
DEPTH = 0.005
PANEL = 2.0
Part = tuple[str, MeshData]


def nave_panel(seed: int) -> list[Part]:
    """2 x 2 m: four dark diamonds in a light field (a checkerboard turned by 45 degrees)."""
    rng = np.random.default_rng(seed)
    dark, light = [], []
    diamond = np.array([(0.5, 0.0), (0.0, 0.5), (-0.5, 0.0), (0.0, -0.5)])
    corner = np.array([(0.5, 0.5), (0.0, 0.5), (0.5, 0.0)])
    for x in (-0.5, 0.5):
        for z in (-0.5, 0.5):
            tone = rng.uniform(0.72, 1.0)
            dark.append(_tile(diamond, (x, z), tone, cut=(True,) * 4, turn=int(rng.integers(4))))
            for sign_x in (-1.0, 1.0):
                for sign_z in (-1.0, 1.0):
                    outline = corner * (sign_x, sign_z)
                    order = outline if sign_x * sign_z > 0.0 else outline[[0, 2, 1]]
                    cut = (False, True, False)
                    light.append(_tile(order, (x, z), 1.0, cut=cut))
    return [("floor_dark", join(dark)), ("floor_light", join(light))]


def border(length: float) -> list[Part]:
    """The strip under a row of columns, 1 m wide: light, red, light."""
    light = [_slab(0.30, length, x) for x in (-0.35, 0.35)]
    return [("floor_light", join(light)), ("porphyry", _slab(0.40, length, 0.0))]


def aisle_panel(width: float, length: float, seed: int) -> list[Part]:
    """Square light tiles with a dark frame."""
    rng = np.random.default_rng(seed)
    columns, rows = 3, 4
    size = np.array([(width - 0.3) / columns, (length - 0.3) / rows])
    tiles = []
    for i in range(columns):
        for k in range(rows):
            middle = (
                (i + 0.5) * size[0] - (width - 0.3) / 2,
                (k + 0.5) * size[1] - (length - 0.3) / 2,
            )
            square = np.array([(1, 1), (-1, 1), (-1, -1), (1, -1)]) * size / 2
            tiles.append(
                _tile(
                    square,
                    middle,
                    rng.uniform(0.80, 1.0),
                    cut=(True,) * 4,
                    turn=int(rng.integers(4)),
                )
            )
    frame = [moved(_slab(0.15, length, 0.0), placed(side * (width - 0.15) / 2)) for side in (-1, 1)]
    frame += [
        moved(_slab(width - 0.3, 0.15, 0.0), placed(z=side * (length - 0.15) / 2))
        for side in (-1, 1)
    ]
    return [("floor_light", join(tiles)), ("floor_dark", join(frame))]


def dais() -> list[Part]:
    """Four steps up towards -Z; the back edge is at z = -3.4."""
    steps = []
    for k in range(4):
        front = -0.36 * k
        steps.append(
            box(
                (5.4 - 0.36 * k, 0.17, 3.4 + front),
                (0.0, 0.085 + 0.16 * k, (front - 3.4) / 2),
                bevel=0.012,
            )
        )
    carpet = tinted(box((1.5, 0.012, 1.9), (0.0, 0.16 * 4 + 0.016, -2.4)), 1.0)
    return [("floor_light", join(steps)), ("wool", carpet)]


def _slab(width: float, length: float, x: float) -> MeshData:
    outline = np.array([(1, 1), (-1, 1), (-1, -1), (1, -1)]) * (width / 2, length / 2)
    return _tile(outline, (x, 0.0), 1.0, cut=(True,) * 4)


def _tile(
    outline: Floats, at: Sequence[float], tone: float, *, cut: Sequence[bool], turn: int = 0
) -> MeshData:
    """A flat polygon (x, z) with its edges marked in `cut` chamfered into the joint. Edge k runs
    from corner k to k + 1. The texture turns by quarter turns, so that two tiles differ."""
    count = len(outline)
    following = np.roll(outline, -1, axis=0)
    edge = following - outline
    inward = np.stack([-edge[:, 1], edge[:, 0]], axis=1) / np.linalg.norm(edge, axis=1)[:, None]
    inward *= np.sign(np.einsum("ij,ij->i", inward, outline.mean(axis=0) - outline))[:, None]
    shift = np.where(np.array(cut), JOINT, 0.0)
    top = np.empty_like(outline)
    for k in range(count):  # corner k: where the moved edges k - 1 and k meet
        normals = np.stack([inward[k - 1], inward[k]])
        top[k] = outline[k] + np.linalg.solve(normals, np.array([shift[k - 1], shift[k]]))
    rim_height = -DEPTH
    rows = np.stack(
        [
            np.column_stack([outline[:, 0], np.full(count, rim_height), outline[:, 1]]),
            np.column_stack([top[:, 0], np.zeros(count), top[:, 1]]),
            np.broadcast_to([*top.mean(axis=0)[:1], 0.0, *top.mean(axis=0)[1:]], (count, 3)),
        ]
    )
    rows = rows + np.array([at[0], 0.0, at[1]])
    flat = np.concatenate([rows, rows[:, :1]], axis=1)[..., [0, 2]]
    turned = [flat, flat[..., ::-1] * (-1, 1), -flat, flat[..., ::-1] * (1, -1)][turn]
    uvs = turned * 0.5 + 0.37 * turn
    mesh = loft(rows, closed=True, flip=True, crease_degrees=10.0, uvs=uvs)
    return tinted(mesh, tone)
