"""The whole scene: shared meshes, materials, textures, instances, and what looks and shines.

Lengths are metres, +Y is up. An instance places one mesh; several instances may share one.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engine.gpu.errors import UserError
from engine.scene.animation import Animation
from engine.scene.camera import Camera
from engine.scene.camera_path import CameraPath
from engine.scene.light import MOST_LIGHTS, Environment, RectLight
from engine.scene.material import Material, Texture
from engine.scene.mesh import F64, Mesh

_ROUNDING = 1e-12  # of a scene's box / its largest coordinate

LIFETIMES = ("static", "deforming", "rigid", "vegetation")


@dataclass(frozen=True, slots=True)
class Instance:
    """One placed mesh. `transform` [4, 4] is object-to-world; `mask` 8 bits that a ray's mask is
    ANDed with; `lifetime` is "static", "deforming" when vertices move (a skinned mesh), "rigid"
    when only the transform does (a clip moves its node), or "vegetation": many copies that stay,
    each of which keeps an instance of its own unless a build merges all that stays."""

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
    lights: tuple[RectLight, ...] = ()
    environment: Environment | None = None
    notes: tuple[str, ...] = ()
    animation: Animation | None = None
    camera_path: CameraPath | None = None
    ray_bits: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Scene:
    """Everything a frame needs. `notes` are lines for the user (what was skipped or guessed);
    `sha256` covers the file and every file it refers to; `camera_path` is a way through the scene
    where its file describes one. `ray_bits`, where its file says which ray types see which objects,
    are the bits of instances' masks that rays of each type carry at most; else all carry all.

    `more_lights` shine beside `light`. UserError for more than MOST_LIGHTS in all."""

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
    camera_path: CameraPath | None = None
    ray_bits: tuple[tuple[str, int], ...] = ()
    more_lights: tuple[RectLight, ...] = ()

    def __post_init__(self) -> None:
        if len(self.lights) > MOST_LIGHTS:
            raise UserError(
                f"{self.name}: {len(self.lights)} area lights, the limit is {MOST_LIGHTS}"
            )

    def __repr__(self) -> str:
        """In one line: nobody reads all of the arrays."""
        count = f"{self.triangle_count:,} triangles in {len(self.instances):,} instances"
        return f"<Scene {self.name}: {count}, {len(self.materials):,} materials>"

    @property
    def lights(self) -> tuple[RectLight, ...]:
        return (self.light, *self.more_lights)

    @property
    def triangle_count(self) -> int:
        """Triangles, and spheres, after instancing."""
        return sum(len(self.meshes[i.mesh].triangles) for i in self.instances)

    def bounds(self) -> F64:
        """[2, 3] smallest and largest corner of all placed triangles in world space."""
        return scene_bounds(self.meshes, self.instances)


def scene_bounds(meshes: Sequence[Mesh], instances: Sequence[Instance]) -> F64:
    """[2, 3] world box of every vertex that a triangle uses; zeros for an empty scene.

    Vertices are only gone through for instances whose box of eight corners reaches farther than
    what was found before, and once for all that stand equally upright, as copies turned about +Y
    do: of thousands that is a handful.
    """
    used, numbers, outer = _reaches(meshes, instances)
    if not numbers:
        return np.zeros((2, 3))
    rounding = _ROUNDING * float(np.abs(outer).max())
    extents: dict[tuple[int, int, bytes], float] = {}
    bounds = np.zeros((2, 3))
    for side, axis in np.ndindex(2, 3):
        sign = 2 * side - 1
        reach = sign * outer[:, side, axis]
        best = -np.inf
        for at in np.argsort(-reach, kind="stable").tolist():
            if reach[at] <= best + rounding:
                break
            instance = instances[numbers[at]]
            row = instance.transform[axis, :3]
            key = (instance.mesh, side, row.tobytes())
            if key not in extents:
                extents[key] = float((used[instance.mesh] @ (sign * row)).max())
            best = max(best, extents[key] + sign * float(instance.transform[axis, 3]))
        bounds[side, axis] = sign * best
    return bounds


def instance_boxes(
    meshes: Sequence[Mesh], instances: Sequence[Instance], frame: F64 | None = None
) -> tuple[list[int], F64]:
    """The numbers of the instances that have triangles, and [n, 2, 3] a box around each, as seen
    from `frame` [3, 3]: that of its mesh's box, so often larger than it has to be."""
    _, numbers, boxes = _reaches(meshes, instances, frame)
    return numbers, boxes


def _reaches(
    meshes: Sequence[Mesh], instances: Sequence[Instance], frame: F64 | None = None
) -> tuple[dict[int, F64], list[int], F64]:
    used: dict[int, F64] = {}
    middles: dict[int, F64] = {}
    halves: dict[int, F64] = {}
    for mesh_number in {instance.mesh for instance in instances}:
        mesh = meshes[mesh_number]
        points = mesh.extent().astype(np.float64)
        used[mesh_number] = points
        if len(points):
            low, high = points.min(axis=0), points.max(axis=0)
            middles[mesh_number], halves[mesh_number] = (low + high) / 2, (high - low) / 2
    numbers = [i for i, instance in enumerate(instances) if instance.mesh in middles]
    if not numbers:
        return used, [], np.zeros((0, 2, 3))
    placed = [instances[i] for i in numbers]
    matrices = np.array([instance.transform[:3] for instance in placed])
    if frame is not None:
        matrices = frame @ matrices
    middle = np.array([middles[instance.mesh] for instance in placed])
    half = np.array([halves[instance.mesh] for instance in placed])
    center = np.einsum("nij,nj->ni", matrices[:, :, :3], middle) + matrices[:, :, 3]
    reach = np.einsum("nij,nj->ni", np.abs(matrices[:, :, :3]), half)
    return used, numbers, np.stack([center - reach, center + reach], axis=1)
