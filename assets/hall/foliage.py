"""Plants made of leaf cards: an olive tree, a palm, a broad-leaved plant, ivy for columns.

A card is a sheet of 3 x 3 points folded along its middle and drooping to its tip, mapped to one
cell of the leaf atlas (alpha-tested). Normals lean away from the plant's middle, so that a crown
shades like a volume. Plants grow from y = 0 at the origin.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from assets.hall.geometry import GRID, Floats, MeshData, join
from assets.hall.shapes import tube

SPRAY, IVY, FROND, BROAD = range(4)  # cells of textures.leaf_atlas
Part = tuple[str, MeshData]


def olive_tree(seed: int) -> list[Part]:
    """A small tree, about 2.1 m high, of a crooked stem, branches and some 230 sprays."""
    rng = np.random.default_rng(seed)
    stem = np.array([(0, -0.05, 0), (0.03, 0.3, 0.02), (-0.02, 0.65, 0.05), (0.02, 0.95, 0.0)])
    wood = [tube(stem, [0.055, 0.045, 0.036, 0.03], 9)]
    centers, inside = [], []
    for k in range(9):
        turn = 2.399963 * k + rng.uniform(-0.3, 0.3)
        rise, reach = rng.uniform(0.35, 0.95), rng.uniform(0.28, 0.50)
        start = stem[2] * (1 - k / 9) + stem[3] * (k / 9)
        tip = start + np.array([reach * np.cos(turn), rise, reach * np.sin(turn)])
        bend = 0.5 * (start + tip) + rng.uniform(-0.06, 0.06, 3)
        wood.append(tube([start, bend, tip], [0.022, 0.015, 0.006], 6))
        for _ in range(26):
            along = rng.uniform(0.35, 1.08)
            centers.append(start + along * (tip - start) + rng.normal(0.0, 0.085, 3))
            inside.append(along)
    base = np.array(centers)
    middle = np.array([0.0, 1.35, 0.0])
    outward = _unit(base - middle)
    growth = _unit(outward + rng.normal(0.0, 0.45, base.shape) + (0.0, 0.25, 0.0))
    distance = np.linalg.norm((base - middle) / (0.6, 0.65, 0.6), axis=1)
    tone = np.clip(0.42 + 0.60 * distance, 0.40, 1.0) * rng.uniform(0.85, 1.0, len(base))
    tint = tone[:, None] * np.array([0.92, 1.0, 0.86])
    leaves = _cards(
        base,
        growth,
        rng.normal(0.0, 1.0, base.shape) + outward,
        rng.uniform(0.22, 0.34, len(base)),
        SPRAY,
        0.95,
        tint,
        outward,
        0.25,
        0.10,
    )
    return [("bark", join(wood)), ("leaf", leaves)]


def palm(seed: int) -> list[Part]:
    """A pot palm, about 1.9 m high: arched fronds from a short trunk."""
    rng = np.random.default_rng(seed)
    trunk = [(0, -0.05, 0), (0.02, 0.2, 0), (0.0, 0.42, 0.02)]
    fronds = []
    for k in range(19):
        turn = 2.399963 * k
        lift = np.radians(78.0 - 3.2 * k + rng.uniform(-5.0, 5.0))
        length = rng.uniform(0.95, 1.30)
        along = np.linspace(0.0, 1.0, 9)
        slope = lift - np.radians(95.0) * along**1.4
        out = np.concatenate([[0.0], np.cumsum(np.cos(slope[:-1]))]) * length / 8
        up = np.concatenate([[0.0], np.cumsum(np.sin(slope[:-1]))]) * length / 8
        spine = np.stack(
            [
                0.03 * np.cos(turn) + out * np.cos(turn),
                0.42 + up,
                0.03 * np.sin(turn) + out * np.sin(turn),
            ],
            1,
        )
        side = np.array([-np.sin(turn), 0.0, np.cos(turn)])
        fronds.append(_ribbon(spine, side, 0.30, rng.uniform(0.75, 1.0)))
    return [("bark", tube(trunk, [0.07, 0.06, 0.045], 10)), ("leaf", join(fronds))]


def broad_plant(seed: int) -> list[Part]:
    """A low plant with some 34 large leaves on stalks, about 1 m high."""
    rng = np.random.default_rng(seed)
    count = 34
    order = np.arange(count) / count
    turn = 2.399963 * np.arange(count) + rng.uniform(-0.3, 0.3, count)
    out = np.stack([np.cos(turn), 0.0 * turn, np.sin(turn)], 1)
    reach, rise = 0.06 + 0.32 * order, 0.72 - 0.55 * order + rng.uniform(-0.05, 0.05, count)
    base = out * reach[:, None] + rise[:, None] * (0.0, 1.0, 0.0)
    growth = _unit(out + (0.0, 1.0, 0.0) * (1.1 - 1.25 * order)[:, None])
    tint = (rng.uniform(0.7, 1.0, count) * (1.0 - 0.25 * order))[:, None] * np.array(
        [0.8, 0.95, 0.9]
    )
    leaves = _cards(
        base,
        growth,
        np.broadcast_to((0.0, 1.0, 0.0), base.shape) - 0.4 * out,
        rng.uniform(0.34, 0.48, count),
        BROAD,
        0.95,
        tint,
        out,
        0.15,
        0.22,
    )
    stalks = [
        tube([0.08 * out[k] * (1, 0, 1), 0.5 * base[k] + 0.02 * out[k], base[k]], 0.007, 5)
        for k in range(count)
    ]
    return [("bark", join(stalks)), ("leaf", leaves)]


def column_ivy(seed: int, radius: float, height: float) -> list[Part]:
    """Ivy that winds up a column: three stems and some 200 cards, thinning out with height."""
    rng = np.random.default_rng(seed)
    stems, base, outward, growth, tone = [], [], [], [], []
    for start in range(3):
        top = height * rng.uniform(0.6, 1.0)
        up = np.linspace(0.02, 1.0, 26)
        turn = 2.1 * start + rng.uniform(1.6, 2.6) * up + 0.35 * np.sin(7.0 * up + start)
        path = np.stack([radius * np.cos(turn), top * up, radius * np.sin(turn)], 1)
        stems.append(tube(path, 0.011 * (1.15 - up), 5))
        for _ in range(78):
            part = rng.uniform(0.0, 1.0) ** 1.25
            where = 2.1 * start + np.interp(part, up, turn - 2.1 * start) + rng.normal(0.0, 0.34)
            out = np.array([np.cos(where), 0.0, np.sin(where)])
            base.append(out * (radius + rng.uniform(0.005, 0.05)) + (0.0, part * top, 0.0))
            outward.append(out)
            side = np.array([-out[2], 0.0, out[0]])
            growth.append(side * rng.normal(0.0, 0.7) + (0, rng.normal(0.1, 0.7), 0) + 0.25 * out)
            tone.append(rng.uniform(0.6, 1.0))
    points, out_all = np.array(base), np.array(outward)
    tint = np.array(tone)[:, None] * np.array([0.78, 0.92, 0.80])
    normal = out_all + rng.normal(0.0, 0.28, points.shape)
    leaves = _cards(
        points,
        _unit(np.array(growth)),
        normal,
        rng.uniform(0.20, 0.33, len(points)),
        IVY,
        1.0,
        tint,
        out_all,
        0.12,
        0.10,
    )
    return [("bark", join(stems)), ("leaf", leaves)]


def _cards(
    base: Floats,
    growth: Floats,
    facing: ArrayLike,
    size: Floats,
    cell: int,
    aspect: float,
    tint: Floats,
    bulge: Floats,
    fold: float,
    droop: float,
) -> MeshData:
    """Cards [n] from `base` along `growth` (unit), turned to `facing`; `size` is the length,
    `aspect` width by length, `bulge` the direction that normals lean to."""
    count = len(base)
    side = _unit(np.cross(growth, np.asarray(facing, np.float64)))
    normal = np.cross(side, growth)
    steps = np.meshgrid([0.0, 0.5, 1.0], [-1.0, 0.0, 1.0], indexing="ij")
    along, across = steps[0].ravel(), steps[1].ravel()
    length = size[:, None, None]
    points = (
        base[:, None]
        + length * along[None, :, None] * growth[:, None]
        + length * 0.5 * aspect * across[None, :, None] * side[:, None]
        + length
        * (fold * 0.5 * np.abs(across) - droop * along**2 * 1.6)[None, :, None]
        * normal[:, None]
    )
    leaning = _unit(normal[:, None] - 0.8 * fold * across[None, :, None] * side[:, None])
    normals = _unit(leaning + 0.9 * bulge[:, None])
    return _sheet(points, normals, _cell_uvs(cell, along, across, count), tint, 3, 3)


def _ribbon(spine: Floats, side: Floats, width: float, tone: float) -> MeshData:
    """A palm frond: 3 points across, folded down along the spine [n, 3]."""
    rows = len(spine)
    tangent = _unit(np.gradient(spine, axis=0))
    normal = np.cross(tangent, side)
    normal *= np.where(normal[:, 1:2] < 0.0, -1.0, 1.0)
    across = np.array([-1.0, 0.0, 1.0])
    points = (
        spine[:, None]
        + width * across[None, :, None] * side
        - 0.30 * width * np.abs(across)[None, :, None] * normal[:, None]
    )
    normals = _unit(normal[:, None] + 0.35 * across[None, :, None] * side)
    along, sign = np.meshgrid(np.linspace(0.0, 1.0, rows), across, indexing="ij")
    uvs = _cell_uvs(FROND, along.ravel(), sign.ravel(), 1)
    tint = tone * np.array([[0.86, 1.0, 0.80]])
    return _sheet(points.reshape(1, -1, 3), normals.reshape(1, -1, 3), uvs, tint, rows, 3)


def _cell_uvs(cell: int, along: Floats, across: Floats, count: int) -> Floats:
    inset = 1.5 / 512.0
    u = (cell % 2) * 0.5 + 0.25 + across * (0.25 - inset)
    v = (cell // 2) * 0.5 + 0.5 - inset - along * (0.5 - 2.0 * inset)
    return np.broadcast_to(np.stack([u, v], axis=1), (count, len(along), 2))


def _sheet(
    points: Floats, normals: Floats, uvs: Floats, tint: Floats, rows: int, columns: int
) -> MeshData:
    """Sheets [n, rows * columns, 3] as one mesh, each with its own colour [n, 3]."""
    count, size = points.shape[:2]
    index = np.arange(size).reshape(rows, columns)
    a, b = index[:-1, :-1].ravel(), index[:-1, 1:].ravel()
    c, d = index[1:, 1:].ravel(), index[1:, :-1].ravel()
    one = np.concatenate([np.stack([a, b, c], 1), np.stack([a, c, d], 1)])
    triangles = (one[None] + (np.arange(count) * size)[:, None, None]).reshape(-1, 3)
    colors = np.ones((count, size, 4))
    colors[..., :3] = np.clip(tint, 0.0, 1.0)[:, None]
    return MeshData(
        np.round(points.reshape(-1, 3) / GRID) * GRID,
        normals.reshape(-1, 3),
        uvs.reshape(-1, 2),
        colors.reshape(-1, 4),
        triangles,
    )


def _unit(vectors: ArrayLike) -> Floats:
    array = np.asarray(vectors, np.float64)
    return np.asarray(array / np.maximum(np.linalg.norm(array, axis=-1, keepdims=True), 1e-12))
