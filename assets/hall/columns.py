"""The fluted column: attic base, shaft with entasis, leafy capital. One mesh, many instances.

Proportions follow the composite order loosely (Vignola): height 4.6 m to the arch's springing,
lower radius 0.30 m. Colours darken in the flutes, since the frame has no indirect light.
"""

from __future__ import annotations

import numpy as np

from assets.hall.geometry import Floats, MeshData, join, moved, placed
from assets.hall.shapes import box, lathe, loft, tube

HEIGHT = 4.6
LOWER_RADIUS = 0.30
UPPER_RADIUS = 0.255
FLUTE_COUNT = 20
SHAFT_START, SHAFT_END = 0.46, 3.86


def column() -> MeshData:
    """Stands on y = 0; its abacus ends at HEIGHT."""
    return join([_base(), _shaft(), _capital()])


def pilaster() -> MeshData:
    """A flat half of the same order for the outer walls: front towards +Z, back at z = 0."""
    parts = [
        box((0.62, 0.30, 0.20), (0.0, 0.15, 0.10), bevel=0.015),
        box((0.56, 0.10, 0.17), (0.0, 0.35, 0.085), bevel=0.03),
        box((0.48, 3.68, 0.13), (0.0, 2.24, 0.065), bevel=0.01),
        box((0.54, 0.07, 0.16), (0.0, 4.11, 0.08), bevel=0.025),
        box((0.50, 0.28, 0.14), (0.0, 4.28, 0.07), bevel=0.01),
        box((0.58, 0.08, 0.19), (0.0, 4.46, 0.095), bevel=0.03),
        box((0.66, 0.10, 0.23), (0.0, 4.55, 0.115), bevel=0.015),
    ]
    return join(parts)


def _base() -> MeshData:
    plinth = box((0.84, 0.16, 0.84), (0.0, 0.08, 0.0), bevel=0.012)
    lower = [(0.36 + 0.055 * np.cos(a), 0.225 + 0.055 * np.sin(a)) for a in _angles(-90, 90, 6)]
    hollow = [(0.345 - 0.035 * np.sin(a), 0.347 - 0.042 * np.cos(a)) for a in _angles(20, 160, 4)]
    upper = [(0.325 + 0.03 * np.cos(a), 0.425 + 0.03 * np.sin(a)) for a in _angles(-90, 90, 5)]
    profile = [
        (0.36, 0.165),
        (0.36, 0.17),
        *lower,
        (0.352, 0.29),
        *hollow,
        *upper,
        (0.30, 0.462),
    ]
    heights = np.array(profile)[:, 1]
    dark = 1.0 - 0.30 * np.exp(-(((heights - 0.35) / 0.04) ** 2))
    turned = lathe(profile, 32, colors=np.repeat(dark[:, None], 3, axis=1))
    return join([plinth, turned])


def _shaft() -> MeshData:
    """Rows up the shaft, columns round it: a scallop a flute with a flat fillet between two."""
    ramp = np.array([0.0, 0.02, 0.05, 0.09, 0.14, 0.22])
    middle = np.linspace(0.22, SHAFT_END - SHAFT_START - 0.22, 5)[1:-1]
    heights = np.concatenate([ramp, middle, (SHAFT_END - SHAFT_START - ramp)[::-1]])
    part = heights / (SHAFT_END - SHAFT_START)
    radius = LOWER_RADIUS + (UPPER_RADIUS - LOWER_RADIUS) * part + 0.012 * np.sin(np.pi * part)
    # Flutes fade out round at both ends.
    end_distance = np.minimum(heights, heights[::-1]) - 0.02
    fade = np.sqrt(np.clip(1.0 - (1.0 - np.clip(end_distance / 0.16, 0.0, 1.0)) ** 2, 0.0, 1.0))
    across = np.array([0.0, 0.16, 0.30, 0.58, 0.86])  # within one flute
    shape = np.sqrt(np.clip(1.0 - ((across - 0.58) / 0.42) ** 2, 0.0, None))
    shape[0] = shape[1] = 0.0
    angle = (np.arange(FLUTE_COUNT)[:, None] + across[None]).ravel() * 2.0 * np.pi / FLUTE_COUNT
    depth = np.tile(shape, FLUTE_COUNT)[None] * fade[:, None] * 0.105
    ring = radius[:, None] * (1.0 - depth)
    points = np.stack(
        [
            ring * np.cos(angle),
            np.broadcast_to((heights + SHAFT_START)[:, None], ring.shape),
            -ring * np.sin(angle),
        ],
        axis=-1,
    )
    dark = 1.0 - 3.6 * depth
    return loft(points, closed=True, crease_degrees=32.0, colors=np.repeat(dark[..., None], 3, 2))


def _capital() -> MeshData:
    neck = [
        (UPPER_RADIUS, 3.86),
        *[
            (UPPER_RADIUS + 0.022 * np.cos(a), 3.885 + 0.022 * np.sin(a))
            for a in _angles(-90, 90, 4)
        ],
    ]
    bell = [(0.25, 3.91), (0.25, 4.05), (0.258, 4.20), (0.285, 4.33), (0.335, 4.42), (0.36, 4.44)]
    shade = np.array([1.0] * len(neck) + [0.55, 0.55, 0.6, 0.7, 0.85, 0.9])
    core = lathe([*neck, *bell], 24, colors=np.repeat(shade[:, None], 3, axis=1))
    leaves = []
    for height, reach, width, turn in [(0.24, 0.085, 0.19, 0.0), (0.43, 0.105, 0.175, 22.5)]:
        leaf = _acanthus(0.252, 3.91, height, reach, width)
        leaves += [moved(leaf, placed(yaw=turn + 45.0 * k)) for k in range(8)]
    scrolls = [moved(_scroll(), placed(yaw=45.0 + 90.0 * k)) for k in range(4)]
    fleuron = box((0.06, 0.10, 0.10), (0.37, 4.52, 0.0), bevel=0.02)
    fleurons = [moved(fleuron, placed(yaw=90.0 * k)) for k in range(4)]
    return join([core, *leaves, *scrolls, _abacus(), *fleurons])


def _acanthus(radius: float, foot: float, height: float, reach: float, width: float) -> MeshData:
    """A leaf that rises along the bell and curls over: a closed, lens-shaped shell facing +X."""
    along = np.linspace(0.0, 1.0, 8)
    across = np.linspace(-1.0, 1.0, 5)
    curl = np.clip((along - 0.70) / 0.30, 0.0, 1.0)
    rise = height * (np.minimum(along / 0.80, 1.0) - 0.16 * curl**2)
    out = radius + 0.012 + 0.25 * reach * along + reach * np.sin(np.pi * 0.5 * curl)
    lobes = 1.0 + 0.16 * np.abs(np.sin(along * np.pi * 3.5))
    half = 0.5 * width * np.sin(np.pi * (0.28 + 0.66 * along)) ** 0.8 * lobes
    half[-1] = 0.004
    cup = 0.030 * np.abs(across) ** 2  # the blade hollows between its ribs
    rib = 0.012 * np.cos(across * np.pi * 2.0)
    front = np.stack(
        [
            out[:, None] - cup + rib * np.sin(np.pi * along)[:, None],
            np.broadcast_to(foot + rise[:, None], (len(along), len(across))),
            -half[:, None] * across,
        ],
        axis=-1,
    )
    back = front - np.array([0.022, 0.006, 0.0])
    back[:, 0], back[:, -1], back[-1] = front[:, 0], front[:, -1], front[-1]
    shade = np.clip(0.62 + 0.42 * along[:, None] + 6.0 * rib - 5.0 * cup, 0.35, 1.0)
    color = np.repeat(shade[..., None], 3, axis=2)
    return join(
        [
            loft(front, crease_degrees=60.0, colors=color),
            loft(back, crease_degrees=60.0, flip=True, colors=color * 0.6),
        ]
    )


def _scroll() -> MeshData:
    """A corner volute: a stem that leaves the bell and rolls up under the abacus, along +X."""
    turn = np.linspace(0.0, 1.0, 18)
    angle = np.radians(200.0 - 560.0 * turn)
    radius = 0.074 * (1.0 - 0.68 * turn)
    stem = np.array([[0.275, 4.22, 0.0], [0.305, 4.32, 0.0], [0.345, 4.385, 0.0]])
    spiral = np.stack(
        [0.435 + radius * np.cos(angle), 4.385 + radius * np.sin(angle), np.zeros_like(angle)], 1
    )
    path = np.concatenate([stem, spiral[3:]])
    size = np.concatenate([[0.02, 0.024, 0.026], 0.026 * (1.0 - 0.72 * turn[3:])])
    return tube(path, size, 6, flatten=1.5)


def _abacus() -> MeshData:
    """A slab with hollow sides and cut corners; its outline is a loop of 28 points."""
    outline = []
    for side in range(4):
        s = np.linspace(-1.0, 1.0, 7)
        edge = np.stack([0.44 - 0.075 * (1.0 - s**2), 0.40 * s], axis=1)
        cosine, sine = np.cos(np.pi / 2 * side), np.sin(np.pi / 2 * side)
        outline.append(
            np.stack(
                [edge[:, 0] * cosine - edge[:, 1] * sine, edge[:, 0] * sine + edge[:, 1] * cosine],
                axis=1,
            )
        )
    loop = np.concatenate(outline)
    rows = [
        (0.0, 4.44),
        (0.86, 4.44),
        (0.90, 4.475),
        (0.955, 4.50),
        (0.955, 4.51),
        (1.0, 4.53),
        (1.0, HEIGHT),
        (0.0, HEIGHT),
    ]
    points = [_ring(loop * scale, height) for scale, height in rows]
    return loft(np.stack(points), closed=True, flip=True, crease_degrees=30.0)


def roundel() -> list[tuple[str, MeshData]]:
    """A disc of porphyry in a stone ring for the spandrels: faces +Z, back at z = 0."""
    ring = [
        (0.25, 0.0),
        (0.25, 0.02),
        (0.27, 0.05),
        (0.30, 0.06),
        (0.34, 0.05),
        (0.36, 0.03),
        (0.38, 0.02),
        (0.38, 0.0),
    ]
    disc = [(0.0, 0.045), (0.09, 0.042), (0.18, 0.03), (0.26, 0.012)]
    upright = placed(pitch=90.0)
    return [
        ("limestone", moved(lathe(ring[::-1], 28), upright)),
        ("porphyry", moved(lathe(disc[::-1], 28), upright)),
    ]


def _ring(loop: Floats, height: float) -> Floats:
    return np.stack([loop[:, 0], np.full(len(loop), height), loop[:, 1]], axis=1)


def _angles(start: float, end: float, steps: int) -> Floats:
    return np.radians(np.linspace(start, end, steps + 1))
