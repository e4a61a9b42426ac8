"""Morph targets of one pose (glTF 2.0 specification, section 3.7.2.2).

position = base + sum over targets of weight x displacement, and normals likewise. Skinning comes
after it. Owns the arithmetic; `engine.scene.gltf_morph` reads targets and weights from a file.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.scene.mesh import F32, F64

# The specification asks for 8. A pose goes through all of them for every vertex.
MAX_TARGETS = 1024


@dataclass(frozen=True, slots=True)
class MorphTargets:
    """Displacements of a mesh's vertices, mixed by the weights of `node`. Those of normals are zero
    where the mesh stores none."""

    node: int
    positions: F32  # [k, v, 3]
    normals: F32  # [k, v, 3]

    def of_vertices(self, kept: NDArray[np.integer] | slice) -> "MorphTargets":
        """Of some of the vertices."""
        return MorphTargets(self.node, self.positions[:, kept], self.normals[:, kept])


def morphed(base: NDArray[np.floating], displacements: F32, weights: F64) -> F64:
    """[v, 3] `base` displaced by `displacements` [k, v, 3] times `weights` [k], which may be any
    numbers. A target of weight zero changes no bit."""
    moved = np.array(base, np.float64)
    for weight, displacement in zip(weights, displacements, strict=True):
        if weight != 0:
            moved += weight * displacement.astype(np.float64)
    return moved
