"""Linear blend skinning of one pose (glTF 2.0 specification, section 3.7.3).

world position = sum over influences of weight x joint-to-world x inverse bind x position: the
transform of the skinned node itself does not take part. Owns the arithmetic; reading skins and
node transforms from a file is the importer's work.
"""

import numpy as np
from numpy.typing import NDArray

from engine.scene.mesh import F64


def joint_matrices(joint_to_world: F64, inverse_bind: F64) -> F64:
    """[j, 4, 4] bind pose to world, from the joints' world transforms [j, 4, 4]."""
    return joint_to_world @ inverse_bind


def unit_weights(weights: F64) -> F64:
    """[v, k] brought to sum 1, as exporters round them; a vertex without any weight follows its
    first joint."""
    weights = np.array(weights, np.float64)
    total = weights.sum(axis=1)
    weights[total <= 0, 0] = 1.0
    return np.asarray(weights / np.where(total > 0, total, 1.0)[:, None])


def blend_matrices(matrices: F64, joints: NDArray[np.integer], weights: F64) -> F64:
    """[v, 4, 4] each vertex's blend of `matrices` [j, 4, 4] for `joints` and `weights` [v, k].

    Weights are brought to sum 1 (see `unit_weights`). Raises IndexError for a joint that the skin
    lacks.
    """
    weights = unit_weights(weights)
    blended = np.zeros((len(weights), 4, 4))
    for k in range(weights.shape[1]):  # at most a handful of influences a vertex
        blended += weights[:, k, None, None] * matrices[joints[:, k]]
    return blended


def skin_positions(positions: NDArray[np.floating], blended: F64) -> F64:
    """[v, 3] posed positions."""
    posed = np.einsum("vij,vj->vi", blended[:, :3, :3], np.asarray(positions, np.float64))
    return posed + blended[:, :3, 3]


def skin_normals(normals: NDArray[np.floating], blended: F64) -> F64:
    """[v, 3] posed normals, not yet unit: through the cofactor matrix, which is the inverse
    transpose up to a factor and exists for a flattened joint too."""
    linear = blended[:, :3, :3]
    rows = [np.cross(linear[:, (i + 1) % 3], linear[:, (i + 2) % 3]) for i in range(3)]
    cofactors = np.stack(rows, axis=1)
    sign = np.where(np.linalg.det(linear) < 0, -1.0, 1.0)
    posed = np.einsum("vij,vj->vi", cofactors, np.asarray(normals, np.float64))
    return posed * sign[:, None]
