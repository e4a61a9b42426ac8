"""Poses of the figure and its walk: rotations a joint about axis-aligned bind frames.

Angles are degrees about X (positive: forwards, as a nod), Y (positive: to the figure's left), Z.
"""

from __future__ import annotations

import numpy as np

from assets.hall.figure import JOINT_INDEX, JOINTS
from assets.hall.geometry import Floats, MeshData, rotation
from assets.hall.scene_data import Clip, Figure
from assets.hall.skinning import posed, skinned_parts

Pose = dict[str, tuple[float, float, float]]  # joint -> degrees about x, y, z
KEY_COUNT = 13
WALK_SECONDS = 1.15
STATUE_SCALES = (2.1, 1.9)

# Weight on the right leg, the left knee loose, head turned to the left.
STANDING: Pose = {
    "hips": (0.0, 4.0, 2.5),
    "spine": (-1.0, -3.0, -3.0),
    "chest": (-2.0, -4.0, -2.0),
    "neck": (3.0, 10.0, 0.0),
    "head": (-4.0, 18.0, 2.0),
    "upper_arm_left": (-7.0, 6.0, -28.0),
    "forearm_left": (-20.0, 0.0, -6.0),
    "hand_left": (-4.0, 0.0, -4.0),
    "upper_arm_right": (-5.0, -4.0, 29.0),
    "forearm_right": (-16.0, 0.0, 5.0),
    "hand_right": (-2.0, 0.0, 4.0),
    "thigh_left": (-13.0, 10.0, 3.5),
    "shin_left": (17.0, 0.0, 0.0),
    "foot_left": (-4.0, 6.0, -5.0),
    "thigh_right": (1.0, -8.0, -3.5),
    "shin_right": (0.0, 0.0, 0.0),
    "foot_right": (-1.0, 0.0, 1.0),
}
# For the statues: an orator with a raised hand, and a thinker with folded arms.
ORATOR: Pose = {
    **STANDING,
    "neck": (0.0, -8.0, 0.0),
    "head": (-6.0, -14.0, 0.0),
    "clavicle_right": (0.0, 0.0, -12.0),
    "upper_arm_right": (-30.0, 20.0, -62.0),
    "forearm_right": (-30.0, 20.0, -38.0),
    "upper_arm_left": (4.0, 0.0, -22.0),
    "forearm_left": (-62.0, -10.0, -10.0),
}
SCHOLAR: Pose = {
    **STANDING,
    "neck": (12.0, 0.0, 0.0),
    "head": (14.0, -6.0, 0.0),
    "upper_arm_left": (-24.0, 0.0, -24.0),
    "forearm_left": (-78.0, -38.0, 0.0),
    "upper_arm_right": (-30.0, 0.0, 24.0),
    "forearm_right": (-96.0, 34.0, 0.0),
}


def figure() -> Figure:
    """The skinned figure: bind pose, the standing default pose, and the walk."""
    rotations = _quaternions(STANDING)
    return Figure(JOINTS, skinned_parts(), rotations, _grounded(STANDING), (_walk(),))


def statue(pose: Pose) -> MeshData:
    """The figure frozen in a pose, feet on y = 0, modelled more coarsely."""
    return posed(skinned_parts(*STATUE_SCALES), skin_matrices(pose, _grounded(pose)))


def skin_matrices(pose: Pose, root: Floats) -> Floats:
    """Joint matrices [joint, 4, 4] times inverse bind matrices, in the figure's frame."""
    world = np.zeros((len(JOINTS), 4, 4))
    skin = np.zeros_like(world)
    for index, joint in enumerate(JOINTS):
        local = np.eye(4)
        local[:3, :3] = _matrix(pose.get(joint.name, (0.0, 0.0, 0.0)))
        position = np.array(joint.position)
        if joint.parent < 0:
            local[:3, 3] = root
            world[index] = local
        else:
            local[:3, 3] = position - JOINTS[joint.parent].position
            world[index] = world[joint.parent] @ local
        inverse = np.eye(4)
        inverse[:3, 3] = -position
        skin[index] = world[index] @ inverse
    return skin


def _walk() -> Clip:
    """One stride of each leg; the last key equals the first."""
    phase = np.linspace(0.0, 2.0 * np.pi, KEY_COUNT)
    keys: dict[str, list[tuple[float, float, float]]] = {}
    roots = []
    for value in phase:
        pose = _walk_pose(float(value))
        roots.append(_grounded(pose))
        for name, angles in pose.items():
            keys.setdefault(name, []).append(angles)
    rotations = {
        JOINT_INDEX[name]: np.stack([_quaternion(_matrix(angles)) for angles in row])
        for name, row in keys.items()
    }
    for row in rotations.values():  # neighbouring keys on one hemisphere, so that lerp is short
        for key in range(1, KEY_COUNT):
            row[key] *= 1.0 if row[key] @ row[key - 1] >= 0.0 else -1.0
    times = WALK_SECONDS * np.arange(KEY_COUNT) / (KEY_COUNT - 1)
    return Clip("walk", times, rotations, np.stack(roots))


def _walk_pose(phase: float) -> Pose:
    pose: Pose = {
        "hips": (3.0, 5.0 * np.sin(phase), 2.0 * np.cos(phase)),
        "spine": (1.0, -4.0 * np.sin(phase), -1.5 * np.cos(phase)),
        "chest": (0.0, -6.0 * np.sin(phase), 0.0),
        "neck": (0.0, 3.0 * np.sin(phase), 0.0),
        "head": (-3.0, 3.0 * np.sin(phase), 0.0),
    }
    for side, sign, shift in (("left", 1.0, 0.0), ("right", -1.0, np.pi)):
        swing = np.sin(phase + shift)
        lift = max(0.0, float(np.cos(phase + shift)))
        pose[f"thigh_{side}"] = (-26.0 * swing - 4.0, 0.0, 1.5 * sign)
        pose[f"shin_{side}"] = (6.0 + 46.0 * lift**1.5 - 4.0 * swing, 0.0, 0.0)
        pose[f"foot_{side}"] = (-4.0 - 10.0 * swing + 8.0 * (1.0 - lift) * (swing < 0.0), 0.0, 0.0)
        pose[f"toes_{side}"] = (-14.0 * max(0.0, -float(swing)), 0.0, 0.0)
        pose[f"upper_arm_{side}"] = (22.0 * swing, 0.0, -28.0 * sign)
        pose[f"forearm_{side}"] = (-20.0 + 10.0 * swing, 0.0, -4.0 * sign)
    return pose


def _grounded(pose: Pose) -> Floats:
    """The root translation that puts the lower sole on y = 0."""
    matrices = skin_matrices(pose, np.array(JOINTS[0].position))
    lowest = np.inf
    for side, sign in (("left", 1.0), ("right", -1.0)):
        for joint, point in (
            ("foot", (0.11 * sign, 0.0, -0.07)),
            ("toes", (0.12 * sign, 0.0, 0.15)),
        ):
            place = matrices[JOINT_INDEX[f"{joint}_{side}"]] @ np.array([*point, 1.0])
            lowest = min(lowest, float(place[1]))
    return np.array(JOINTS[0].position) - (0.0, lowest, 0.0)


def _quaternions(pose: Pose) -> dict[int, Floats]:
    return {JOINT_INDEX[name]: _quaternion(_matrix(angles)) for name, angles in pose.items()}


def _matrix(angles: tuple[float, float, float]) -> Floats:
    return rotation(angles[1], 1) @ rotation(angles[0], 0) @ rotation(angles[2], 2)


def _quaternion(matrix: Floats) -> Floats:
    """(x, y, z, w) of a rotation by less than 180 degrees."""
    w = 0.5 * np.sqrt(1.0 + float(np.trace(matrix)))
    skew = matrix - matrix.T
    return np.array([skew[2, 1] / (4.0 * w), skew[0, 2] / (4.0 * w), skew[1, 0] / (4.0 * w), w])
