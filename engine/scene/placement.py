"""Where a scene file puts something: a [4, 4] transform from a table of a few keys.

| key | meaning |
| --- | --- |
| `translation` | 3 metres |
| `rotation` | quaternion x, y, z, w, of any length but 0 |
| `axis_angle` | axis x, y, z of any length but 0, then degrees |
| `euler` | degrees about the fixed axes X, then Y, then Z: Rz Ry Rx |
| `scale` | one number or 3, none of them 0; an odd number of negative ones mirrors |
| `matrix` | 4 rows of 4 numbers, the last 0 0 0 1, in place of all others |

A point is scaled, then rotated, then moved. One of the three rotations at most.
"""

from typing import Any

import numpy as np

from engine.scene.animation import compose
from engine.scene.mesh import F64
from engine.scene.table import Table

TRANSFORM_KEYS = ("translation", "rotation", "axis_angle", "euler", "scale", "matrix")
_ROTATIONS = ("rotation", "axis_angle", "euler")


def read_transform(table: Table) -> F64:
    """[4, 4] of a table's transform keys, the identity without any. UserError where it cannot be
    inverted."""
    if "matrix" in table:
        table.at_most_one("matrix", "translation", *_ROTATIONS, "scale")
        matrix = _read_matrix(table)
    else:
        matrix = compose(
            np.array([table.vector("translation", 3, (0.0, 0.0, 0.0))]),
            np.array([_read_rotation(table)]),
            np.array([_read_scale(table)]),
        )[0]
    with np.errstate(over="ignore", invalid="ignore"):
        single = matrix.astype(np.float32)
        determinant = float(np.linalg.det(matrix[:3, :3]))
    if not np.isfinite(single).all() or not np.isfinite(determinant):
        raise table.error("scale", "leads beyond the range of 32-bit floats")
    if determinant == 0.0:
        raise table.error("matrix" if "matrix" in table else "scale", "is singular")
    return matrix


def turn_about_y(degrees: F64) -> F64:
    """[n, 4] quaternions of rotations about +Y."""
    half = np.radians(np.atleast_1d(degrees)) / 2
    turns = np.zeros((len(half), 4))
    turns[:, 1], turns[:, 3] = np.sin(half), np.cos(half)
    return turns


def _read_rotation(table: Table) -> F64:
    kind = table.at_most_one(*_ROTATIONS)
    if kind == "rotation":
        return _unit(table, kind, table.vector(kind, 4))
    if kind == "axis_angle":
        *axis, degrees = table.vector(kind, 4)
        half = np.radians(degrees) / 2
        return np.array([*(np.sin(half) * _unit(table, kind, axis)), np.cos(half)])
    turn = np.array([0.0, 0.0, 0.0, 1.0])
    if kind == "euler":
        for axis_index, degrees in enumerate(table.vector(kind, 3)):
            half = np.radians(degrees) / 2
            turn = _product(np.array([*(np.sin(half) * np.eye(3)[axis_index]), np.cos(half)]), turn)
    return turn


def _unit(table: Table, key: str, values: Any) -> F64:
    vector = np.array(values, np.float64)
    largest = np.abs(vector).max()
    if largest == 0:
        raise table.error(key, "has length 0, so no direction")
    vector = vector / largest  # its square must not overflow
    return np.asarray(vector / np.linalg.norm(vector))


def _product(a: F64, b: F64) -> F64:
    """Quaternion that turns by b, then by a."""
    vector = a[3] * b[:3] + b[3] * a[:3] + np.cross(a[:3], b[:3])
    return np.array([*vector, a[3] * b[3] - a[:3] @ b[:3]])


def _read_scale(table: Table) -> tuple[float, ...]:
    if not isinstance(table.values.get("scale", 1.0), list):
        scale: tuple[float, ...] = (table.number("scale", 1.0),) * 3
    else:
        scale = table.vector("scale", 3)
    if 0.0 in scale:
        raise table.error("scale", "is 0, which flattens; every factor is another number")
    return scale


def _read_matrix(table: Table) -> F64:
    rows = table.values["matrix"]
    if not isinstance(rows, list) or len(rows) != 4:
        raise table.error("matrix", "is not 4 rows of 4 finite numbers")
    read = Table(table.path, table.label("matrix"), dict(zip("0123", rows, strict=True)), "0123")
    matrix = np.array([read.vector(row, 4) for row in "0123"])
    if (matrix[3] != [0.0, 0.0, 0.0, 1.0]).any():
        raise table.error("matrix", "has a last row that is not 0 0 0 1")
    return matrix
