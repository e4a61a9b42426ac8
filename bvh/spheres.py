"""Spheres on their way into a BLAS and back: which ones are kept, their boxes, their nodes.

A BLAS holds triangles or spheres, never both. Its spheres are procedural nodes (type 7), one a
leaf; what their bytes mean is in `bvh.layout`. Centres and radii are object-space float32.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bvh.layout import (
    GEOMETRY_INDEX_MASK,
    GEOMETRY_OPAQUE,
    PROCEDURAL_MIN_WORD,
    SPHERE_CENTER_WORD,
    SPHERE_FLAGS,
    SPHERE_RADIUS_WORD,
    SPHERE_RESERVED_WORD,
    TRIANGLE_FLAGS_WORD,
    TRIANGLE_GEOMETRY_WORD,
    TRIANGLE_PRIMITIVE_0_WORD,
    TRIANGLE_PRIMITIVE_1_WORD,
    UNIT_WORDS,
)
from bvh.triangles import opaque_words

F32 = NDArray[np.float32]
U32 = NDArray[np.uint32]
Mask = NDArray[np.bool_]

# Smaller radii have a square that float32 does not hold: nothing could be told about them.
SMALLEST_RADIUS = 2.0**-60


@dataclass(frozen=True, slots=True)
class SphereSet:
    """Kept spheres with the ids a hit reports, and how many were dropped and why. A radius that is
    negative, zero or below SMALLEST_RADIUS is degenerate."""

    centers: F32  # [m, 3]
    radii: F32  # [m]
    geometry: U32  # [m] geometry words: an index, perhaps with GEOMETRY_OPAQUE
    primitive: U32  # [m] index of the sphere within its object's mesh
    dropped_degenerate: int = 0
    dropped_nonfinite: int = 0


def keep_usable_spheres(centers: F32, radii: F32, geometry: U32, primitive: U32) -> SphereSet:
    """Drops spheres with a NaN or infinity and degenerate ones, counting both."""
    with np.errstate(over="ignore"):
        finite = np.isfinite(sphere_bounds(centers, radii)).all(axis=(1, 2)) & np.isfinite(radii)
    degenerate = finite & ~(radii >= SMALLEST_RADIUS)
    keep = finite & ~degenerate
    return SphereSet(
        centers[keep],
        radii[keep],
        geometry[keep],
        primitive[keep],
        int(degenerate.sum()),
        int(len(finite) - finite.sum()),
    )


def sphere_bounds(centers: F32, radii: F32) -> F32:
    """[m, 2, 3] boxes, rounded outward."""
    bounds = np.empty((len(radii), 2, 3), np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        for side, out in ((-1.0, -np.inf), (1.0, np.inf)):
            exact = centers.astype(np.float64) + side * radii.astype(np.float64)[:, None]
            rounded = exact.astype(np.float32)
            inside = side * (exact - rounded) > 0
            bounds[:, int(side > 0)] = np.where(
                inside, np.nextafter(rounded, np.float32(out)), rounded
            )
    return bounds


def pack_spheres(spheres: SphereSet, opaque: Mask) -> U32:
    """[m, 16] procedural nodes. `opaque` is per geometry."""
    words = np.zeros((len(spheres.radii), UNIT_WORDS), np.uint32)
    boxes = sphere_bounds(spheres.centers, spheres.radii)
    words[:, PROCEDURAL_MIN_WORD : PROCEDURAL_MIN_WORD + 6] = boxes.view(np.uint32).reshape(-1, 6)
    words[:, SPHERE_CENTER_WORD:SPHERE_RADIUS_WORD] = np.ascontiguousarray(spheres.centers).view(
        np.uint32
    )
    words[:, SPHERE_RADIUS_WORD] = np.ascontiguousarray(spheres.radii).view(np.uint32)
    words[:, TRIANGLE_GEOMETRY_WORD] = opaque_words(spheres.geometry, opaque)
    words[:, TRIANGLE_PRIMITIVE_0_WORD] = spheres.primitive
    words[:, TRIANGLE_PRIMITIVE_1_WORD] = spheres.primitive
    words[:, TRIANGLE_FLAGS_WORD] = SPHERE_FLAGS
    return words


@dataclass(frozen=True, slots=True)
class SphereRows:
    """What procedural nodes say, one row each."""

    boxes: F32  # [m, 2, 3]
    centers: F32  # [m, 3]
    radii: F32  # [m]
    geometry: U32  # [m]
    opaque: Mask  # [m]
    primitive: U32  # [m]


def decode_spheres(nodes: U32) -> SphereRows:
    """Of procedural nodes `[m, 16]`, the inverse of `pack_spheres`."""
    floats = np.ascontiguousarray(nodes).view(np.float32)
    geometry = nodes[:, TRIANGLE_GEOMETRY_WORD]
    return SphereRows(
        boxes=floats[:, PROCEDURAL_MIN_WORD : PROCEDURAL_MIN_WORD + 6].reshape(-1, 2, 3),
        centers=floats[:, SPHERE_CENTER_WORD:SPHERE_RADIUS_WORD],
        radii=floats[:, SPHERE_RADIUS_WORD],
        geometry=geometry & np.uint32(GEOMETRY_INDEX_MASK),
        opaque=(geometry & np.uint32(GEOMETRY_OPAQUE)) != 0,
        primitive=nodes[:, TRIANGLE_PRIMITIVE_1_WORD],
    )


def sphere_faults(nodes: U32, geometry_count: int) -> list[tuple[int, str]]:
    """(leaf, what is wrong) of procedural nodes `[m, 16]`, in the order of the checks."""
    rows = decode_spheres(nodes)
    finite = np.isfinite(rows.centers).all(axis=1) & np.isfinite(rows.radii)
    with np.errstate(invalid="ignore"):
        usable = rows.radii >= SMALLEST_RADIUS
        boxes = sphere_bounds(rows.centers, rows.radii)
        enclosed = (rows.boxes[:, 0] <= boxes[:, 0]) & (rows.boxes[:, 1] >= boxes[:, 1])
    words = nodes[:, SPHERE_RESERVED_WORD : SPHERE_RESERVED_WORD + 2]
    order = np.lexsort((rows.primitive, rows.geometry))
    twice = np.zeros(len(nodes), np.bool_)
    keys = np.stack([rows.geometry[order], rows.primitive[order]])
    twice[order[1:]] = (keys[:, 1:] == keys[:, :-1]).all(axis=0)
    checks: tuple[tuple[Any, str], ...] = (
        (~finite, "sphere is not finite"),
        (finite & ~usable, "sphere has no radius"),
        (finite & usable & ~enclosed.all(axis=1), "its own box does not enclose the sphere"),
        (rows.geometry >= geometry_count, f"geometry beyond the header's {geometry_count}"),
        (nodes[:, TRIANGLE_PRIMITIVE_0_WORD] != rows.primitive, "two primitive ids"),
        (nodes[:, TRIANGLE_FLAGS_WORD] != SPHERE_FLAGS, f"flags are not 0x{SPHERE_FLAGS:x}"),
        ((words != 0).any(axis=1), "reserved words are not 0"),
        (twice, "primitive of its geometry a second time"),
    )
    return [(int(leaf), text) for bad, text in checks for leaf in np.flatnonzero(bad)]
