"""Reads morph targets of a glTF asset and the weights that they stand at (section 3.7.2.2)."""

from typing import Any

import numpy as np

from engine.scene.gltf_data import GltfData
from engine.scene.mesh import F32, F64
from engine.scene.morph import MAX_TARGETS, MorphTargets


def weighted_nodes(data: GltfData) -> set[int]:
    """The nodes whose morph weights some clip changes."""
    clips = data.document.animations or []
    targets = [channel.target for clip in clips for channel in clip.channels or []]
    return {t.node for t in targets if t.path == "weights" and isinstance(t.node, int)}


def read_weights(data: GltfData, name: str, node: int, mesh: Any) -> F64:
    """[targets] of a mesh, called `name`, on a node: the node's weights, else the mesh's, else
    zero. UserError where primitives disagree on how many there are, or there are too many."""
    counts = {len(primitive.targets or []) for primitive in mesh.primitives}
    if len(counts) > 1:
        raise data.fail(f"mesh {name} has primitives of {sorted(counts)} morph targets")
    count = max(counts, default=0)
    if count > MAX_TARGETS:
        raise data.fail(f"mesh {name} has {count} morph targets, and {MAX_TARGETS} is the most")
    given = data.node_weights.get(node) or mesh.weights or []
    if count and given and len(given) != count:
        raise data.fail(f"mesh {name} has {len(given)} weights for {count} morph targets")
    weights = np.array(given if count and given else [0.0] * count, np.float64)
    if not np.isfinite(weights).all():
        raise data.fail(f"mesh {name} has morph weights that are not finite")
    return weights


def read_targets(
    data: GltfData, name: str, primitive: Any, node: int, normals: F32
) -> MorphTargets:
    """The targets of a primitive whose base has these normals `[v, 3]` (zero: none stored)."""
    positions = np.zeros((len(primitive.targets), len(normals), 3), np.float32)
    turns = np.zeros_like(positions)
    for k, target in enumerate(primitive.targets):
        named = target if isinstance(target, dict) else vars(target)
        for key, into in (("POSITION", positions), ("NORMAL", turns)):
            if named.get(key) is None:
                continue  # this target leaves it as it is
            values = data.floats(named[key], 3)
            if len(values) != len(normals):
                raise data.fail(
                    f"mesh {name} has {len(normals)} positions and {len(values)} "
                    f"displacements in morph target {k}"
                )
            if not np.isfinite(values).all():
                raise data.fail(f"mesh {name} has a morph target {k} that is not finite")
            into[k] = values
    turns[:, ~normals.any(axis=1)] = 0
    return MorphTargets(node, positions, turns)
