"""Turns a scene into what a frame uses: grouped, recentred meshes and the BVH over them.

The same vertices are rasterised and traced. Groups:

* `static` (default): every static, opaque mesh that is placed once becomes part of one BLAS;
  shared meshes stay instances, alpha-tested and deforming ones keep a BLAS of their own.
* `object`: one BLAS a mesh.
* `all`: everything in one BLAS, shared meshes copied.

Recentring: FP16 bounds are finest around zero. Unless nodes are FP32 only, meshes whose box lies
off the origin by more than its own half size move to the middle of their box, and their
instances' transforms move them back: that is where at least one bit of precision is won.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from bvh.build import Blas, BuildOptions, build_blas
from bvh.scene_bvh import SceneBvh, assemble
from bvh.tlas import BvhInstance
from engine.gpu.errors import UserError
from engine.scene.mesh import Mesh
from engine.scene.scene import Instance, Scene
from engine.scene.upload import ScenePack, pack_scene

GROUPS = ("static", "object", "all")
FULL_MASK = 0xFF


@dataclass(frozen=True, slots=True)
class PreparedScene:
    """`scene` is what is rasterised and traced: its instances are the objects that hits name.
    `object_names[i]` names TLAS instance i for reports; instances of one mesh share a name."""

    scene: Scene
    bvh: SceneBvh
    pack: ScenePack
    object_names: tuple[str, ...]
    group: str
    options: BuildOptions


def prepare(
    scene: Scene, options: BuildOptions | None = None, group: str = "static"
) -> PreparedScene:
    """Groups, recentres, builds and packs. UserError for an unknown group, or one naming a
    singular transform."""
    options = options or BuildOptions()
    if group not in GROUPS:
        raise UserError(f"unknown group '{group}', there are {', '.join(GROUPS)}")
    recentre = options.nodes != "fp32"
    members = _group_members(scene, group)
    others = [i for i in range(len(scene.instances)) if i not in set(members)]

    meshes: list[Mesh] = []
    instances: list[Instance] = []
    blases: list[Blas] = []
    names: list[str] = []
    bvh_instances: list[BvhInstance] = []
    object_names: list[str] = []

    if members:
        baked = [_bake(scene, scene.instances[i]) for i in members]
        centre = _centre(baked) if recentre else np.zeros(3)
        baked = [_shifted(mesh, centre) for mesh in baked]
        transform = _translation(centre)
        for index, mesh in zip(members, baked, strict=True):
            placed = replace(scene.instances[index], mesh=len(meshes), transform=transform)
            instances.append(placed)
            meshes.append(mesh)
        blases.append(_build(scene, baked, options))
        names.append(group)
        bvh_instances.append(BvhInstance(0, transform, FULL_MASK, first_object=0, name=group))
        object_names.append(group)

    blas_of_mesh: dict[int, tuple[int, int, np.ndarray]] = {}
    for index in others:
        instance = scene.instances[index]
        if instance.mesh not in blas_of_mesh:
            mesh = scene.meshes[instance.mesh]
            centre = _centre([mesh]) if recentre else np.zeros(3)
            mesh = _shifted(mesh, centre)
            blas_of_mesh[instance.mesh] = (len(blases), len(meshes), _translation(centre))
            meshes.append(mesh)
            blases.append(_build(scene, [mesh], options))
            names.append(mesh.name)
        blas, new_mesh, shift = blas_of_mesh[instance.mesh]
        transform = instance.transform @ shift
        bvh_instances.append(
            BvhInstance(
                blas, transform, instance.mask, first_object=len(instances), name=instance.name
            )
        )
        object_names.append(names[blas])
        instances.append(replace(instance, mesh=new_mesh, transform=transform))

    prepared = replace(scene, meshes=tuple(meshes), instances=tuple(instances))
    bvh = assemble(blases, names, bvh_instances, options)
    return PreparedScene(prepared, bvh, pack_scene(prepared), tuple(object_names), group, options)


def _group_members(scene: Scene, group: str) -> list[int]:
    """Indices of the instances that share one BLAS."""
    if group == "object":
        return []
    uses = Counter(instance.mesh for instance in scene.instances)
    members = []
    for index, instance in enumerate(scene.instances):
        material = scene.materials[scene.meshes[instance.mesh].material]
        alone = uses[instance.mesh] == 1 and instance.lifetime == "static" and material.opaque
        # A mask belongs to a TLAS instance, so only those that every ray sees can be merged.
        if instance.mask == FULL_MASK and (group == "all" or alone):
            members.append(index)
    return members


def _bake(scene: Scene, instance: Instance) -> Mesh:
    """The instance's mesh with its transform applied (float64, rounded once)."""
    mesh = scene.meshes[instance.mesh]
    matrix = np.asarray(instance.transform, np.float64)
    if np.array_equal(matrix, np.eye(4)):
        return replace(mesh, name=instance.name)
    linear = matrix[:3, :3]
    if abs(np.linalg.det(linear)) == 0.0:
        raise UserError(f"instance '{instance.name}' has a singular transform")
    positions = mesh.positions @ linear.T + matrix[:3, 3]
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
    used = [m.positions[np.unique(m.triangles)] for m in meshes if len(m.triangles)]
    if not used:
        return np.zeros(3)
    low = np.min([p.min(axis=0) for p in used], axis=0).astype(np.float64)
    high = np.max([p.max(axis=0) for p in used], axis=0).astype(np.float64)
    middle, half = 0.5 * (low + high), 0.5 * (high - low)
    if (np.abs(middle) <= half.max()).all():
        return np.zeros(3)
    return middle.astype(np.float32).astype(np.float64)


def _shifted(mesh: Mesh, centre: np.ndarray) -> Mesh:
    if not centre.any():
        return mesh
    moved = (mesh.positions.astype(np.float64) - centre).astype(np.float32)
    return replace(mesh, positions=moved)


def _translation(offset: np.ndarray) -> np.ndarray:
    matrix = np.eye(4)
    matrix[:3, 3] = offset
    return matrix


def _build(scene: Scene, meshes: Sequence[Mesh], options: BuildOptions) -> Blas:
    """One BLAS whose geometry g is meshes[g]."""
    counts = [len(mesh.triangles) for mesh in meshes]
    triangles = np.concatenate([mesh.positions[mesh.triangles] for mesh in meshes])
    geometry = np.repeat(np.arange(len(meshes), dtype=np.uint32), counts)
    primitive = np.concatenate([np.arange(count, dtype=np.uint32) for count in counts])
    opaque = np.array([scene.materials[mesh.material].opaque for mesh in meshes], bool)
    return build_blas(triangles, geometry, primitive, opaque, options)
