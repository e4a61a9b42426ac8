"""Reads what hangs a glTF mesh on a skin: where the joints stand, and what follows them (3.7.3)."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.scene.gltf_data import GltfData
from engine.scene.gltf_nodes import PlacedNode
from engine.scene.mesh import F64
from engine.scene.skin import joint_matrices, unit_weights


def read_joints(data: GltfData, placed: PlacedNode, worlds: Mapping[int, F64]) -> F64:
    """[j, 4, 4] bind pose to world for the pose that the file's nodes stand in."""
    skin = data.item("skins", placed.node.skin)
    missing = [j for j in skin.joints or [] if j not in worlds]
    if missing or not skin.joints:
        raise data.fail(f"skin of {placed.name} has joints outside the scene: {missing}")
    world = np.stack([worlds[joint] for joint in skin.joints])
    if skin.inverseBindMatrices is None:
        return world
    inverse_bind = data.matrices(skin.inverseBindMatrices)
    if len(inverse_bind) < len(world):
        raise data.fail(f"skin of {placed.name} has {len(inverse_bind)} bind matrices")
    return joint_matrices(world, inverse_bind[: len(world)])


def read_influences(
    data: GltfData, name: str, primitive: Any, joint_count: int, count: int
) -> tuple[NDArray[np.int64], F64]:
    """([v, k] joints, [v, k] weights of sum 1) from every JOINTS_n / WEIGHTS_n pair."""
    joints: list[NDArray[np.int64]] = []
    weights: list[F64] = []
    while (at := getattr(primitive.attributes, f"JOINTS_{len(joints)}", None)) is not None:
        weight = getattr(primitive.attributes, f"WEIGHTS_{len(joints)}", None)
        if weight is None:
            break
        joints.append(data.accessor(at).astype(np.int64))
        weights.append(data.floats(weight, 4).astype(np.float64))
    if not joints or any(len(a) != count or a.shape[1] != 4 for a in (*joints, *weights)):
        raise data.fail(f"skinned mesh {name} lacks a joint and weight for each vertex")
    joint = np.concatenate(joints, axis=1)
    if joint.size and int(joint.max()) >= joint_count:
        raise data.fail(f"mesh {name} uses joint {int(joint.max())} of a skin with {joint_count}")
    return joint, unit_weights(np.concatenate(weights, axis=1))
