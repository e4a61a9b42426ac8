"""Weights for the figure's skin, and linear blend skinning on the CPU.

A vertex is drawn to the bones near it (segments from joint to child); the weights of a part's
allowed joints are then smoothed over the surface so that bends stay round.
"""

from __future__ import annotations

import numpy as np

from assets.hall.figure import JOINT_INDEX, JOINTS, TOE, WRIST, body_parts
from assets.hall.geometry import Floats, Ints, MeshData, join
from assets.hall.scene_data import SkinnedPart

# Where a bone ends when its joint has no child on the same limb.
TIPS = {"head": (0.0, 1.75, 0.0), "hips": (0.0, 1.02, 0.0), "chest": (0.0, 1.44, -0.02)}
NEXT = {
    "spine": "chest",
    "neck": "head",
    "clavicle": "upper_arm",
    "upper_arm": "forearm",
    "forearm": "hand",
    "thigh": "shin",
    "shin": "foot",
    "foot": "toes",
}
ALLOWED = {
    "head": ("chest", "neck", "head"),
    "hair": ("head",),
    "tunic": ("hips", "spine", "chest", "clavicle", "upper_arm", "forearm", "thigh"),
    "hands": ("forearm", "hand"),
    "legs": ("hips", "thigh", "shin"),
    "boots": ("shin", "foot", "toes"),
    "belt": ("hips", "spine"),
    "cloak": ("chest", "spine", "hips", "clavicle"),
}
SMOOTHING_ROUNDS = 12


def skinned_parts(fine_scale: float = 1.0, coarse_scale: float = 1.0) -> tuple[SkinnedPart, ...]:
    """The figure's parts with joints and weights."""
    parts = []
    for name, surface, mesh in body_parts(fine_scale, coarse_scale):
        joints, weights = _weights(name, mesh)
        parts.append(SkinnedPart(surface, mesh, joints, weights))
    return tuple(parts)


def posed(parts: tuple[SkinnedPart, ...], matrices: Floats) -> MeshData:
    """All parts as one rigid mesh in the pose of `matrices` [joint, 4, 4] (skin matrices)."""
    moved = []
    for part in parts:
        blend = np.einsum("vk,vkij->vij", part.weights.astype(np.float64), matrices[part.joints])
        points = np.einsum("vij,vj->vi", blend[:, :3, :3], part.mesh.positions) + blend[:, :3, 3]
        normals = np.einsum("vij,vj->vi", blend[:, :3, :3], part.mesh.normals)
        normals /= np.linalg.norm(normals, axis=1, keepdims=True)
        moved.append(
            MeshData(points, normals, part.mesh.uvs, part.mesh.colors, part.mesh.triangles)
        )
    return join(moved)


def _weights(name: str, mesh: MeshData) -> tuple[np.ndarray, np.ndarray]:
    points = mesh.positions
    allowed = [
        joint
        for joint in JOINTS
        if joint.name.rsplit("_l", 1)[0].rsplit("_r", 1)[0] in ALLOWED[name]
    ]
    near = np.zeros((len(points), len(JOINTS)))
    for joint in allowed:
        start, end = np.array(joint.position), _bone_end(joint.name)
        axis = end - start
        part = np.clip((points - start) @ axis / (axis @ axis), 0.0, 1.0)
        gap = np.linalg.norm(points - start - part[:, None] * axis, axis=1)
        strength = 1.0 / (0.02 + gap) ** 5
        limb = joint.name.startswith(("thigh", "shin", "foot", "toes"))
        if limb or joint.name.startswith(("clavicle", "upper", "fore", "hand")):
            sign = 1.0 if joint.name.endswith("left") else -1.0
            # A limb does not pull the other side; the skirt is shared over a hand's width.
            reach = 0.10 if name == "tunic" else 0.02
            strength *= np.clip(0.5 + sign * points[:, 0] / reach, 0.0, 1.0)
        if name == "tunic" and joint.name.startswith("thigh"):  # cloth follows a leg half way
            strength *= 0.55 * np.clip((0.98 - points[:, 1]) / 0.25, 0.0, 1.0)
        near[:, JOINT_INDEX[joint.name]] = strength
    near /= near.sum(axis=1, keepdims=True)
    near = _smoothed(near, points, mesh.triangles, SMOOTHING_ROUNDS)
    order = np.argsort(-near, axis=1, kind="stable")[:, :4]
    best = np.take_along_axis(near, order, axis=1)
    best[best < 0.004] = 0.0
    best = np.round(best / best.sum(axis=1, keepdims=True) * 4096.0) / 4096.0
    best[:, 0] += 1.0 - best.sum(axis=1)
    order[best == 0.0] = 0
    return order.astype(np.uint8), best.astype(np.float32)


def _smoothed(values: Floats, points: Floats, triangles: Ints, rounds: int) -> Floats:
    """Repeated averaging along edges; vertices at one place count as one."""
    _, group = np.unique(np.round(points * 65536).astype(np.int64), axis=0, return_inverse=True)
    group = group.reshape(-1)
    corners = group[triangles]
    edges = np.concatenate([corners[:, [0, 1]], corners[:, [1, 2]], corners[:, [2, 0]]])
    edges = np.concatenate([edges, edges[:, ::-1]])
    count = int(group.max()) + 1
    valence = np.maximum(np.bincount(edges[:, 0], minlength=count), 1)[:, None]
    field = np.zeros((count, values.shape[1]))
    field[group] = values
    used = np.flatnonzero(values.any(axis=0))
    for _ in range(rounds):
        for column in used:
            total = np.bincount(edges[:, 0], field[edges[:, 1], column], count)
            field[:, column] = 0.5 * field[:, column] + 0.5 * total / valence[:, 0]
    return field[group]


def _bone_end(name: str) -> Floats:
    side = "_left" if name.endswith("_left") else "_right" if name.endswith("_right") else ""
    stem = name.removesuffix(side) if side else name
    flip = np.array([-1.0 if side == "_right" else 1.0, 1.0, 1.0])
    if stem == "hand":
        return (WRIST + (0.10, -0.12, 0.0)) * flip
    if stem == "toes":
        return (np.array(TOE) + (0.004, 0.0, 0.06)) * flip
    if stem in TIPS:
        return np.array(TIPS[stem])
    return np.array(JOINTS[JOINT_INDEX[NEXT[stem] + side]].position)
