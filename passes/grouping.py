"""Which instances of a scene share a BLAS.

* `static` (default): every static, opaque mesh that is placed once becomes part of one BLAS;
  shared meshes stay instances, alpha-tested and deforming ones keep a BLAS of their own.
* `object`: one BLAS a mesh; the primitives of a file's mesh are its geometries.
* `all`: everything that stays in one BLAS, shared meshes copied, vegetation too.

What an animation moves keeps a BLAS of its own in every group, and so do spheres: a BLAS holds
triangles or spheres.
"""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from engine.scene.scene import Scene
from passes.frame_options import FULL_MASK

GROUPS = ("static", "object", "all")
STAYING = ("static", "vegetation")  # lifetimes of what no clip moves


def group_members(scene: Scene, group: str) -> list[int]:
    """Indices of the instances that share one BLAS."""
    if group == "object":
        return []
    uses = Counter(instance.mesh for instance in scene.instances)
    members = []
    for index, instance in enumerate(scene.instances):
        material = scene.materials[scene.meshes[instance.mesh].material]
        alone = uses[instance.mesh] == 1 and instance.lifetime == "static" and material.opaque
        # A mask belongs to a TLAS instance, so only those that every ray sees can be merged.
        stays = scene.animation is None or instance.lifetime in STAYING
        stays &= scene.meshes[instance.mesh].radii is None
        if instance.mask == FULL_MASK and stays and (group == "all" or alone):
            members.append(index)
    return members


def traced_triangles(scene: Scene, group: str) -> int:
    """Of all BLASes, spheres among them: those of shared meshes once a copy."""
    members = group_members(scene, group)
    others = {scene.instances[i].mesh for i in set(range(len(scene.instances))) - set(members)}
    meshes = [*(scene.instances[i].mesh for i in members), *others]
    return sum(len(scene.meshes[mesh].triangles) for mesh in meshes)


def placed_wholes(scene: Scene, indices: Sequence[int]) -> list[tuple[int, ...]]:
    """The instances by the thing they are parts of: neighbours named "x/0", "x/1", ... in one
    place (and on one node, where nodes move) are the primitives of one mesh, which become the
    geometries of one BLAS."""
    nodes = scene.animation.instance_nodes if scene.animation else (0,) * len(scene.instances)
    kinds = [mesh.radii is None for mesh in scene.meshes]
    wholes: list[tuple[int, ...]] = []
    for index in indices:
        instance = scene.instances[index]
        last = scene.instances[wholes[-1][-1]] if wholes else None
        if (
            last is not None
            and "/" in instance.name
            and stem(last.name) == stem(instance.name)
            and wholes[-1][-1] == index - 1
            and nodes[index] == nodes[index - 1]
            and (last.mask, last.lifetime) == (instance.mask, instance.lifetime)
            and np.array_equal(last.transform, instance.transform)
            and kinds[last.mesh] == kinds[instance.mesh]
        ):
            wholes[-1] = (*wholes[-1], index)
        else:
            wholes.append((index,))
    return wholes


def stem(name: str) -> str:
    """The name of the whole that a part is named after."""
    return name.rpartition("/")[0] or name
