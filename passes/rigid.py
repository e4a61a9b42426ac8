"""What moves without changing its shape: the instances that hang on animated nodes.

A frame moves each in two places: as an instance of the TLAS, and in the table of objects that the
rasteriser and shading read. All of them are worked out at once.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bvh.header import unpack_header
from engine.scene.animation import Clip
from engine.scene.mesh import F64
from engine.scene.pose import rigid_steps, ways_back
from passes.prepare import PreparedScene

I64 = NDArray[np.int64]


class RigidObjects:
    """`instances` are the TLAS's that some clip moves, by number; `objects` the scene's instances
    (the objects that hits name) that are parts of these, `whole[i]` the place of object i's in
    `instances`."""

    def __init__(self, prepared: PreparedScene) -> None:
        scene, animation = prepared.scene, prepared.scene.animation
        moving = animation.ever_moving() if animation else set()
        found = [
            (i, item)
            for i, item in enumerate(prepared.bvh.instances)
            if item.first_object in moving
            and scene.instances[item.first_object].lifetime == "rigid"
        ]
        self.instances = np.array([i for i, _ in found], np.int64)
        self.transforms_in_file = np.array([x.transform for _, x in found]).reshape(-1, 4, 4)
        objects: list[int] = []
        whole: list[int] = []
        for place, (_, item) in enumerate(found):
            parts = unpack_header(prepared.bvh.blas_words(item.blas)).geometry_count
            objects += range(item.first_object, item.first_object + parts)
            whole += [place] * parts
        self.objects, self.whole = np.array(objects, np.int64), np.array(whole, np.int64)
        if animation is not None:
            firsts = [item.first_object for _, item in found]
            self._nodes = np.array([animation.instance_nodes[i] for i in firsts], np.int64)
            # Where a node stands in the file does not change, so its inverse is found once.
            self._way_back = ways_back(animation.worlds()[self._nodes])
            self._moved_by = {
                clip.name: np.isin(firsts, animation.moving_instances(clip))
                for clip in animation.clips
            }

    def transforms(self, clip: Clip, worlds: F64) -> F64:
        """[instances, 4, 4] object to world in a pose (`Animation.worlds`) of the clip. Recentring
        stays inside; what this clip does not move is bit for bit where the file has it."""
        if not len(self.instances):
            return self.transforms_in_file
        moved = rigid_steps(self._way_back, worlds[self._nodes]) @ self.transforms_in_file
        there = self._moved_by[clip.name][:, None, None]
        return np.where(there, moved, self.transforms_in_file)


def place_objects(records: NDArray[Any], transforms: F64) -> None:
    """Writes object to world and back into OBJECT records `[n]`. What is flattened has no way back
    and gets zeros: no ray enters it, and its normals come from its triangles."""
    records["object_to_world"] = transforms[:, :3]
    there = np.linalg.det(transforms[:, :3, :3]) != 0
    if there.all():
        records["world_to_object"] = np.linalg.inv(transforms)[:, :3]
        return
    records["world_to_object"] = 0.0
    records["world_to_object"][there] = np.linalg.inv(transforms[there])[:, :3]
