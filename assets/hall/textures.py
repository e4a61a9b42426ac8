"""The pictures that the generator paints: stone, wood, wear, and the atlas of leaves.

Each function returns uint8 pixels [h, w, 3 or 4]; colour pictures are sRGB, the wear picture is
linear (green scales roughness, blue scales metalness). All but the atlas repeat without a seam.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from assets.hall.geometry import Floats

Pixels = NDArray[np.uint8]
SEED = 20717


def marble() -> Pixels:
    """Cream marble with thin grey-gold veins."""
    size = 512
    x, y = _coordinates(size)
    warp = _noise(size, 4, 5, SEED)
    warp_b = _noise(size, 3, 5, SEED + 1)
    vein = 1.0 - np.abs(np.sin(np.pi * (2.0 * x + 1.0 * y + 1.5 * warp)))
    vein_b = 1.0 - np.abs(np.sin(np.pi * (1.0 * x - 2.0 * y + 1.9 * warp_b)))
    strength = 0.32 * vein**9 + 0.24 * vein_b**15
    body = 0.045 * _noise(size, 5, 3, SEED + 2)
    color = np.array([0.90, 0.865, 0.80]) + body[..., None]
    return _encode(color - strength[..., None] * np.array([0.75, 0.86, 0.95]))


def dark_stone() -> Pixels:
    """Near-black green stone with pale veins and mineral specks."""
    size = 512
    x, y = _coordinates(size)
    warp = _noise(size, 4, 5, SEED + 3)
    vein = 1.0 - np.abs(np.sin(np.pi * (2.0 * y - 1.0 * x + 2.0 * warp)))
    web = 1.0 - np.abs(np.sin(np.pi * (3.0 * x + 1.0 * y + 2.6 * _noise(size, 5, 4, SEED + 4))))
    body = np.array([0.135, 0.165, 0.155]) + 0.05 * _noise(size, 6, 4, SEED + 5)[..., None]
    strength = 0.44 * vein**15 + 0.22 * web**20
    return _encode(body + strength[..., None] * np.array([0.86, 0.92, 0.84]))


def ashlar() -> Pixels:
    """Courses of cut stone, four to a repeat, with darker joints."""
    size = 512
    x, y = _coordinates(size)
    course = np.floor(y * 4.0)
    shifted = x * 2.0 + 0.5 * (course % 2.0)
    block = np.floor(shifted) % 2.0
    rng = np.random.default_rng(SEED + 6)
    tone = rng.uniform(-0.11, 0.06, (4, 2, 1)) + rng.uniform(-0.012, 0.012, (4, 2, 3))
    color = np.array([0.80, 0.755, 0.68]) + tone[course.astype(int), block.astype(int)]
    grain = 0.05 * _noise(size, 4, 6, SEED + 7) + 0.035 * _noise(size, 48, 2, SEED + 8)
    u = np.abs(shifted - np.round(shifted)) / 2.0
    v = np.abs(y * 4.0 - np.round(y * 4.0)) / 4.0
    joint = np.clip(1.0 - np.minimum(u, v) / 0.0095, 0.0, 1.0)
    return _encode(color + grain[..., None] - 0.37 * joint[..., None])


def limestone() -> Pixels:
    """Plain warm stone with soft clouds and pores."""
    size = 256
    grain = 0.06 * _noise(size, 3, 5, SEED + 9) + 0.04 * _noise(size, 40, 2, SEED + 10)
    return _encode(np.array([0.835, 0.795, 0.715]) + grain[..., None])


def wood() -> Pixels:
    """Oiled oak: streaks along u."""
    size = 256
    x, y = _coordinates(size)
    bend = 0.10 * _noise(size, 2, 4, SEED + 11)
    ring = np.sin(2.0 * np.pi * (7.0 * y + 3.0 * bend + 0.25 * np.sin(2.0 * np.pi * x)))
    fine = np.sin(2.0 * np.pi * (31.0 * y + 9.0 * bend))
    color = np.array([0.46, 0.30, 0.175]) + (0.055 * ring + 0.022 * fine)[..., None]
    return _encode(color + 0.03 * _noise(size, 16, 3, SEED + 12)[..., None])


def floor_wear() -> Pixels:
    """Roughness of a polished floor that people walk on: smooth patches, dull trails, scratches."""
    size = 512
    cloud = _noise(size, 3, 6, SEED + 13)
    fine = _noise(size, 24, 3, SEED + 14)
    rough = 0.52 + 0.34 * np.clip(cloud * 1.5, -1.0, 1.0) + 0.08 * fine
    rng = np.random.default_rng(SEED + 15)
    x, y = _coordinates(size)
    for _ in range(46):
        angle, offset, start = rng.uniform(0.0, np.pi), rng.uniform(), rng.uniform(size=2)
        along = (x - start[0]) * np.cos(angle) + (y - start[1]) * np.sin(angle)
        across = (y - start[1]) * np.cos(angle) - (x - start[0]) * np.sin(angle)
        line = np.clip(1.0 - np.abs(across + 0.05 * along**2) / 0.0022, 0.0, 1.0)
        rough += 0.26 * line * (np.abs(along) < 0.05 + 0.12 * offset)
    pixels = np.zeros((size, size, 3))
    pixels[..., 1] = np.clip(rough, 0.18, 1.0)
    return _encode(pixels)


def leaf_atlas() -> Pixels:
    """Four cells of 256: 0 a spray of olive-like leaves, 1 ivy, 2 a palm frond, 3 a broad leaf.
    A cell's stem starts at the middle of its lower edge. Painted at three times the size, then
    averaged; colour runs on under the transparent texels so that filtering shows no dark rim."""
    cells = [_paint_cell(leaves) for leaves in (_spray(), _ivy(), _frond(), _broad())]
    rows = [np.concatenate(cells[:2], axis=1), np.concatenate(cells[2:], axis=1)]
    return _encode(np.concatenate(rows, axis=0))


# A leaf: base x, base y, angle (degrees from up), length, width, tone, kind.
Leaf = tuple[float, float, float, float, float, float, str]


def _spray() -> list[Leaf]:
    leaves: list[Leaf] = [(0.5, 0.02, 0.0, 0.93, 0.022, 0.25, "stem")]
    for k in range(7):
        height = 0.10 + 0.098 * k
        length, width = 0.40 - 0.022 * k, 0.150 - 0.007 * k
        for side in (-1.0, 1.0):
            angle = side * (60.0 - 4.5 * k)
            leaves.append(
                (
                    0.5,
                    height + 0.02 * side,
                    angle,
                    length,
                    width,
                    0.82 + 0.06 * ((3 * k + int(side)) % 5),
                    "lance",
                )
            )
    leaves.append((0.5, 0.80, 0.0, 0.19, 0.10, 1.1, "lance"))
    return leaves


def _ivy() -> list[Leaf]:
    places = [
        (0.50, 0.02, 8.0, 0.40),
        (0.28, 0.14, -52.0, 0.34),
        (0.72, 0.16, 50.0, 0.36),
        (0.46, 0.34, -14.0, 0.42),
        (0.24, 0.46, -44.0, 0.32),
        (0.72, 0.46, 36.0, 0.36),
        (0.48, 0.62, 4.0, 0.36),
    ]
    leaves: list[Leaf] = [(0.5, 0.0, 0.0, 0.80, 0.020, 0.3, "stem")]
    for k, (x, y, angle, length) in enumerate(places):
        leaves.append((x, y, angle, 0.88 * length, 0.84 * length, 0.80 + 0.08 * (k % 4), "ivy"))
    return leaves


def _frond() -> list[Leaf]:
    leaves: list[Leaf] = []
    for k in range(22):
        height = 0.03 + 0.034 * k
        reach = 0.50 * np.sin(np.pi * (0.16 + 0.76 * k / 21.0)) ** 0.7
        for side in (-1.0, 1.0):
            leaves.append(
                (
                    0.5,
                    height,
                    side * (62.0 - 1.0 * k),
                    0.9 * reach,
                    0.040,
                    0.85 + 0.05 * ((k + (side > 0)) % 4),
                    "lance",
                )
            )
    leaves.append((0.5, 0.0, 0.0, 0.99, 0.018, 1.25, "stem"))
    return leaves


def _broad() -> list[Leaf]:
    return [(0.5, 0.0, 0.0, 0.14, 0.035, 0.6, "stem"), (0.5, 0.08, 0.0, 0.88, 0.58, 1.0, "broad")]


def _paint_cell(leaves: list[Leaf]) -> Floats:
    """One 256 x 256 cell [256, 256, 4] in sRGB values, straight alpha; later leaves lie on top."""
    big, factor = 768, 3
    x = (np.arange(big) + 0.5) / big
    across, up = np.meshgrid(x, 1.0 - x)
    ground = np.array([0.24, 0.36, 0.13])
    color = np.broadcast_to(ground, (big, big, 3)).copy()
    alpha = np.zeros((big, big))
    for base_x, base_y, angle, length, width, tone, kind in leaves:
        reach = 1.1 * length
        rows = slice(*_window(1.0 - base_y - reach, 1.0 - base_y + reach, big))
        columns = slice(*_window(base_x - reach, base_x + reach, big))
        turn = np.radians(angle)
        dx, dy = across[rows, columns] - base_x, up[rows, columns] - base_y
        u = (dx * np.sin(turn) + dy * np.cos(turn)) / length
        v = (dx * np.cos(turn) - dy * np.sin(turn)) / width
        inside, tint = _leaf(u, v, tone, kind)
        color[rows, columns][inside] = tint[inside]
        alpha[rows, columns][inside] = 1.0
    blocks = (big // factor, factor, big // factor, factor)
    cover = alpha.reshape(blocks).mean(axis=(1, 3))
    painted = (color * alpha[..., None]).reshape(*blocks, 3).mean(axis=(1, 3))
    mixed = np.where(cover[..., None] > 0, painted / np.maximum(cover, 1e-9)[..., None], ground)
    return np.concatenate([mixed, cover[..., None]], axis=-1)


def _leaf(u: Floats, v: Floats, tone: float, kind: str) -> tuple[NDArray[np.bool_], Floats]:
    """Where a leaf lies (u along 0..1, v across -0.5..0.5), and its colour."""
    s = np.clip(u, 0.0, 1.0)
    if kind == "ivy":  # five lobes round the middle of the leaf
        polar = np.arctan2(v, u - 0.38)
        lobe = np.abs(np.cos(2.5 * polar))
        edge = 0.27 + 0.22 * lobe**1.6 + 0.10 * np.maximum(np.cos(polar), 0.0) ** 6
        inside = np.hypot(v, u - 0.38) < edge
    else:
        half = 0.5 * np.sin(np.pi * s**0.85)
        if kind == "stem":
            half = 0.5 * (1.0 - 0.6 * s)
        elif kind == "broad":
            half = 0.5 * np.sin(np.pi * s**0.80) ** 0.75 * (1.0 + 0.025 * np.sin(60.0 * s))
        inside = (u > 0.0) & (u < 1.0) & (np.abs(v) < half)
    if kind == "stem":
        return inside, np.broadcast_to(
            np.array([0.36, 0.33, 0.17]) * (0.7 + 0.3 * tone), (*u.shape, 3)
        )
    vein = np.clip(1.0 - np.abs(v) / 0.035, 0.0, 1.0)
    ribs = np.abs(np.sin((s - 0.55 * np.abs(v)) * np.pi * (9.0 if kind == "broad" else 6.0)))
    light = np.maximum(vein, 0.5 * np.clip(1.0 - ribs / 0.16, 0.0, 1.0))
    shade = tone * (0.80 + 0.25 * s) * (1.0 - 0.18 * np.clip(np.abs(v) * 2.0, 0.0, 1.0))
    tint = np.array([0.27, 0.41, 0.135]) * shade[..., None]
    return inside, tint + light[..., None] * np.array([0.13, 0.14, 0.07])


def _window(low: float, high: float, size: int) -> tuple[int, int]:
    """Texel range that covers low..high of a unit square."""
    return max(0, int(low * size)), min(size, int(np.ceil(high * size)))


def _coordinates(size: int) -> tuple[Floats, Floats]:
    line = (np.arange(size) + 0.5) / size
    x, y = np.meshgrid(line, line)
    return x, y


def _noise(size: int, cells: int, octaves: int, seed: int) -> Floats:
    """Repeating value noise [size, size] of about -1..1, each octave twice as fine and half as
    strong."""
    rng = np.random.default_rng(seed)
    total, weight = np.zeros((size, size)), 0.0
    for octave in range(octaves):
        count = min(cells << octave, size)
        lattice = rng.uniform(-1.0, 1.0, (count, count))
        place = (np.arange(size) + 0.5) / size * count
        low = np.floor(place).astype(int)
        part = place - low
        part = part * part * (3.0 - 2.0 * part)
        low, high = low % count, (low + 1) % count
        rows = lattice[low] * (1.0 - part)[:, None] + lattice[high] * part[:, None]
        total += 0.5**octave * (rows[:, low] * (1.0 - part) + rows[:, high] * part)
        weight += 0.5**octave
    return total / weight * 1.6


def _encode(values: Floats) -> Pixels:
    return np.round(np.clip(values, 0.0, 1.0) * 255.0).astype(np.uint8)
