"""What stands and hangs in the hall: benches, pedestals, metal vessels, planters, the lamp.

Each piece stands on y = 0 at the origin, except the lamp, whose light plane is y = 0.
"""

from __future__ import annotations

import numpy as np

from assets.hall.geometry import MeshData, join, moved, placed
from assets.hall.shapes import box, lathe, loft, tube

Part = tuple[str, MeshData]
LAMP_SIZE = (1.0, 0.7)


def bench() -> list[Part]:
    """An oak bench, 1.9 m long along Z, on two stone feet."""
    slats = [
        box((0.105, 0.045, 1.9), (x, 0.455, 0.0), bevel=0.008) for x in (-0.18, -0.06, 0.06, 0.18)
    ]
    slats.append(box((0.05, 0.10, 1.5), (0.0, 0.30, 0.0), bevel=0.006))
    feet = []
    for z in (-0.68, 0.68):
        feet.append(box((0.44, 0.07, 0.14), (0.0, 0.035, z), bevel=0.012))
        feet.append(box((0.30, 0.29, 0.10), (0.0, 0.215, z), bevel=0.03))
        feet.append(box((0.46, 0.07, 0.14), (0.0, 0.395, z), bevel=0.015))
    return [("oak", join(slats)), ("limestone", join(feet))]


def pedestal(height: float, width: float) -> list[Part]:
    """A square pedestal with base and cap mouldings round a red panel."""
    half = width / 2.0
    parts = [
        box((width * 1.28, 0.12, width * 1.28), (0.0, 0.06, 0.0), bevel=0.012),
        box((width * 1.14, 0.08, width * 1.14), (0.0, 0.155, 0.0), bevel=0.035),
        box((width, height - 0.36, width), (0.0, height / 2, 0.0), bevel=0.008),
        box((width * 1.14, 0.07, width * 1.14), (0.0, height - 0.145, 0.0), bevel=0.03),
        box((width * 1.26, 0.11, width * 1.26), (0.0, height - 0.055, 0.0), bevel=0.015),
    ]
    panel = box((width * 0.62, (height - 0.40) * 0.66, 0.02), (0.0, height / 2, half), bevel=0.006)
    panels = [moved(panel, placed(yaw=90.0 * k)) for k in range(4)]
    return [("limestone", join(parts)), ("porphyry", join(panels))]


def urn() -> list[Part]:
    """A bronze urn, 0.95 m high, with two brass handles."""
    profile = [
        (0.0, 0.0),
        (0.19, 0.0),
        (0.195, 0.03),
        (0.17, 0.05),
        (0.10, 0.08),
        (0.065, 0.13),
        (0.06, 0.16),
        (0.085, 0.18),
        (0.085, 0.20),
        (0.07, 0.215),
        (0.14, 0.27),
        (0.22, 0.36),
        (0.265, 0.46),
        (0.275, 0.55),
        (0.25, 0.64),
        (0.19, 0.71),
        (0.135, 0.76),
        (0.115, 0.81),
        (0.125, 0.86),
        (0.175, 0.92),
        (0.20, 0.94),
        (0.20, 0.955),
        (0.17, 0.95),
        (0.11, 0.86),
        (0.10, 0.80),
        (0.0, 0.70),
    ]
    handle = np.array(
        [
            (0.262, 0.56, 0.0),
            (0.33, 0.60, 0.0),
            (0.365, 0.68, 0.0),
            (0.35, 0.78, 0.0),
            (0.29, 0.84, 0.0),
            (0.21, 0.85, 0.0),
            (0.13, 0.83, 0.0),
        ]
    )
    handles = [moved(tube(handle, 0.018, 10), placed(yaw=180.0 * k)) for k in range(2)]
    bands = [lathe([(0.272, y - 0.012), (0.288, y), (0.272, y + 0.012)], 48) for y in (0.50, 0.60)]
    return [("bronze", lathe(profile, 48)), ("brass", join([*handles, *bands]))]


def planter() -> list[Part]:
    """A glazed pot, 0.55 m high and 0.7 m wide, filled with soil to 0.50 m."""
    profile = [
        (0.0, 0.0),
        (0.22, 0.0),
        (0.235, 0.02),
        (0.22, 0.05),
        (0.25, 0.10),
        (0.30, 0.22),
        (0.33, 0.34),
        (0.325, 0.43),
        (0.30, 0.475),
        (0.305, 0.49),
        (0.345, 0.505),
        (0.355, 0.525),
        (0.345, 0.548),
        (0.315, 0.55),
        (0.30, 0.535),
        (0.295, 0.49),
    ]
    soil = [(0.30, 0.495), (0.20, 0.51), (0.08, 0.52), (0.0, 0.525)]
    return [("glaze", lathe(profile, 30)), ("soil", lathe(soil, 20))]


def sphere() -> list[Part]:
    """A mirror ball of radius 0.34 m in a brass ring stand."""
    angle = np.radians(np.linspace(-90.0, 90.0, 25))
    ball = lathe(np.stack([0.34 * np.cos(angle), 0.42 + 0.34 * np.sin(angle)], 1), 48)
    turn = np.radians(np.linspace(0.0, 360.0, 41))
    ring = np.stack([0.245 * np.cos(turn), 0.0 * turn + 0.165, 0.245 * np.sin(turn)], 1)
    foot = [(0.0, 0.0), (0.24, 0.0), (0.24, 0.02), (0.20, 0.035), (0.12, 0.05), (0.0, 0.055)]
    legs = [
        moved(
            tube([(0.25, 0.16, 0.0), (0.27, 0.09, 0.0), (0.20, 0.03, 0.0)], 0.018, 8),
            placed(yaw=120.0 * k),
        )
        for k in range(3)
    ]
    return [
        ("chrome", ball),
        ("brass", join([tube(ring, 0.022, 8, caps=False), lathe(foot, 40), *legs])),
    ]


def lamp(drop: float) -> list[Part]:
    """A hanging frame round the light: nothing of it lies below y = 0, where the light is. `drop`
    is the length of the rod to the vault."""
    width, depth = LAMP_SIZE
    rim_x, rim_z = width / 2 + 0.07, depth / 2 + 0.07
    frame = [
        box((width + 0.22, 0.09, 0.07), (0.0, 0.055, side * rim_z), bevel=0.015) for side in (-1, 1)
    ]
    frame += [
        box((0.07, 0.09, depth + 0.06), (side * rim_x, 0.055, 0.0), bevel=0.015) for side in (-1, 1)
    ]
    knob = lathe(
        [
            (0.0, -0.06),
            (0.045, -0.045),
            (0.06, 0.0),
            (0.045, 0.045),
            (0.02, 0.09),
            (0.028, 0.12),
            (0.0, 0.15),
        ],
        16,
    )
    chains = []
    for x in (-rim_x, rim_x):
        for z in (-rim_z, rim_z):
            frame.append(moved(knob, placed(x, 0.07, z)))
            chains.append(
                tube([(x, 0.12, z), (0.45 * x, 0.72, 0.45 * z), (0.0, 1.3, 0.0)], 0.012, 6)
            )
    frame.append(lathe([(0.0, 1.2), (0.05, 1.22), (0.085, 1.3), (0.05, 1.38), (0.0, 1.4)], 24))
    chains.append(
        tube([(0.0, 1.35, 0.0), (0.0, 0.5 * (1.35 + drop), 0.0), (0.0, drop, 0.0)], 0.018, 8)
    )
    back = box((width + 0.08, 0.03, depth + 0.08), (0.0, 0.075, 0.0))
    glass = box((width, 0.012, depth), (0.0, 0.016, 0.0))
    return [("brass", join(frame)), ("iron", join([*chains, back])), ("lamp_glass", glass)]


def banner() -> list[Part]:
    """A hanging cloth, 0.9 m by 4 m, on a brass rod: faces +Z, the rod at y = 0."""
    x, y = np.meshgrid(np.linspace(-1.0, 1.0, 15), np.linspace(0.0, 1.0, 13))
    drop = -4.0 * y - 0.34 * y**6 * (1.0 - np.abs(x))
    wave = 0.035 * np.sin(5.0 * x + 0.8) * (0.3 + y) + 0.02 * np.sin(9.0 * x + 4.0 * y)
    shade = np.clip(0.82 + 0.18 * np.sin(5.0 * x + 0.8), 0.5, 1.0)
    cloth = loft(
        np.stack([0.45 * x, drop, wave], -1),
        flip=True,
        crease_degrees=80.0,
        colors=np.repeat(shade[..., None], 3, axis=2),
    )
    rod = tube([(-0.6, 0.02, 0.0), (0.0, 0.02, 0.0), (0.6, 0.02, 0.0)], 0.03, 10)
    ball = lathe([(0.0, -0.07), (0.05, -0.05), (0.07, 0.0), (0.05, 0.05), (0.0, 0.07)], 14)
    balls = [moved(ball, placed(side * 0.62, 0.02, 0.0)) for side in (-1.0, 1.0)]
    return [("wool", cloth), ("brass", join([rod, *balls]))]
