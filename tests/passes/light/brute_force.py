"""Rays against every triangle of a scene, float64, without a tree: for references.

Each triangle has the affine map that makes it the unit triangle in the plane w = 0 (Woop, Benthin,
Slusallek, "Watertight Ray/Triangle Intersection", 2013, calls it the baseline): two matrix products
give all rays' starts and directions in all triangles' spaces.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from engine.scene.scene import Scene

OFFSET = 1e-6  # metres that rays start off their surface
PARALLEL = 1e-12


@dataclass(frozen=True)
class Triangles:
    """World-space triangles [t]: the maps into their own spaces, and what they carry."""

    rows: Any  # [3 t, 3] of the maps
    moves: Any  # [3 t]
    normal: Any  # [t, 3] unit, by the winding
    corner_normals: Any  # [t, 3, 3], zero where the file stores none
    corner_uvs: Any  # [t, 3, 2]
    corners: Any  # [t, 3, 3]
    material: Any  # [t]
    holes: Any  # [t] of the alpha-tested

    @property
    def count(self) -> int:
        return len(self.material)


def gather(scene: Scene) -> Triangles:
    """All instances' triangles."""
    corners, normals, uvs, material = [], [], [], []
    for instance in scene.instances:
        mesh = scene.meshes[instance.mesh]
        to_world = np.asarray(instance.transform, np.float64)
        points = mesh.positions.astype(np.float64) @ to_world[:3, :3].T + to_world[:3, 3]
        turned = mesh.normals.astype(np.float64) @ np.linalg.inv(to_world[:3, :3])
        corners.append(points[mesh.triangles])
        normals.append(turned[mesh.triangles])
        uvs.append(mesh.uvs.astype(np.float64)[mesh.triangles])
        material.append(np.full(len(mesh.triangles), mesh.material))
    p = np.concatenate(corners)
    u, v = p[:, 1] - p[:, 0], p[:, 2] - p[:, 0]
    cross = np.cross(u, v)
    maps = np.linalg.inv(np.stack([u, v, cross], axis=2))
    kind = np.concatenate(material)
    masks = np.array([not m.opaque for m in scene.materials])
    return Triangles(
        rows=maps.reshape(-1, 3),
        moves=-(maps @ p[:, 0, :, None]).reshape(-1),
        normal=cross / np.linalg.norm(cross, axis=1, keepdims=True),
        corner_normals=np.concatenate(normals),
        corner_uvs=np.concatenate(uvs),
        corners=p,
        material=kind,
        holes=np.flatnonzero(masks[kind]),
    )


def alpha_of(scene: Scene, material: int, uv: Any) -> Any:
    """[n] bilinear alpha of the base colour texture, which repeats, at uv [n, 2]."""
    pixels = scene.textures[scene.materials[material].base_color_texture].pixels
    height, width = pixels.shape[:2]
    x, y = uv[:, 0] * width - 0.5, uv[:, 1] * height - 0.5
    column, row = np.floor(x), np.floor(y)
    total = np.zeros(len(uv))
    for i, part_x in ((0, 1 - (x - column)), (1, x - column)):
        for j, part_y in ((0, 1 - (y - row)), (1, y - row)):
            at = (row + j).astype(int) % height, (column + i).astype(int) % width
            total += part_x * part_y * pixels[(*at, 3)] / 255.0
    return total


@dataclass(frozen=True)
class Caster:
    scene: Scene
    triangles: Triangles

    def distances(self, origins: Any, directions: Any, most: Any) -> tuple[Any, Any, Any]:
        """t, u and v [rays, triangles]; t is infinite where a triangle is missed, is beyond `most`
        or has a hole."""
        rays, found = len(origins), self.triangles
        start = (origins @ found.rows.T + found.moves).reshape(rays, -1, 3)
        along = (directions @ found.rows.T).reshape(rays, -1, 3)
        sinks = np.where(np.abs(along[..., 2]) < PARALLEL, np.nan, along[..., 2])
        t = -start[..., 2] / sinks
        u = start[..., 0] + t * along[..., 0]
        v = start[..., 1] + t * along[..., 1]
        hit = (t > 0) & (t < np.reshape(most, (-1, 1))) & (u >= 0) & (v >= 0) & (u + v <= 1)
        for triangle in found.holes:
            here = np.flatnonzero(hit[:, triangle])
            weights = np.stack(
                [1 - u[here, triangle] - v[here, triangle], u[here, triangle], v[here, triangle]]
            )
            kind = int(found.material[triangle])
            alpha = alpha_of(self.scene, kind, weights.T @ found.corner_uvs[triangle])
            hit[here, triangle] = alpha >= self.scene.materials[kind].alpha_cutoff
        return np.where(hit, t, np.inf), u, v

    def nearest(self, origins: Any, directions: Any) -> tuple[Any, Any, Any, Any]:
        """Triangle (-1: none), t, u and v, [rays] each."""
        t, u, v = self.distances(origins, directions, np.full(len(origins), np.inf))
        triangle = t.argmin(axis=1)
        pick = np.arange(len(t)), triangle
        return np.where(np.isfinite(t[pick]), triangle, -1), t[pick], u[pick], v[pick]

    def free(self, origins: Any, directions: Any, most: Any) -> Any:
        """[rays] whether nothing is nearer than `most`, in lengths of the direction."""
        if not len(origins):
            return np.zeros(0, bool)
        t, _, _ = self.distances(origins, directions, most)
        return ~np.isfinite(t).any(axis=1)
