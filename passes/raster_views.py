"""Views that the rasteriser draws beside the picture: the faces of a cube about a probe, of half a
cube before a light. Each has a FRAME_UNIFORMS block of its own, so that the G-buffer's shaders draw
it as they draw the picture, and reversed infinite depth: `near` / distance along its axis.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.scene.light import RectLight
from engine.scene.mesh import F64
from passes.frame_options import LIGHT_FACES
from passes.frame_uniforms import BASES, FRAME_UNIFORMS, LIGHT_PARTS, FrameInputs

# Of FRAME_UNIFORMS, what a view has of the picture's.
SCENE_FIELDS = (*BASES, "view_near")
LIGHT_FIELDS = (
    *(f"light_{part}" for part in LIGHT_PARTS),
    "more_lights",
    "light_count",
    *(f"environment_{part}" for part in ("zenith", "horizon", "ground")),
)

# Axis, right and up of each face of a cube in its own x, y and z; x and y of a face run from -1 to
# 1 along right and up. passes/shaders/probe.wgsl chooses by them.
CUBE = (
    ((1, 0, 0), (0, 0, -1), (0, 1, 0)),
    ((-1, 0, 0), (0, 0, 1), (0, 1, 0)),
    ((0, 1, 0), (1, 0, 0), (0, 0, -1)),
    ((0, -1, 0), (1, 0, 0), (0, 0, 1)),
    ((0, 0, 1), (1, 0, 0), (0, 1, 0)),
    ((0, 0, -1), (-1, 0, 0), (0, 1, 0)),
)
# Of half a cube about +z: a whole face, then four halves whose up runs from 0 to 1 along z
# (passes/shaders/shadow_map.wgsl).
HALF_CUBE = (
    ((0, 0, 1), (1, 0, 0), (0, 1, 0)),
    ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    ((-1, 0, 0), (0, 1, 0), (0, 0, 1)),
    ((0, 1, 0), (1, 0, 0), (0, 0, 1)),
    ((0, -1, 0), (1, 0, 0), (0, 0, 1)),
)
assert len(HALF_CUBE) == LIGHT_FACES


@dataclass(frozen=True, slots=True)
class RasterView:
    """`axis`, `right` and `up` [3] are orthogonal unit vectors. x runs from -1 to 1 along `right`,
    y likewise along `up`, or in a `half` view from 0 to 1; both at distance 1 along `axis`."""

    origin: F64
    axis: F64
    right: F64
    up: F64
    half: bool = False

    def planes(self) -> F64:
        """[4, 3] normals, into the view, of the planes through `origin` that bound it."""
        lower = self.up if self.half else self.axis + self.up
        sides = [self.axis + self.right, self.axis - self.right, lower, self.axis - self.up]
        return np.array(sides)

    def record(self, picture: NDArray[np.void], size: int) -> NDArray[np.void]:
        """The view's FRAME_UNIFORMS, `size` pixels a side, out of a picture's: the scene, the
        lights and the environment are the same, what each sample of a picture changes is 0."""
        record = np.zeros((), FRAME_UNIFORMS.dtype)
        for name in (*SCENE_FIELDS, *LIGHT_FIELDS):
            record[name] = picture[name]
        shift = 0.5 * self.up if self.half else np.zeros(3)
        up = self.up - shift
        rows = np.zeros((4, 4))
        rows[0, :3] = self.right
        # The upper half of a face fills the view: y is 2 tan - 1.
        rows[1, :3] = 2 * self.up - self.axis if self.half else self.up
        rows[3, :3] = self.axis
        rows[:, 3] = -rows[:, :3] @ self.origin
        rows[2] = (0, 0, 0, record["view_near"])
        record["view_projection"] = rows
        record["camera_origin"][:3] = self.origin
        record["camera_forward"][:3] = self.axis + shift
        record["camera_right"][:3] = self.right
        record["camera_up"][:3] = up
        record["width"] = record["height"] = size
        record["pixel_spread"] = 2 / size
        return record


def view_key(record: NDArray[np.void]) -> bytes:
    """All of a view's record that what is drawn there depends on: not the lights."""
    drawn = record.copy()
    for name in LIGHT_FIELDS:
        drawn[name] = 0
    return drawn.tobytes()


def probe_views(inputs: FrameInputs) -> list[RasterView]:
    """Six, in the order of CUBE."""
    origin = np.asarray(inputs.probe_origin, np.float64)
    faces = np.array(CUBE, np.float64)
    return [RasterView(origin, axis, right, up) for axis, right, up in faces]


def light_views(light: RectLight) -> list[RasterView]:
    """LIGHT_FACES about the light's centre, in the order of HALF_CUBE; its z is the light's normal,
    its x along `half_u`."""
    x = light.half_u / np.linalg.norm(light.half_u)
    axes = np.stack([x, np.cross(light.normal, x), light.normal])
    faces = np.array(HALF_CUBE, np.float64) @ axes
    return [
        RasterView(light.center, axis, right, up, half=index > 0)
        for index, (axis, right, up) in enumerate(faces)
    ]
