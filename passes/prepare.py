"""Turns a scene into what a frame uses: grouped, recentred meshes and the BVH over them.

The same vertices are rasterised and traced. Groups:

* `static` (default): every static, opaque mesh that is placed once becomes part of one BLAS;
  shared meshes stay instances, alpha-tested and deforming ones keep a BLAS of their own.
* `object`: one BLAS a mesh; the primitives of a file's mesh are its geometries.
* `all`: everything that stays in one BLAS, shared meshes copied.

What an animation moves keeps a BLAS of its own in every group. Triangles of a mesh that deforms
share a block only where every pose moves the corners that they share alike, or the whole mesh has
blocks of one triangle: so it can be refitted. In front of the BLASes is room for any TLAS of that
many instances, which a moving frame builds anew.

Triangles of an alpha-tested material are classified by what they cover of its texture
(`passes.opacity`): those without a hole count as opaque, those that are all hole are left out.

Recentring: FP16 bounds are finest around zero. Unless nodes are FP32 only, meshes whose box lies
off the origin by more than its own half size move to the middle of their box, and their
instances' transforms move them back: that is where at least one bit of precision is won.

Meshes outside the range of coordinates that rays can be traced through (`bvh.coordinate_range`) are
scaled by a power of two, and their instances' transforms scale them back. In the world there is no
such way out: what reaches too far, or a scene that is too small, is refused by name.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from bvh.blas_cache import BlasCache
from bvh.build import Blas, BuildOptions, build_blas
from bvh.coordinate_range import describe, largest_coordinate, scale_into_range
from bvh.gpu.tlas import tlas_bytes
from bvh.scene_bvh import SceneBvh, assemble
from bvh.tlas import BvhInstance
from engine.gpu.device import Device
from engine.gpu.errors import UserError
from engine.scene.animation import Animation
from engine.scene.mesh import Mesh
from engine.scene.pose import moves
from engine.scene.scene import Instance, Scene
from engine.scene.upload import ScenePack, pack_scene
from passes.build_blases import BlasRequest, Build, SharedBuilder, Told, build_blases
from passes.frame_options import FULL_MASK
from passes.opacity import CLASSES, MIXED, U8, scene_opacity
from passes.skinned import may_refit, skinned_table, vertex_count, vertex_triangles

GROUPS = ("static", "object", "all")

# Farthest from the origin that anything may be placed, in metres: shading squares the product of
# two edges, each up to twice as long, in float32. And how far some of the scene has to reach at
# least: a default view comes no closer (`engine.scene.default_view`).
WORLD_REACH = 2.0**29
SMALLEST_REACH = 2.0**-20


@dataclass(frozen=True, slots=True)
class PreparedScene:
    """`scene` is what is rasterised and traced: its instances are the objects that hits name.
    `object_names[i]` names TLAS instance i for reports; instances of one mesh share a name.
    `opacity[m]` are the classes of the triangles of mesh m (`passes.opacity`). `diagonal` of the
    scene's box, as its file places it, in metres."""

    scene: Scene
    bvh: SceneBvh
    pack: ScenePack
    object_names: tuple[str, ...]
    group: str
    options: BuildOptions
    opacity: tuple[U8, ...]
    diagonal: float

    @property
    def asks(self) -> bool:
        """Whether a ray can meet a triangle whose alpha has to be tested."""
        return any((classes == MIXED).any() for classes in self.opacity)

    def opacity_counts(self) -> dict[str, int]:
        """Of all meshes' triangles, placed or not: how many are of which class."""
        counts = sum((np.bincount(c, minlength=3) for c in self.opacity), np.zeros(3, np.int64))
        return {name: int(counts[i]) for name, i in CLASSES.items()}


def prepare(
    scene: Scene,
    options: BuildOptions | None = None,
    group: str = "static",
    cache: BlasCache | None = None,
    device: Device | None = None,
    *,
    build: Build | None = None,
    told: Told | None = None,
) -> PreparedScene:
    """Groups, recentres, builds and packs. UserError for an unknown group, or one naming an
    instance whose transform is singular or that lies outside the range of coordinates. BLASes of
    what does not deform come from `cache` where it has them.

    With a `device` and near pairing BLASes are built there, to the same bytes as without (by a
    `passes.build_blases.SharedBuilder`); best pairing is the CPU's. `build` replaces `build_blas`
    for all of them; `told` is called before each."""
    options = options or BuildOptions()
    if group not in GROUPS:
        raise UserError(f"unknown group '{group}', there are {', '.join(GROUPS)}")
    recentre = options.nodes != "fp32"
    members = _group_members(scene, group)
    merged = set(members)
    others = [i for i in range(len(scene.instances)) if i not in merged]

    of_mesh = scene_opacity(scene, options.opacity)
    meshes: list[Mesh] = []
    opacity: list[U8] = []
    instances: list[Instance] = []
    requests: list[BlasRequest] = []
    bvh_instances: list[BvhInstance] = []
    object_names: list[str] = []

    if members:
        baked = [_bake(scene, scene.instances[i]) for i in members]
        baked, transform = _centred(baked, recentre)
        for index, mesh in zip(members, baked, strict=True):
            placed = replace(scene.instances[index], mesh=len(meshes), transform=transform)
            instances.append(placed)
            meshes.append(mesh)
        opacity += [of_mesh[scene.instances[i].mesh] for i in members]
        requests.append(BlasRequest(group, tuple(baked), tuple(opacity)))
        bvh_instances.append(BvhInstance(0, transform, FULL_MASK, first_object=0, name=group))
        object_names.append(group)

    blas_of_meshes: dict[tuple[int, ...], tuple[int, int, np.ndarray]] = {}
    for parts in _placed_wholes(scene, others):
        key = tuple(scene.instances[i].mesh for i in parts)
        if key not in blas_of_meshes:
            lasting = scene.instances[parts[0]].lifetime != "deforming"
            whole = [scene.meshes[mesh] for mesh in key]
            whole, back = _centred(whole, recentre, may_scale=lasting)
            blas_of_meshes[key] = (len(requests), len(meshes), back)
            meshes += whole
            classes = [of_mesh[mesh] for mesh in key]
            opacity += classes
            name = whole[0].name if len(whole) == 1 else _stem(whole[0].name)
            requests.append(BlasRequest(name, tuple(whole), tuple(classes), lasting))
        blas, first_mesh, shift = blas_of_meshes[key]
        first = scene.instances[parts[0]]
        transform = first.transform @ shift
        name = first.name if len(parts) == 1 else _stem(first.name)
        bvh_instances.append(
            BvhInstance(blas, transform, first.mask, first_object=len(instances), name=name)
        )
        object_names.append(requests[blas].name)
        instances += [
            replace(scene.instances[i], mesh=first_mesh + part, transform=transform)
            for part, i in enumerate(parts)
        ]

    prepared = replace(
        scene,
        meshes=tuple(meshes),
        instances=tuple(instances),
        animation=_animation(scene, instances),
    )
    if build is None and device is not None and options.pairing == "near":
        build = SharedBuilder(device).build
    fits = _Refittable(prepared, bvh_instances, requests)
    blases = build_blases(requests, options, build or build_blas, cache, told, fits)
    _check_reach(blases, bvh_instances)
    room = tlas_bytes(len(bvh_instances)) if moves(prepared) else 0
    names = [request.name for request in requests]
    bvh = assemble(blases, names, bvh_instances, options, tlas_room=room)
    low, high = scene.bounds()
    return PreparedScene(
        prepared,
        bvh,
        pack_scene(prepared),
        tuple(object_names),
        group,
        options,
        tuple(opacity),
        diagonal=float(np.linalg.norm(high - low)),
    )


class _Refittable:
    """Says of BLAS number i, as built, whether it can be refitted as its meshes deform."""

    def __init__(
        self, scene: Scene, placed: Sequence[BvhInstance], requests: Sequence[BlasRequest]
    ) -> None:
        skinned = {m.mesh for m in scene.animation.skinned} if scene.animation else set()
        self._triangles: dict[int, list[np.ndarray]] = {}
        for item in placed:
            last = item.first_object + len(requests[item.blas].meshes)
            parts = scene.instances[item.first_object : last]
            meshes = [part.mesh for part in parts]
            if skinned & set(meshes):
                self._triangles[item.blas] = vertex_triangles(scene, meshes)
        self._alike = np.zeros(0, np.uint32)
        if self._triangles:
            self._alike = skinned_table(scene).alike(vertex_count(scene))

    def __call__(self, index: int, blas: Blas) -> bool:
        triangles = self._triangles.get(index)
        return triangles is None or may_refit(blas.words, triangles, self._alike)


def _animation(scene: Scene, instances: Sequence[Instance]) -> Animation | None:
    """The scene's animation by the numbers of its prepared instances, which keep their names."""
    if scene.animation is None:
        return None
    old = {instance.name: i for i, instance in enumerate(scene.instances)}
    order = [old[instance.name] for instance in instances]
    meshes = {scene.instances[i].mesh: new.mesh for i, new in zip(order, instances, strict=True)}
    return scene.animation.renumbered(meshes, order)


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
        stays = scene.animation is None or instance.lifetime == "static"
        if instance.mask == FULL_MASK and stays and (group == "all" or alone):
            members.append(index)
    return members


def _placed_wholes(scene: Scene, indices: Sequence[int]) -> list[tuple[int, ...]]:
    """The instances by the thing they are parts of: neighbours named "x/0", "x/1", ... in one
    place (and on one node, where nodes move) are the primitives of one mesh, which become the
    geometries of one BLAS."""
    nodes = scene.animation.instance_nodes if scene.animation else (0,) * len(scene.instances)
    wholes: list[tuple[int, ...]] = []
    for index in indices:
        instance = scene.instances[index]
        last = scene.instances[wholes[-1][-1]] if wholes else None
        if (
            last is not None
            and "/" in instance.name
            and _stem(last.name) == _stem(instance.name)
            and wholes[-1][-1] == index - 1
            and nodes[index] == nodes[index - 1]
            and (last.mask, last.lifetime) == (instance.mask, instance.lifetime)
            and np.array_equal(last.transform, instance.transform)
        ):
            wholes[-1] = (*wholes[-1], index)
        else:
            wholes.append((index,))
    return wholes


def _stem(name: str) -> str:
    """The name of the whole that a part is named after."""
    return name.rpartition("/")[0] or name


def _bake(scene: Scene, instance: Instance) -> Mesh:
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
    used = [m.positions[np.unique(m.triangles)] for m in meshes if len(m.triangles)]
    if not used:
        return np.zeros(3)
    low = np.min([p.min(axis=0) for p in used], axis=0).astype(np.float64)
    high = np.max([p.max(axis=0) for p in used], axis=0).astype(np.float64)
    middle, half = 0.5 * (low + high), 0.5 * (high - low)
    if (np.abs(middle) <= half.max()).all():
        return np.zeros(3)
    return middle.astype(np.float32).astype(np.float64)


def _centred(
    meshes: Sequence[Mesh], recentre: bool, *, may_scale: bool = True
) -> tuple[list[Mesh], np.ndarray]:
    """The meshes where and as large as they are traced best, and the [4, 4] transform that undoes
    it. UserError, naming the first mesh, where they had to be scaled but must not be."""
    centre = _centre(meshes) if recentre else np.zeros(3)
    back = np.eye(4)
    back[:3, 3] = centre
    largest = max(largest_coordinate(m.positions[m.used_vertices()] - centre) for m in meshes)
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
    return replace(mesh, positions=moved)


def _check_placed(name: str, reach: float) -> None:
    if reach > WORLD_REACH:
        raise UserError(
            f"'{name}' reaches {reach:.3g} from the origin; the frame is right up to "
            f"{WORLD_REACH:.2g}"
        )


def _check_reach(blases: Sequence[Blas], instances: Sequence[BvhInstance]) -> None:
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
