"""Turns a scene into what a frame uses: grouped, recentred meshes and the BVH over them.

The same vertices are rasterised and traced. `passes.grouping` says which instances share a BLAS,
`passes.placing` where their meshes lie in it.

Triangles of a mesh that deforms share a block only where every pose moves the corners that they
share alike, or the whole mesh has blocks of one triangle: so it can be refitted. In front of the
BLASes is room for any TLAS of that many instances, which a moving frame builds anew.

Triangles of an alpha-tested material are classified by what they cover of its texture
(`passes.opacity`): those without a hole count as opaque, those that are all hole are left out.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bvh.blas_cache import BlasCache
from bvh.build import BuildOptions, build_blas
from bvh.gpu.tlas import tlas_bytes
from bvh.scene_bvh import SceneBvh, assemble
from bvh.tlas import BvhInstance
from engine.gpu.device import Device
from engine.gpu.errors import UserError
from engine.scene.animation import Animation
from engine.scene.mesh import F64, Mesh
from engine.scene.pose import moves
from engine.scene.scene import Instance, Scene
from engine.scene.upload import ScenePack, pack_scene
from passes.build_blases import BlasRequest, Build, SharedBuilder, Told, build_blases
from passes.frame_options import FULL_MASK
from passes.grouping import GROUPS, group_members, placed_wholes, stem
from passes.opacity import CLASSES, MIXED, U8, scene_opacity
from passes.placing import bake, centred, check_reach
from passes.skinned import Refittable


@dataclass(frozen=True, slots=True)
class PreparedScene:
    """`scene` is what is rasterised and traced: its instances are the objects that hits name.
    `object_names[i]` names TLAS instance i for reports; instances of one mesh share a name.
    `originals[i]` is which instance object i is of the scene that was given; triangles keep their
    numbers. `opacity[m]` are the classes of the triangles of mesh m (`passes.opacity`). `bounds`
    [2, 3] are the corners of the scene's box, as its file places it, in metres."""

    scene: Scene
    bvh: SceneBvh
    pack: ScenePack
    object_names: tuple[str, ...]
    originals: tuple[int, ...]
    group: str
    options: BuildOptions
    opacity: tuple[U8, ...]
    bounds: F64

    def __repr__(self) -> str:
        """In one line: nobody reads all of the arrays."""
        size = f"{len(self.bvh.blas_stats):,} BLAS, {self.bvh.words.nbytes:,} bytes"
        return f"<PreparedScene {self.scene.name}, group {self.group}: {size}>"

    @property
    def diagonal(self) -> float:
        """Of the scene's box, in metres."""
        low, high = self.bounds
        return float(np.linalg.norm(high - low))

    @property
    def asks(self) -> bool:
        """Whether a ray can meet a triangle whose alpha has to be tested."""
        return any((classes == MIXED).any() for classes in self.opacity)

    def objects(self) -> tuple[tuple[str, ...], NDArray[np.uint32]]:
        """The distinct `object_names`, and [TLAS instances] 1 + the place of each one's."""
        places: dict[str, int] = {}
        rows = [places.setdefault(name, 1 + len(places)) for name in self.object_names]
        return tuple(places), np.array(rows, np.uint32)

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
    like: PreparedScene | None = None,
) -> PreparedScene:
    """Groups, recentres, builds and packs. UserError for an unknown group, or one naming an
    instance whose transform is singular or that lies outside the range of coordinates. BLASes
    come from `cache` where it has them, of what deforms as it lies at rest.

    With a `device` and near pairing BLASes are built there, to the same bytes as without (by a
    `passes.build_blases.SharedBuilder`); best pairing is the CPU's. `build` replaces `build_blas`
    for all of them; `told` is called before each. Where `like` has the same textures, they are not
    packed again."""
    options = options or BuildOptions()
    if group not in GROUPS:
        raise UserError(f"unknown group '{group}', there are {', '.join(GROUPS)}")
    recentre = options.nodes != "fp32"
    members = group_members(scene, group)
    merged = set(members)
    others = [i for i in range(len(scene.instances)) if i not in merged]

    of_mesh = scene_opacity(scene, options.opacity)
    meshes: list[Mesh] = []
    opacity: list[U8] = []
    instances: list[Instance] = []
    requests: list[BlasRequest] = []
    bvh_instances: list[BvhInstance] = []
    object_names: list[str] = []
    originals = [*members]

    if members:
        baked = [bake(scene, scene.instances[i]) for i in members]
        baked, transform = centred(baked, recentre)
        for index, mesh in zip(members, baked, strict=True):
            placed = replace(scene.instances[index], mesh=len(meshes), transform=transform)
            instances.append(placed)
            meshes.append(mesh)
        opacity += [of_mesh[scene.instances[i].mesh] for i in members]
        requests.append(BlasRequest(group, tuple(baked), tuple(opacity)))
        bvh_instances.append(BvhInstance(0, transform, FULL_MASK, first_object=0, name=group))
        object_names.append(group)

    blas_of_meshes: dict[tuple[int, ...], tuple[int, int, np.ndarray]] = {}
    for parts in placed_wholes(scene, others):
        key = tuple(scene.instances[i].mesh for i in parts)
        if key not in blas_of_meshes:
            lasting = scene.instances[parts[0]].lifetime != "deforming"
            whole = [scene.meshes[mesh] for mesh in key]
            whole, back = centred(whole, recentre, may_scale=lasting)
            blas_of_meshes[key] = (len(requests), len(meshes), back)
            meshes += whole
            classes = [of_mesh[mesh] for mesh in key]
            opacity += classes
            name = whole[0].name if len(whole) == 1 else stem(whole[0].name)
            requests.append(BlasRequest(name, tuple(whole), tuple(classes), lasting))
        blas, first_mesh, shift = blas_of_meshes[key]
        first = scene.instances[parts[0]]
        transform = first.transform @ shift
        name = first.name if len(parts) == 1 else stem(first.name)
        bvh_instances.append(
            BvhInstance(blas, transform, first.mask, first_object=len(instances), name=name)
        )
        object_names.append(requests[blas].name)
        originals += parts
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
    fits = Refittable(prepared, bvh_instances, requests)
    blases = build_blases(requests, options, build or build_blas, cache, told, fits)
    check_reach(blases, bvh_instances)
    room = tlas_bytes(len(bvh_instances)) if moves(prepared) else 0
    names = [request.name for request in requests]
    bvh = assemble(blases, names, bvh_instances, options, tlas_room=room)
    return PreparedScene(
        prepared,
        bvh,
        pack_scene(prepared, like.pack if like and like.scene.textures is scene.textures else None),
        tuple(object_names),
        tuple(originals),
        group,
        options,
        tuple(opacity),
        bounds=scene.bounds(),
    )


def _animation(scene: Scene, instances: Sequence[Instance]) -> Animation | None:
    """The scene's animation by the numbers of its prepared instances, which keep their names."""
    if scene.animation is None:
        return None
    old = {instance.name: i for i, instance in enumerate(scene.instances)}
    order = [old[instance.name] for instance in instances]
    meshes = {scene.instances[i].mesh: new.mesh for i, new in zip(order, instances, strict=True)}
    return scene.animation.renumbered(meshes, order)
