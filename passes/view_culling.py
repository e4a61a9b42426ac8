"""Which objects a view of a shadow map or a probe may see: of eleven faces most see a few each, and
drawing all of a scene in all of them would cost as much as eleven pictures.

The host compares the boxes of what stands still with the view's frustum, before the frame is
encoded. What some clip moves or deforms may be anywhere: every view draws it.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.scene.mesh import F64
from engine.scene.scene import Scene, scene_bounds
from passes.prepare import PreparedScene
from passes.raster_views import RasterView

MARGIN = 1e-3  # of a box's half size: vertices are placed in float32


@dataclass(frozen=True, slots=True)
class ObjectBoxes:
    """World boxes of a scene's objects at rest, [n, 3] each; those that `move` have none."""

    center: F64
    half: F64
    move: NDArray[np.bool_]

    def seen(self, view: RasterView) -> NDArray[np.bool_]:
        """[n] whether the view may see the object."""
        seen = np.ones(len(self.center), bool)
        for plane in view.planes():
            reach = (self.center - view.origin) @ plane + self.half @ np.abs(plane)
            seen &= reach >= 0
        return seen | self.move


def object_boxes(prepared: PreparedScene) -> ObjectBoxes:
    """Of `prepared.scene`'s instances."""
    scene = prepared.scene
    bounds = np.array([scene_bounds(scene.meshes, [i]) for i in scene.instances])
    bounds = bounds.reshape(-1, 2, 3)
    half = (1 + MARGIN) * (bounds[:, 1] - bounds[:, 0]) / 2 + MARGIN * prepared.diagonal * 1e-3
    return ObjectBoxes(bounds.mean(axis=1), half, moving_objects(scene))


def moving_objects(scene: Scene) -> NDArray[np.bool_]:
    """[n] whether some clip moves or deforms the instance."""
    moving = scene.animation.ever_moving() if scene.animation else set()
    return np.array(
        [i in moving or item.lifetime == "deforming" for i, item in enumerate(scene.instances)],
        bool,
    )


class SeenObjects:
    """What one view sees in the frame that is to be encoded; a resource beside its uniforms."""

    def __init__(self) -> None:
        self.mask: NDArray[np.bool_] | None = None  # None: all
