"""Outer walls a bay at a time (an open window, or a niche), and the end wall with its rose.

A wall bay faces +Z with its inner face at z = 0, y = 0 the floor, x from -2 to 2 m. The end wall
faces +Z and closes nave and aisles.
"""

from __future__ import annotations

import numpy as np

from assets.hall.arcade import BAY
from assets.hall.geometry import Floats, MeshData, join, moved, placed, tinted
from assets.hall.shapes import box, lathe, loft, tube
from assets.hall.vaults import NAVE_RADIUS

WALL_HEIGHT = 6.7
ROSE_RADIUS = 1.85
ROSE_HEIGHT = 7.35
Part = tuple[str, MeshData]


def window_bay() -> list[Part]:
    """A tall round-headed opening to the sky with iron bars."""
    width, sill, spring = 0.85, 1.15, 3.55
    angle = _angles(width, sill, spring)
    opening = _opening(angle, width, sill, spring)
    face = _face(angle, opening, spring)
    outer = np.column_stack([opening[:, 0] * 0.86, _squeeze(opening[:, 1], sill), 0 * angle - 0.5])
    reveal = loft(np.stack([np.column_stack([opening, 0 * angle]), outer]), closed=True)
    frame = tube(
        np.column_stack([opening, 0 * angle])[np.r_[0 : len(angle), 0]], 0.06, 8, caps=False
    )
    bars = [box((0.035, 3.2, 0.035), (x, 2.75, -0.42)) for x in (-0.36, 0.0, 0.36)]
    bars += [box((1.5, 0.03, 0.03), (0.0, y, -0.42)) for y in (1.75, 2.35, 2.95, 3.55)]
    ledge = box((2.05, 0.10, 0.24), (0.0, sill - 0.09, 0.08), bevel=0.02)
    return [
        ("ashlar", join([face, tinted(reveal, 0.9)])),
        ("limestone", join([frame, ledge])),
        ("iron", join(bars)),
        ("porphyry", _skirting()),
    ]


def niche_bay() -> list[Part]:
    """A half-round niche with a shell for its head; its floor is at NICHE_FLOOR."""
    width, sill, spring = 0.78, NICHE_FLOOR, 3.05
    angle = _angles(width, sill, spring)
    opening = _opening(angle, width, sill, spring)
    face = _face(angle, opening, spring)
    turn = np.radians(np.linspace(0.0, 180.0, 37))
    plan = np.stack([width * np.cos(turn), -width * np.sin(turn)], axis=1)
    rows = [np.column_stack([plan[:, 0], np.full(37, y), plan[:, 1]]) for y in (sill, 2.0, spring)]
    tone = [0.62, 0.68, 0.68]
    for lift in np.radians([12, 24, 36, 48, 60, 72, 82, 90]):
        shell = 1.0 - 0.05 * np.abs(np.sin(4.5 * turn)) * np.sin(2.0 * lift)
        ring = width * np.cos(lift) * shell
        rows.append(
            np.column_stack(
                [ring * np.cos(turn), spring + width * np.sin(lift) * shell, -ring * np.sin(turn)]
            )
        )
        tone.append(0.66 - 0.10 * float(lift))
    colors = np.repeat(np.repeat(np.array(tone)[:, None, None], 37, axis=1), 3, axis=2)
    inside = loft(np.stack(rows), colors=colors, flip=True)
    floor = loft(np.stack([rows[0], rows[0] * (0.0, 1.0, 0.0)]), flip=True)
    frame = tube(
        np.column_stack([opening, 0 * angle])[np.r_[0 : len(angle), 0]], 0.055, 8, caps=False
    )
    ledge = box((1.95, 0.12, 0.26), (0.0, sill - 0.07, 0.10), bevel=0.02)
    return [
        ("ashlar", face),
        ("limestone", join([inside, tinted(floor, 0.7), frame, ledge])),
        ("porphyry", _skirting()),
    ]


NICHE_FLOOR = 1.05


def end_wall() -> list[Part]:
    """The whole end of the hall: rose window in the nave, a lancet at the end of each aisle."""
    angle = np.radians(np.linspace(0.0, 360.0, 97)[:-1])
    rose = np.stack([ROSE_RADIUS * np.cos(angle), ROSE_HEIGHT + ROSE_RADIUS * np.sin(angle)], 1)
    half, spring, low = NAVE_RADIUS + 0.05, 8.0, -0.02
    edge = []
    for x, y in np.stack([np.cos(angle), np.sin(angle)], 1):
        reach = min(half / max(abs(x), 1e-9), (ROSE_HEIGHT - low) / max(-y, 1e-9))
        if ROSE_HEIGHT + reach * y > spring:  # the round part, about (0, spring)
            drop = spring - ROSE_HEIGHT
            reach = y * drop + np.sqrt((y * drop) ** 2 - drop**2 + half**2)
        edge.append((reach * x, ROSE_HEIGHT + reach * y))
    # The floor corners lie between two rays; put the nearest ray's point there.
    outer = np.array(edge)
    for corner in ((-half, low), (half, low)):
        outer[np.argmin(np.linalg.norm(outer - corner, axis=1))] = corner
    flat = np.stack([np.column_stack([outer, 0 * angle]), np.column_stack([rose, 0 * angle])])
    uvs = np.concatenate([flat[..., :2] * (0.5, -0.5), flat[:, :1, :2] * (0.5, -0.5)], axis=1)
    wall = loft(flat, closed=True, uvs=uvs)
    deep = np.stack([np.column_stack([rose, 0 * angle]), np.column_stack([rose, 0 * angle - 0.4])])
    stone, parts = [wall, tinted(loft(deep, closed=True), 0.85)], []
    for side in (-1.0, 1.0):
        panel = box((3.75, WALL_HEIGHT, 0.2), (side * 5.055, WALL_HEIGHT / 2, -0.1), uv_scale=0.5)
        stone.append(panel)
        loop = _lancet() + (side * 5.3, 0.0)
        path = np.column_stack([loop, np.full(len(loop), 0.03)])
        parts.append(("limestone", tube(path[np.r_[0 : len(path), 0]], 0.08, 8, caps=False)))
        middle = np.array([side * 5.3, 3.0, 0.02])
        pane = np.stack([path - (0.0, 0.0, 0.01), np.broadcast_to(middle, path.shape)])
        parts.append(("glass_blue" if side < 0 else "glass_amber", loft(pane, closed=True)))
        bars = [box((1.3, 0.035, 0.05), (side * 5.3, y, 0.04)) for y in (1.9, 2.6, 3.3, 4.0)]
        parts.append(("iron", join([*bars, box((0.035, 3.6, 0.05), (side * 5.3, 2.9, 0.04))])))
    return [("ashlar", join(stone)), *parts, *_rose()]


def _rose() -> list[Part]:
    """Tracery and glass: a hub, twelve petals, twelve small lights at the rim."""
    at = placed(0.0, ROSE_HEIGHT, -0.16)
    circle = np.radians(np.linspace(0.0, 360.0, 73))
    ring = np.stack([np.cos(circle), np.sin(circle), 0.0 * circle], axis=1)
    stone = [
        tube(ring * (ROSE_RADIUS + 0.05) + (0, 0, 0.18), 0.12, 10, caps=False),
        tube(ring * 1.30, 0.045, 8, caps=False),
        tube(ring * 0.42, 0.06, 8, caps=False),
    ]
    glass: dict[str, list[MeshData]] = {"glass_amber": [], "glass_blue": [], "glass_red": []}
    for k in range(12):
        spoke = np.array([[0.42, 0.0, 0.0], [1.30, 0.0, 0.0], [ROSE_RADIUS, 0.0, 0.0]])
        stone.append(moved(tube(spoke, 0.04, 8, caps=False), placed(roll=30.0 * k)))
        light = tube(ring[::6] * 0.17 + (1.57, 0.0, 0.0), 0.03, 6, caps=False)
        stone.append(moved(light, placed(roll=30.0 * k + 15.0)))
        sector = np.radians(np.linspace(0.0, 30.0, 7)) + np.radians(30.0 * k)
        for inner, outer, color in (
            (0.42, 1.30, ("glass_amber", "glass_blue")[k % 2]),
            (1.30, ROSE_RADIUS, ("glass_red", "glass_amber")[k % 2]),
        ):
            rows = [
                np.stack([radius * np.cos(sector), radius * np.sin(sector), 0.0 * sector], 1)
                for radius in (outer, inner)
            ]
            glass[color].append(loft(np.stack(rows)))
    hub = lathe([(0.42, 0.0), (0.2, 0.03), (0.0, 0.04)], 36)
    parts = [(name, moved(join(panes), at)) for name, panes in glass.items()]
    parts.append(("glass_pale", moved(hub, at @ placed(pitch=90.0))))
    return [("limestone", moved(join(stone), at)), *parts]


def _skirting() -> MeshData:
    return box((BAY, 0.32, 0.06), (0.0, 0.16, 0.03))


def _angles(width: float, sill: float, spring: float) -> Floats:
    """Ray angles about (0, spring) that meet every corner of the opening and of the bay."""
    corners = [np.arctan2(y - spring, x) for x in (-width, width) for y in (sill, spring)]
    corners += [np.arctan2(y - spring, x) for x in (-BAY / 2, BAY / 2) for y in (0.0, WALL_HEIGHT)]
    angles = np.concatenate([np.linspace(-np.pi, np.pi, 49)[:-1], np.array(corners)])
    angles = np.where(angles >= np.pi - 1e-9, angles - 2.0 * np.pi, angles)
    return np.asarray(np.unique(np.round(angles, 9)), np.float64)


def _opening(angle: Floats, width: float, sill: float, spring: float) -> Floats:
    """Outline points [n, 2] of a round-headed opening along rays from (0, spring)."""
    x, y = np.cos(angle), np.sin(angle)
    with np.errstate(divide="ignore"):
        straight = np.minimum(width / np.abs(x), (spring - sill) / np.maximum(-y, 1e-9))
    reach = np.where(y >= 0.0, width, straight)
    return np.stack([reach * x, spring + reach * y], axis=1)


def _face(angle: Floats, opening: Floats, spring: float) -> MeshData:
    """The wall round the opening, one texture repeat every two metres."""
    x, y = np.cos(angle), np.sin(angle)
    with np.errstate(divide="ignore"):
        upward = np.where(y > 0.0, (WALL_HEIGHT - spring) / np.abs(y), spring / np.abs(y))
        reach = np.minimum(BAY / 2 / np.abs(x), upward)
    outer = np.stack([reach * x, spring + reach * y], axis=1)
    flat = np.stack([np.column_stack([ring, 0 * angle]) for ring in (outer, opening)])
    uvs = np.concatenate([flat, flat[:, :1]], axis=1)[..., :2] * (0.5, -0.5)
    return loft(flat, closed=True, uvs=uvs)


def _squeeze(heights: Floats, sill: float) -> Floats:
    """Outer edge of a splayed reveal: the sill falls outwards, the head comes down."""
    return np.asarray(np.where(heights < sill + 0.01, heights + 0.03, heights * 0.975))


def _lancet() -> Floats:
    """A pointed-arch outline [n, 2], counter-clockwise, about x = 0."""
    swing = np.radians(np.linspace(0.0, 60.0, 10))
    right = np.stack([-0.65 + 1.3 * np.cos(swing), 3.6 + 1.3 * np.sin(swing)], axis=1)
    left = (right * (-1.0, 1.0))[::-1][1:]
    return np.concatenate([[[-0.65, 1.2], [0.65, 1.2]], right, left])
