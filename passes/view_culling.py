"""Which objects a view of a shadow map or a probe may see: of eleven faces most see a few each, and
drawing all of a scene in all of them would cost as much as eleven pictures.

The host compares boxes with the view's frustum, before the frame is encoded: those of what stands
still once a view, those of what moves (`passes.mover_boxes`) once a pose. What has no box may be
anywhere: every view draws it.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.scene.mesh import F64
from engine.scene.scene import Scene, instance_boxes
from passes.mover_boxes import MoverBoxes
from passes.prepare import PreparedScene
from passes.raster_views import RasterView

MARGIN = 1e-3  # of a box's half size: vertices are placed in float32
SCENE_MARGIN = 1e-6  # of the scene's diagonal, and of how far a box is from where numbers are exact

Bools = NDArray[np.bool_]


class ObjectBoxes:
    """World boxes of a scene's objects; those that `move` [n] have one in a pose alone."""

    def __init__(self, prepared: PreparedScene) -> None:
        scene = prepared.scene
        # Around the mesh's own box: a tighter one by every vertex takes ten times as long and saves
        # the views 1% of their triangles. What has no triangles is drawn nowhere.
        bounds = np.zeros((len(scene.instances), 2, 3))
        numbers, boxes = instance_boxes(scene.meshes, scene.instances)
        bounds[numbers] = boxes
        self.move = moving_objects(scene)
        self.movers = MoverBoxes(scene, self.move)
        self._diagonal = prepared.diagonal
        self._rest = self._larger(bounds.mean(axis=1), (bounds[:, 1] - bounds[:, 0]) / 2)

    def still(self, views: "Frusta") -> Bools:
        """[views, n] whether each may see what never moves."""
        return views.see(*self._rest) & ~self.move

    def posed(self, worlds: F64 | None) -> "PosedBoxes":
        """What moves, in a pose (`Animation.worlds`); None: in any."""
        if worlds is None or not len(self.movers.objects):
            return PosedBoxes(self.move)
        boxes = self._larger(*self.movers.boxes(worlds))
        return PosedBoxes(self.move, self.movers.objects, boxes)

    def _larger(self, center: F64, half: F64) -> tuple[F64, F64]:
        far = np.abs(center) + half + self._diagonal
        return center, (1 + MARGIN) * half + SCENE_MARGIN * far


@dataclass(frozen=True, slots=True)
class PosedBoxes:
    """Of the objects that `move` [n], those with the numbers `boxed` [m] are in `boxes`."""

    move: Bools
    boxed: NDArray[np.int64] | None = None
    boxes: tuple[F64, F64] | None = None

    def seen(self, views: "Frusta") -> Bools:
        """[views, n] which of them each may see."""
        seen = np.repeat(self.move[None], len(views.origins), axis=0)
        if self.boxes is not None:
            seen[:, self.boxed] = views.see(*self.boxes)
        return seen


@dataclass(frozen=True, slots=True)
class Frusta:
    """Of views: where they look from [v, 3], and the planes that bound them [v, 4, 3]."""

    origins: F64
    planes: F64

    def see(self, center: F64, half: F64) -> Bools:
        """[v, m] whether each may see what is in boxes [m, 3]."""
        away = center - self.origins[:, None]
        inward = self.planes.transpose(0, 2, 1)
        reach = away @ inward + half @ np.abs(inward)
        return np.asarray((reach >= 0).all(axis=2))


def frusta(views: list[RasterView]) -> Frusta:
    origins = np.array([view.origin for view in views]).reshape(-1, 3)
    return Frusta(origins, np.array([view.planes() for view in views]).reshape(-1, 4, 3))


def moving_objects(scene: Scene) -> Bools:
    """[n] whether some clip moves or deforms the instance."""
    moving = scene.animation.ever_moving() if scene.animation else set()
    return np.array(
        [i in moving or item.lifetime == "deforming" for i, item in enumerate(scene.instances)],
        bool,
    )


class SeenObjects:
    """What one view sees in the frame that is to be encoded; a resource beside its uniforms."""

    def __init__(self) -> None:
        self.mask: Bools | None = None  # None: all
