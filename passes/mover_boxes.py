"""Where what moves is in a pose: a world box of each object that some clip moves or deforms.

A rigid object's is the box around its mesh, moved. A skinned vertex is a weighted mean of where its
joints would take it, so that it lies within the box around what each joint makes of the box of all
vertices that follow it: eight corners a joint instead of all vertices. Objects of which no box is
known (those that are morphed, spheres) may be anywhere.
"""

import numpy as np
from numpy.typing import NDArray

from engine.scene.animation import Animation, SkinnedMesh
from engine.scene.mesh import F64
from engine.scene.pose import rigid_steps, ways_back
from engine.scene.scene import Scene

I64 = NDArray[np.int64]


class MoverBoxes:
    """Of `objects` [m], numbers of a scene's instances: those of the `moving` ones [instances]
    that have a box."""

    def __init__(self, scene: Scene, moving: NDArray[np.bool_]) -> None:
        skinned = {item.mesh: item for item in scene.animation.skinned} if scene.animation else {}
        rigid: list[int] = []
        soft: list[int] = []
        for number in np.flatnonzero(moving).tolist():
            instance = scene.instances[number]
            mesh, item = scene.meshes[instance.mesh], skinned.get(instance.mesh)
            if not len(mesh.positions) or mesh.radii is not None:
                continue
            if item is not None and item.morph is None and (item.weights >= 0).all():
                soft.append(number)
            elif item is None and instance.lifetime == "rigid":
                rigid.append(number)
        self.objects: I64 = np.array([*rigid, *soft], np.int64)
        if not len(self.objects):
            return
        assert scene.animation is not None
        self._animation: Animation = scene.animation
        # Matrices are those of rigid objects, then those of each skin's joints.
        self._nodes = [self._animation.instance_nodes[i] for i in rigid]
        self._way_back = ways_back(self._animation.worlds()[self._nodes])
        self._places = np.array([scene.instances[i].transform for i in rigid]).reshape(-1, 4, 4)
        self._skins: list[int] = []
        first_matrix: dict[int, int] = {}
        matrices, lows, highs, counts = [], [], [], []
        for place, number in enumerate(rigid):
            positions = scene.meshes[scene.instances[number].mesh].positions.astype(np.float64)
            matrices.append(np.array([place]))
            lows.append(positions.min(axis=0)[None])
            highs.append(positions.max(axis=0)[None])
            counts.append(1)
        made = len(rigid)
        for number in soft:
            item = skinned[scene.instances[number].mesh]
            if item.skin not in first_matrix:
                first_matrix[item.skin] = made
                self._skins.append(item.skin)
                made += len(self._animation.skins[item.skin].joints)
            joints, low, high = _joint_boxes(item)
            matrices.append(joints + first_matrix[item.skin])
            lows.append(low)
            highs.append(high)
            counts.append(len(joints))
        # Of each part, which one matrix moves: [parts] its number, [parts, 3] its box.
        self._matrix = np.concatenate(matrices)
        self._center, self._half = _middle(np.concatenate(lows), np.concatenate(highs))
        self._first_parts = np.cumsum([0, *counts[:-1]])  # of each object

    def boxes(self, worlds: F64) -> tuple[F64, F64]:
        """Centres and half sizes [m, 3] in a pose, world space; `worlds` as `Animation.worlds`."""
        found = [self._animation.joint_matrices(skin, worlds) for skin in self._skins]
        steps = rigid_steps(self._way_back, worlds[self._nodes])
        moves = np.concatenate([steps @ self._places, *found])[self._matrix]
        center = np.einsum("nij,nj->ni", moves[:, :3, :3], self._center) + moves[:, :3, 3]
        half = np.einsum("nij,nj->ni", np.abs(moves[:, :3, :3]), self._half)
        low = np.minimum.reduceat(center - half, self._first_parts)
        high = np.maximum.reduceat(center + half, self._first_parts)
        return _middle(low, high)


def _middle(low: F64, high: F64) -> tuple[F64, F64]:
    return (low + high) / 2, (high - low) / 2


def _joint_boxes(item: SkinnedMesh) -> tuple[I64, F64, F64]:
    """Joints that some vertex follows, ascending, and the boxes of those vertices."""
    follows = item.weights > 0
    vertex, _ = np.nonzero(follows)
    order = np.argsort(item.joints[follows], kind="stable")
    points = item.positions[vertex[order]].astype(np.float64)
    joints, firsts = np.unique(item.joints[follows][order], return_index=True)
    low, high = (step.reduceat(points, firsts) for step in (np.minimum, np.maximum))
    return joints.astype(np.int64), low, high
