"""The whole scene: shared meshes, materials, textures, instances, and what looks and shines.

Lengths are metres, +Y is up. An instance places one mesh; several instances may share one.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engine.scene.animation import Animation
from engine.scene.camera import Camera
from engine.scene.light import Environment, RectLight
from engine.scene.material import Material, Texture
from engine.scene.mesh import F64, Mesh

LIFETIMES = ("static", "deforming", "rigid")


@dataclass(frozen=True, slots=True)
class Instance:
    """One placed mesh. `transform` [4, 4] is object-to-world; `mask` 8 bits that a ray's mask is
    ANDed with; `lifetime` is "static", "deforming" when vertices move (a skinned mesh), or "rigid"
    when only the transform does (a clip moves its node)."""

    name: str
    mesh: int
    transform: F64
    mask: int = 0xFF
    lifetime: str = "static"


@dataclass(frozen=True, slots=True)
class Parts:
    """What a file holds, before a default view fills the gaps."""

    meshes: tuple[Mesh, ...]
    materials: tuple[Material, ...]
    textures: tuple[Texture, ...]
    instances: tuple[Instance, ...]
    camera: Camera | None = None
    light: RectLight | None = None
    environment: Environment | None = None
    notes: tuple[str, ...] = ()
    animation: Animation | None = None


@dataclass(frozen=True, slots=True)
class Scene:
    """Everything a frame needs. `notes` are lines for the user (what was skipped or guessed);
    `sha256` covers the file and every file it refers to."""

    name: str
    meshes: tuple[Mesh, ...]
    materials: tuple[Material, ...]
    textures: tuple[Texture, ...]
    instances: tuple[Instance, ...]
    camera: Camera
    light: RectLight
    environment: Environment
    camera_source: str = "file"  # or "default"
    light_source: str = "file"  # or "default", "flag"
    sha256: str = ""
    notes: tuple[str, ...] = ()
    animation: Animation | None = None

    @property
    def triangle_count(self) -> int:
        """Triangles after instancing."""
        return sum(len(self.meshes[i.mesh].triangles) for i in self.instances)

    def bounds(self) -> F64:
        """[2, 3] smallest and largest corner of all placed triangles in world space."""
        return scene_bounds(self.meshes, self.instances)


def scene_bounds(meshes: Sequence[Mesh], instances: Sequence[Instance]) -> F64:
    """[2, 3] world box of every vertex that a triangle uses; zeros for an empty scene."""
    low, high = np.full(3, np.inf), np.full(3, -np.inf)
    used: dict[int, F64] = {}
    for instance in instances:
        if instance.mesh not in used:
            mesh = meshes[instance.mesh]
            points = mesh.positions[mesh.used_vertices()]
            used[instance.mesh] = points.astype(np.float64)
        local = used[instance.mesh]
        if len(local):
            world = local @ instance.transform[:3, :3].T + instance.transform[:3, 3]
            low = np.minimum(low, world.min(axis=0))
            high = np.maximum(high, world.max(axis=0))
    return np.stack([low, high]) if np.isfinite(low).all() else np.zeros((2, 3))
