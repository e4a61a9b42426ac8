"""What a ray finds when it hits: the counterpart of a shader binding table.

A hit is shaded by a record of its ray type, its geometry's class and its material's class. How
records are grouped is an option of the frame:

* coarse: a record a class. An object names its material, whose parameters lie once in the scene's
  table: a hit reads the object first, then the material that it names.
* fine: a record an object, with its material's parameters in it: a hit reads these at once, but the
  same parameters lie in many places.

Both hold the same numbers, so that pictures are equal. Any-hit rays keep one bit of a hit; only
their alpha tests read something of it, which either grouping has by object (`passes.alpha`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bvh.rays import MISS_ID
from engine.scene.material import Material
from engine.scene.records import MATERIAL
from engine.scene.scene import LIFETIMES
from passes.alpha import ALPHA_TRIANGLE
from passes.frame_options import FrameOptions
from passes.prepare import PreparedScene
from passes.queue import GROUP_SIZE
from passes.rays import RayType
from passes.twins.brdf import MIRROR_ROUGHNESS

GEOMETRY_CLASSES = (*LIFETIMES, "procedural")
# How smooth an opaque surface is (its factor; a texture may make it smoother), or how its holes are
# told: what branches when a hit is shaded, or adds an alpha test.
MATERIAL_CLASSES = ("mirror", "glossy", "rough", "mask", "blend")
INDEX_BYTES = 4  # of an object's material, or of its first alpha record
SUBGROUP = 32  # lanes, of most GPUs

I64 = NDArray[np.int64]


def material_class(material: Material) -> str:
    """One of MATERIAL_CLASSES. Glossy is what sends reflection rays by default."""
    if not material.opaque:
        return material.alpha_mode.lower()
    if material.roughness < MIRROR_ROUGHNESS:
        return "mirror"
    return "glossy" if material.roughness <= FrameOptions(1, 1).roughness_cutoff else "rough"


@dataclass(frozen=True, slots=True)
class HitClass:
    """What objects of a ray type, a geometry class and a material class take in each grouping. A
    material that several classes use is in the coarse bytes of each.
    `hits` of the counted frame; None where nobody counted, or where rays do not keep what they
    hit."""

    ray_type: str
    geometry: str
    material: str
    objects: int
    materials: int
    coarse_records: int
    coarse_bytes: int
    fine_records: int
    fine_bytes: int
    hits: int | None = None


@dataclass(frozen=True, slots=True)
class Touched:
    """How many different things the hits of neighbouring rays read when they are shaded: means over
    `lanes` rays in the order of the queue, of those among which there is a hit."""

    ray_type: str
    lanes: int
    classes: float
    materials: float
    objects: float


@dataclass(frozen=True, slots=True)
class HitTable:
    """`grouping` is that of the frame, one of passes.frame_options.HIT_TABLES."""

    grouping: str
    classes: tuple[HitClass, ...]
    touched: tuple[Touched, ...]


def object_classes(prepared: PreparedScene) -> tuple[I64, I64]:
    """Of every object that hits name: its place in GEOMETRY_CLASSES and in MATERIAL_CLASSES."""
    scene = prepared.scene
    of_material = [MATERIAL_CLASSES.index(material_class(m)) for m in scene.materials]
    procedural = [mesh.radii is not None for mesh in scene.meshes]
    geometry = [
        GEOMETRY_CLASSES.index("procedural" if procedural[item.mesh] else item.lifetime)
        for item in scene.instances
    ]
    material = [of_material[scene.meshes[item.mesh].material] for item in scene.instances]
    return np.array(geometry, np.int64), np.array(material, np.int64)


def hit_classes(prepared: PreparedScene, rays: Sequence[RayType]) -> tuple[HitClass, ...]:
    """The classes that there are, by ray type."""
    scene = prepared.scene
    geometry, material = object_classes(prepared)
    meshes = np.array([item.mesh for item in scene.instances], np.int64)
    used = np.array([mesh.material for mesh in scene.meshes], np.int64)
    triangles = np.array([len(mesh.triangles) for mesh in scene.meshes], np.int64)
    found = []
    for g, m in sorted(set(zip(geometry.tolist(), material.tolist(), strict=True))):
        mine = np.flatnonzero((geometry == g) & (material == m))
        objects, kinds = len(mine), len(np.unique(used[meshes[mine]]))
        tested = MATERIAL_CLASSES[m] in ("mask", "blend")
        alpha_triangles = int(triangles[np.unique(meshes[mine])].sum())
        alpha = INDEX_BYTES * objects + ALPHA_TRIANGLE.size * alpha_triangles
        for ray in rays:
            if ray.any_hit:
                sizes = 2 * (objects * tested, alpha * tested)
            else:
                coarse = INDEX_BYTES * objects + MATERIAL.size * kinds
                sizes = (1, coarse, objects, MATERIAL.size * objects)
            names = GEOMETRY_CLASSES[g], MATERIAL_CLASSES[m]
            found.append(HitClass(ray.name, *names, objects, kinds, *sizes))
    order = [ray.name for ray in rays]
    return tuple(sorted(found, key=lambda item: order.index(item.ray_type)))


def count_hits(
    classes: Sequence[HitClass], prepared: PreparedScene, ray: RayType, objects: I64
) -> tuple[HitClass, ...]:
    """The classes with the hits of a closest-hit type's rays, `objects` [n] being what each hit
    (MISS_ID for a miss); others as they are."""
    geometry, material = object_classes(prepared)
    keys = geometry * len(MATERIAL_CLASSES) + material
    counts = np.bincount(
        keys[objects[objects != MISS_ID]],
        minlength=len(GEOMETRY_CLASSES) * len(MATERIAL_CLASSES),
    ).reshape(len(GEOMETRY_CLASSES), -1)

    def counted(item: HitClass) -> HitClass:
        if item.ray_type != ray.name:
            return item
        at = GEOMETRY_CLASSES.index(item.geometry), MATERIAL_CLASSES.index(item.material)
        return replace(item, hits=int(counts[at]))

    return tuple(counted(item) for item in classes)


def touched(prepared: PreparedScene, ray: RayType, objects: I64) -> tuple[Touched, ...]:
    """What rays touch that hit `objects` [n], in the order in which they are shaded."""
    scene = prepared.scene
    geometry, material = object_classes(prepared)
    kinds = np.array([scene.meshes[item.mesh].material for item in scene.instances], np.int64)
    hit = objects != MISS_ID
    known = np.where(hit, objects, 0)
    keys = {
        "classes": (geometry * len(MATERIAL_CLASSES) + material)[known],
        "materials": kinds[known],
        "objects": known,
    }
    return tuple(
        Touched(
            ray.name,
            lanes,
            **{name: mean_distinct(np.where(hit, key, -1), lanes) for name, key in keys.items()},
        )
        for lanes in (SUBGROUP, GROUP_SIZE)
    )


def mean_distinct(keys: I64, lanes: int) -> float:
    """How many different keys a run of `lanes` has: the mean over runs that have any (-1 is none);
    NaN where no run has."""
    rows = np.full((-(-len(keys) // lanes), lanes), -1, np.int64)
    rows.reshape(-1)[: len(keys)] = keys
    rows.sort(axis=1)
    first = rows >= 0
    first[:, 1:] &= rows[:, 1:] != rows[:, :-1]
    counts = first.sum(axis=1)
    return float(counts[counts > 0].mean()) if counts.any() else float("nan")


def read_hit_table(data: Any) -> HitTable:
    """Of the last frame of a `passes.frame_data.FrameData`; waits, and reads the hits of its
    closest-hit rays."""
    prepared = data.scene.prepared
    classes = hit_classes(prepared, data.rays)
    found: list[Touched] = []
    for ray in data.rays:
        if not ray.any_hit:
            objects = data.read_results(ray, data.read_records(ray))["object"].astype(np.int64)
            classes = count_hits(classes, prepared, ray, objects)
            found += touched(prepared, ray, objects)
    return HitTable(data.options.hit_table, classes, tuple(found))
