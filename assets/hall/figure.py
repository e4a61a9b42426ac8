"""The figure: a traveller in a belted tunic and a cloak, modelled from blended solids.

Bind pose: standing on y = 0, looking along +Z, arms 50 degrees below the horizontal, 1.76 m tall,
the left side at +x. `motion.py` has the poses, `skinning.py` the weights.
"""

from __future__ import annotations

import numpy as np

from assets.hall.garments import belt, cloak, creased, skirt
from assets.hall.geometry import Floats, MeshData, tinted
from assets.hall.scene_data import Joint
from assets.hall.sdf import Shape, blend, carve, ellipsoid, mirrored, polygonise, round_cone

ARM = np.array([0.6428, -0.7660, 0.0])
SHOULDER = np.array([0.178, 1.435, -0.012])
ELBOW = SHOULDER + 0.285 * ARM
WRIST = ELBOW + 0.245 * ARM + np.array([0.0, 0.0, 0.012])
KNEE, ANKLE, TOE = (
    np.array([0.098, 0.50, 0.012]),
    np.array([0.104, 0.085, -0.02]),
    (0.118, 0.03, 0.11),
)
HIP = np.array([0.092, 0.93, 0.0])


def _joints() -> tuple[Joint, ...]:
    rows: list[tuple[str, str, Floats]] = [
        ("hips", "", np.array([0.0, 0.96, 0.0])),
        ("spine", "hips", np.array([0.0, 1.08, -0.01])),
        ("chest", "spine", np.array([0.0, 1.24, -0.015])),
        ("neck", "chest", np.array([0.0, 1.475, -0.02])),
        ("head", "neck", np.array([0.0, 1.565, 0.0])),
    ]
    for side, sign in (("left", 1.0), ("right", -1.0)):
        flip = np.array([sign, 1.0, 1.0])
        rows += [
            (f"clavicle_{side}", "chest", np.array([0.03, 1.43, 0.0]) * flip),
            (f"upper_arm_{side}", f"clavicle_{side}", SHOULDER * flip),
            (f"forearm_{side}", f"upper_arm_{side}", ELBOW * flip),
            (f"hand_{side}", f"forearm_{side}", WRIST * flip),
            (f"thigh_{side}", "hips", HIP * flip),
            (f"shin_{side}", f"thigh_{side}", KNEE * flip),
            (f"foot_{side}", f"shin_{side}", ANKLE * flip),
            (f"toes_{side}", f"foot_{side}", np.array(TOE) * flip),
        ]
    names = [name for name, *_ in rows]
    return tuple(
        Joint(name, names.index(parent) if parent else -1, (float(x), float(y), float(z)))
        for name, parent, (x, y, z) in rows
    )


JOINTS = _joints()
JOINT_INDEX = {joint.name: index for index, joint in enumerate(JOINTS)}


def body_parts(
    fine_scale: float = 1.0, coarse_scale: float = 1.0
) -> list[tuple[str, str, MeshData]]:
    """(part, surface, mesh) of the whole figure; the scales multiply the cell size of head and
    hands, and of cloth and legs (2: half as fine)."""
    fine, coarse = 0.0078 * fine_scale, 0.0185 * coarse_scale
    head = polygonise(_head(), (-0.12, 1.42, -0.15), (0.12, 1.80, 0.15), fine)
    hair = polygonise(_hair(), (-0.13, 1.48, -0.20), (0.13, 1.82, 0.13), 1.35 * fine)
    hands = polygonise(mirrored(_hand()), (-0.72, 0.76, -0.08), (0.72, 1.14, 0.12), fine)
    tunic = polygonise(_tunic(), (-0.56, 0.50, -0.27), (0.56, 1.53, 0.27), coarse)
    legs = polygonise(mirrored(_leg()), (-0.22, 0.24, -0.13), (0.22, 0.95, 0.13), coarse)
    boots = polygonise(mirrored(_boot()), (-0.20, -0.02, -0.12), (0.20, 0.48, 0.23), coarse)
    parts = [
        ("head", "skin", _face(head)),
        ("hair", "hair", hair),
        ("tunic", "linen", creased(tunic)),
        ("hands", "skin", hands),
        ("legs", "trousers", legs),
        ("boots", "leather", boots),
        ("belt", "leather", belt()),
        ("cloak", "cloak", cloak(coarse_scale)),
    ]
    return parts


def _head() -> Shape:
    skull = blend(
        [
            ellipsoid((0.0, 1.668, -0.012), (0.073, 0.092, 0.094)),
            ellipsoid((0.0, 1.615, 0.022), (0.056, 0.078, 0.066)),
            round_cone((-0.018, 1.556, 0.066), (0.018, 1.556, 0.066), 0.022, 0.022),
            mirrored(round_cone((0.030, 1.632, 0.062), (0.052, 1.636, 0.03), 0.022, 0.024)),
            mirrored(round_cone((0.012, 1.676, 0.079), (0.042, 1.678, 0.062), 0.012, 0.012)),
        ],
        0.028,
    )
    sockets = mirrored(ellipsoid((0.031, 1.655, 0.096), (0.019, 0.012, 0.022)))
    face = carve(skull, sockets, 0.016)
    nose = blend(
        [
            round_cone((0.0, 1.664, 0.084), (0.0, 1.624, 0.106), 0.008, 0.012),
            mirrored(ellipsoid((0.010, 1.621, 0.094), (0.009, 0.008, 0.011))),
        ],
        0.012,
    )
    lips = blend(
        [
            round_cone((-0.019, 1.592, 0.077), (0.019, 1.592, 0.077), 0.005, 0.005),
            ellipsoid((0.0, 1.5955, 0.083), (0.018, 0.005, 0.007)),
            ellipsoid((0.0, 1.586, 0.082), (0.016, 0.006, 0.007)),
        ],
        0.005,
    )
    eyes = mirrored(ellipsoid((0.031, 1.655, 0.071), (0.0145, 0.012, 0.0145)))
    ears = mirrored(ellipsoid((0.074, 1.640, -0.012), (0.009, 0.030, 0.018)))
    neck = blend(
        [
            round_cone((0.0, 1.40, -0.03), (0.0, 1.57, -0.012), 0.062, 0.052),
            mirrored(round_cone((0.02, 1.45, 0.02), (0.055, 1.60, -0.03), 0.018, 0.016)),
        ],
        0.02,
    )
    return blend([blend([face, nose, ears, neck], 0.014), lips, eyes], 0.004)


def _hair() -> Shape:
    cap = blend(
        [
            ellipsoid((0.0, 1.683, -0.020), (0.083, 0.097, 0.100)),
            ellipsoid((0.0, 1.615, -0.055), (0.070, 0.080, 0.055)),
        ],
        0.03,
    )
    opening = blend(
        [
            ellipsoid((0.0, 1.625, 0.105), (0.066, 0.102, 0.085)),
            mirrored(ellipsoid((0.085, 1.60, 0.02), (0.03, 0.055, 0.045))),
        ],
        0.03,
    )
    knot = blend(
        [
            ellipsoid((0.0, 1.700, -0.128), (0.040, 0.036, 0.034)),
            round_cone((0.0, 1.69, -0.09), (0.0, 1.70, -0.12), 0.034, 0.026),
        ],
        0.01,
    )
    shell = blend([carve(cap, opening, 0.02), knot], 0.012)

    def combed(points: Floats) -> Floats:
        strands = np.sin(170.0 * points[:, 0] + 40.0 * points[:, 1])
        return np.asarray(shell(points) + 0.0012 * strands)

    return combed


def _tunic() -> Shape:
    torso = blend(
        [
            ellipsoid((0.0, 0.99, -0.005), (0.165, 0.13, 0.120)),
            ellipsoid((0.0, 1.12, 0.0), (0.140, 0.16, 0.105)),
            ellipsoid((0.0, 1.31, 0.0), (0.168, 0.17, 0.118)),
            mirrored(ellipsoid((0.072, 1.335, 0.072), (0.075, 0.06, 0.036))),
            mirrored(
                round_cone((0.03, 1.455, -0.02), SHOULDER - (0.012, 0.008, 0.0), 0.055, 0.060)
            ),
            round_cone((0.0, 1.44, -0.02), (0.0, 1.485, -0.018), 0.080, 0.068),
        ],
        0.06,
    )
    sleeve = mirrored(
        blend(
            [
                round_cone(SHOULDER - (0.02, 0.0, 0.0), ELBOW, 0.066, 0.054),
                round_cone(ELBOW, ELBOW + 0.215 * ARM + (0.0, 0.0, 0.010), 0.054, 0.052),
            ],
            0.03,
        )
    )
    cuff = mirrored(round_cone(WRIST + 0.050 * ARM, WRIST + 0.2 * ARM, 0.068, 0.068))
    collar = round_cone((0.0, 1.47, -0.02), (0.0, 1.60, 0.0), 0.054, 0.060)
    upper = carve(carve(blend([torso, sleeve], 0.05), cuff, 0.01), collar, 0.012)
    return blend([upper, skirt()], 0.03)


def _hand() -> Shape:
    forward = np.array([0.0, 0.0, 1.0])
    side = np.cross(forward, ARM)  # the back of the hand
    palm_end = WRIST + 0.085 * ARM
    solids = [
        round_cone(WRIST - 0.06 * ARM, WRIST + 0.01 * ARM, 0.031, 0.026),
        round_cone(WRIST + 0.025 * ARM + 0.012 * forward, palm_end + 0.024 * forward, 0.020, 0.016),
        round_cone(WRIST + 0.025 * ARM - 0.010 * forward, palm_end - 0.022 * forward, 0.020, 0.015),
        round_cone(WRIST + 0.02 * ARM, palm_end, 0.021, 0.016),
    ]
    fingers = []
    for k, (length, spread) in enumerate(
        [(0.072, 0.030), (0.080, 0.010), (0.075, -0.010), (0.060, -0.028)]
    ):
        root = palm_end + spread * 0.95 * forward
        bend = root + 0.52 * length * (ARM + 0.25 * spread * 10.0 * 0.1 * forward) - 0.004 * side
        tip = bend + 0.50 * length * (0.93 * ARM - 0.36 * side * (1.0 + 0.12 * k))
        fingers.append(
            blend(
                [round_cone(root, bend, 0.0102, 0.0092), round_cone(bend, tip, 0.0092, 0.0075)],
                0.004,
            )
        )
    thumb_root = WRIST + 0.025 * ARM + 0.020 * forward
    thumb_middle = thumb_root + 0.042 * ARM + 0.030 * forward - 0.008 * side
    thumb = blend(
        [
            round_cone(thumb_root, thumb_middle, 0.015, 0.011),
            round_cone(thumb_middle, thumb_middle + 0.038 * ARM + 0.006 * forward, 0.011, 0.0085),
        ],
        0.006,
    )
    return blend([blend(solids, 0.018), blend([*fingers], 0.003), thumb], 0.010)


def _leg() -> Shape:
    return blend(
        [
            round_cone(HIP, KNEE, 0.078, 0.058),
            round_cone(KNEE, ANKLE, 0.056, 0.036),
            ellipsoid(KNEE + (0.004, -0.10, -0.016), (0.046, 0.08, 0.048)),
        ],
        0.03,
    )


def _boot() -> Shape:
    foot = blend(
        [
            round_cone(ANKLE + (0.0, -0.025, -0.025), TOE, 0.052, 0.036),
            round_cone(TOE, (0.124, 0.026, 0.165), 0.040, 0.030),
            round_cone(ANKLE + (0.002, 0.33, -0.010), ANKLE, 0.070, 0.050),
            ellipsoid(KNEE + (0.004, -0.16, -0.022), (0.066, 0.10, 0.066)),
        ],
        0.035,
    )
    cuff = round_cone(ANKLE + (0.002, 0.33, -0.010), ANKLE + (0.002, 0.35, -0.010), 0.077, 0.077)
    boot = blend([foot, cuff], 0.008)

    def flat(points: Floats) -> Floats:  # a sole, and an edge above it
        sole = np.where(points[:, 1] < 0.022, 0.004, 0.0)
        return np.asarray(np.maximum(boot(points) - sole, 0.001 - points[:, 1]))

    return flat


def _face(head: MeshData) -> MeshData:
    """Eyes, brows and lips by vertex colour."""
    points = head.positions * (1.0, 1.0, 1.0)
    points[:, 0] = np.abs(points[:, 0])
    shade = np.ones_like(points)
    eye = np.linalg.norm((points - (0.031, 1.655, 0.084)) / (0.013, 0.008, 0.012), axis=1) < 1.0
    iris = np.linalg.norm(points - (0.031, 1.655, 0.086), axis=1) < 0.0065
    brow = np.linalg.norm((points - (0.030, 1.677, 0.082)) / (0.022, 0.006, 0.02), axis=1) < 1.0
    lips = np.linalg.norm((points - (0.0, 1.590, 0.083)) / (0.022, 0.0085, 0.016), axis=1) < 1.0
    for place, tone in (
        (eye, (0.8, 1.0, 1.0)),
        (iris, (0.12, 0.14, 0.16)),
        (brow, (0.30, 0.28, 0.26)),
        (lips, (0.85, 0.55, 0.55)),
    ):
        shade[place] = tone
    return tinted(head, shade)
