"""A camera as one line of text, to be kept, sent and typed in again."""

import json

import numpy as np

from engine.gpu.errors import UserError
from engine.scene.camera import Camera


def camera_text(camera: Camera) -> str:
    """One line of JSON that `camera_from_text` turns into exactly the same camera."""
    values = {"transform": camera.transform.tolist(), "y_fov": camera.y_fov, "near": camera.near}
    return json.dumps(values, allow_nan=False)


def camera_from_text(text: str) -> Camera:
    """The camera of `camera_text`. Raises UserError (one line) for anything else."""
    try:
        values = json.loads(text)
        transform = np.asarray(values["transform"], np.float64)
        y_fov, near = float(values["y_fov"]), float(values["near"])
    except (ValueError, TypeError, KeyError, OverflowError) as error:
        raise UserError("camera text: not a camera (transform, y_fov, near in JSON)") from error
    if transform.shape != (4, 4) or not np.isfinite(transform).all():
        raise UserError("camera text: transform is not a matrix of 4 x 4 finite numbers")
    axes = transform[:3, :3]
    # Bounded first: squares of huge numbers would overflow.
    rigid = np.abs(axes).max() < 2 and np.allclose(axes.T @ axes, np.eye(3), atol=1e-5)
    if not rigid or np.linalg.det(axes) < 0 or not np.array_equal(transform[3], [0, 0, 0, 1]):
        raise UserError("camera text: transform is not a rotation and a translation")
    if not 0 < y_fov < np.pi:
        raise UserError(f"camera text: y_fov {y_fov:g} is not between 0 and pi")
    if not 0 < near < np.inf:
        raise UserError(f"camera text: near {near:g} is not above 0")
    return Camera(transform, y_fov, near)
