"""A pinhole camera: where it stands, how wide it sees, and its matrices for WebGPU clip space.

Looks down its own -Z with +Y up (glTF). The projection is reversed and infinite (near plane at
depth 1, infinity at 0): with a float32 depth buffer the relative error is then the same at all
distances, so a small `near` costs nothing (Upchurch and Desbrun, "Tightening the Precision of
Perspective Rendering", JGT 2012). A file's own near and far planes are therefore not used:
rasterised and ray-traced primary hits see the same range.
"""

from dataclasses import dataclass

import numpy as np

from engine.scene.mesh import F64

NEAR_PER_DIAGONAL = 1e-5  # near plane / diagonal of the scene's box


@dataclass(frozen=True, slots=True)
class Camera:
    """`transform` [4, 4] is camera-to-world, rigid; `y_fov` the full vertical angle in radians;
    `near` the near plane's distance in metres."""

    transform: F64
    y_fov: float
    near: float = 1e-3

    def same_as(self, other: "Camera") -> bool:
        """Whether both see the same (arrays have no truth value for `==` to use)."""
        if self is other:
            return True
        lens = (self.y_fov, self.near) == (other.y_fov, other.near)
        return lens and bool((self.transform == other.transform).all())

    @property
    def position(self) -> F64:
        """[3] in world space."""
        return self.transform[:3, 3].copy()

    @property
    def forward(self) -> F64:
        """[3] unit viewing direction in world space."""
        return -self.transform[:3, 2]

    def view_matrix(self) -> F64:
        """[4, 4] world-to-camera, column vectors (`matrix @ point`)."""
        rotation = self.transform[:3, :3].T
        view = np.eye(4)
        view[:3, :3] = rotation
        view[:3, 3] = -rotation @ self.transform[:3, 3]
        return view

    def projection(self, aspect: float) -> F64:
        """[4, 4] camera-to-clip for `aspect` = width / height: depth near / distance in [0, 1]."""
        scale = 1.0 / np.tan(0.5 * self.y_fov)
        clip = np.zeros((4, 4))
        clip[0, 0] = scale / aspect
        clip[1, 1] = scale
        clip[2, 3] = self.near
        clip[3, 2] = -1.0
        return clip


def look_at(
    position: F64, target: F64, y_fov: float, up: tuple[float, float, float] = (0.0, 1.0, 0.0)
) -> Camera:
    """A camera at `position` [3] that looks at `target` [3]; `up` must not be parallel to that."""
    back = np.asarray(position, np.float64) - np.asarray(target, np.float64)
    back /= np.linalg.norm(back)
    right = np.cross(np.asarray(up, np.float64), back)
    right /= np.linalg.norm(right)
    transform = np.eye(4)
    transform[:3, 0] = right
    transform[:3, 1] = np.cross(back, right)
    transform[:3, 2] = back
    transform[:3, 3] = position
    return Camera(transform, float(y_fov))
