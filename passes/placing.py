"""Where meshes are traced best: baked into the world, recentred, scaled; and what is refused.

Recentring: FP16 bounds are finest around zero. Unless nodes are FP32 only, meshes whose box lies
off the origin by more than its own half size move to the middle of their box, and their
instances' transforms move them back: that is where at least one bit of precision is won.

Meshes outside the range of coordinates that rays can be traced through (`bvh.coordinate_range`) are
scaled by a power of two, and their instances' transforms scale them back. In the world there is no
such way out: what reaches too far, or a scene that is too small, is refused by name.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from bvh.build import Blas
from bvh.coordinate_range import describe, largest_coordinate, scale_into_range
from bvh.tlas import BvhInstance
from engine.gpu.errors import UserError
from engine.scene.mesh import Mesh
from engine.scene.scene import Instance, Scene

# Farthest from the origin that anything may be placed, in metres: shading squares the product of
# two edges, each up to twice as long, in float32. And how far some of the scene has to reach at
# least: a default view comes no closer (`engine.scene.default_view`).
WORLD_REACH = 2.0**29
SMALLEST_REACH = 2.0**-20


def bake(scene: Scene, instance: Instance) -> Mesh:
    """The instance's mesh with its transform applied (float64, rounded once)."""
    mesh = scene.meshes[instance.mesh]
    matrix = np.asarray(instance.transform, np.float64)
    still = np.array_equal(matrix, np.eye(4))
    linear = matrix[:3, :3]
    positions = mesh.positions if still else mesh.positions @ linear.T + matrix[:3, 3]
    _check_placed(instance.name, largest_coordinate(positions[mesh.used_vertices()]))
    if still:
        return replace(mesh, name=instance.name)
    if abs(np.linalg.det(linear)) == 0.0:
        raise UserError(f"instance '{instance.name}' has a singular transform")
    normals = mesh.normals @ np.linalg.inv(linear)
    lengths = np.linalg.norm(normals, axis=1, keepdims=True)
    normals = normals / np.where(lengths > 0, lengths, 1)
    return replace(
        mesh,
        name=instance.name,
        positions=np.ascontiguousarray(positions, np.float32),
        normals=np.ascontiguousarray(normals, np.float32),
    )


def _centre(meshes: Sequence[Mesh]) -> np.ndarray:
    """Where the meshes' common box moves from, representable in float32: its middle, or zero
    where moving would not win a bit of FP16 precision."""
    used = [points for points in (m.extent() for m in meshes) if len(points)]
    if not used:
        return np.zeros(3)
    low = np.min([p.min(axis=0) for p in used], axis=0).astype(np.float64)
    high = np.max([p.max(axis=0) for p in used], axis=0).astype(np.float64)
    middle, half = 0.5 * (low + high), 0.5 * (high - low)
    if (np.abs(middle) <= half.max()).all():
        return np.zeros(3)
    return middle.astype(np.float32).astype(np.float64)


def centred(
    meshes: Sequence[Mesh], recentre: bool, *, may_scale: bool = True
) -> tuple[list[Mesh], np.ndarray]:
    """The meshes where and as large as they are traced best, and the [4, 4] transform that undoes
    it. UserError, naming the first mesh, where they had to be scaled but must not be."""
    centre = _centre(meshes) if recentre else np.zeros(3)
    back = np.eye(4)
    back[:3, 3] = centre
    largest = max(largest_coordinate(m.extent() - centre) for m in meshes)
    scale = scale_into_range(largest)
    if scale != 1.0:
        if not may_scale:
            raise UserError(f"mesh '{meshes[0].name}' deforms: {describe(largest)}")
        back[:3, :3] /= scale
    return [_moved(mesh, centre, scale) for mesh in meshes], back


def _moved(mesh: Mesh, centre: np.ndarray, scale: float) -> Mesh:
    if scale == 1.0 and not centre.any():
        return mesh
    moved = ((mesh.positions.astype(np.float64) - centre) * scale).astype(np.float32)
    radii = None if mesh.radii is None else (mesh.radii * np.float64(scale)).astype(np.float32)
    return replace(mesh, positions=moved, radii=radii)


def _check_placed(name: str, reach: float) -> None:
    if reach > WORLD_REACH:
        raise UserError(
            f"'{name}' reaches {reach:.3g} from the origin; the frame is right up to "
            f"{WORLD_REACH:.2g}"
        )


def check_reach(blases: Sequence[Blas], instances: Sequence[BvhInstance]) -> None:
    """UserError for an instance that reaches too far, or where none reaches far enough."""
    farthest = 0.0
    for item in instances:
        blas = blases[item.blas]
        if blas.stats.blocks:
            size = np.abs(blas.bounds.astype(np.float64)).max(axis=0)
            matrix = np.asarray(item.transform, np.float64)
            reach = float((np.abs(matrix[:3, :3]) @ size + np.abs(matrix[:3, 3])).max())
            _check_placed(item.name, reach)
            farthest = max(farthest, reach)
    if 0.0 < farthest < SMALLEST_REACH:
        raise UserError(
            f"nothing in the scene is farther than {farthest:.3g} from the origin; the frame is "
            f"right from {SMALLEST_REACH:.2g} on"
        )
