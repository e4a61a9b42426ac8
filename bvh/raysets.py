"""Ray sets: the rays of one kind for one view, with what they hit, as a file.

Primary rays go through pixel centres in tiles of 8 x 4 pixels (tiles row by row, pixels row by row
in a tile), so that neighbours in memory are neighbours in the picture. Secondary rays start at the
primary hits, in the same order, one each; a primary miss gives none. All triangles count as opaque.
Distances are in units of the direction; directions are unit except a shadow ray's, which ends on
the light at t = 1.

File (`.npz`, no pickles), version 1:

| key | dtype, shape | content |
| --- | --- | --- |
| `format` | str | "treeline rays" |
| `version` | int64 | 1 |
| `kind` | str | primary, mirror, diffuse or shadow |
| `rays` | float32 [n, 8] | ox oy oz t_min dx dy dz t_max: the 32-byte record |
| `pixels` | uint32 [n] | y * width + x of the pixel each ray belongs to |
| `expected_t` | float32 [n] | the oracle's closest hit, inf on a miss |
| `expected_object`, `expected_primitive`, `expected_instance` | uint32 [n] | 0xffffffff on a miss |
| `width`, `height`, `seed` | int64 | |
| `scene_sha256` | str | of the scene file, or "" |
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bvh.oracle import trace
from bvh.rays import RAY, RayFlags, Rays, make_rays
from bvh.raysets_file import read_arrays, write_arrays
from bvh.surface import Surface, Traceable, offset_origin, surface_at
from engine.gpu.errors import UserError

F32 = NDArray[np.float32]
F64 = NDArray[np.float64]
U32 = NDArray[np.uint32]

KINDS = ("primary", "mirror", "diffuse", "shadow")
TILE_WIDTH, TILE_HEIGHT = 8, 4
# A shadow ray stops short of the light by this share of its length, so that a light that is also
# a mesh does not shade itself.
SHADOW_T_MAX = np.float32(1.0 - 1e-4)


@dataclass(frozen=True, slots=True)
class RaySet:
    """Rays of one kind and what the oracle says they hit (closest hit, for shadow rays too)."""

    kind: str
    rays: Rays  # [n]
    pixels: U32  # [n]
    expected_t: F32  # [n]
    expected_object: U32  # [n]
    expected_primitive: U32  # [n]
    expected_instance: U32  # [n]
    width: int
    height: int
    seed: int
    scene_sha256: str

    @property
    def any_hit(self) -> bool:
        """Whether the kind asks only for "is there anything": shadow rays."""
        return self.kind == "shadow"


def tile_order(width: int, height: int) -> NDArray[np.int64]:
    """Pixel numbers y * width + x in tile order; tiles at the right and bottom may be cut."""
    y, x = np.divmod(np.arange(width * height), width)
    tile = (y // TILE_HEIGHT) * -(-width // TILE_WIDTH) + x // TILE_WIDTH
    inside = (y % TILE_HEIGHT) * TILE_WIDTH + x % TILE_WIDTH
    return np.argsort(tile * (TILE_WIDTH * TILE_HEIGHT) + inside, kind="stable")


def primary_rays(
    camera_to_world: ArrayLike, y_fov: float, width: int, height: int
) -> tuple[Rays, U32]:
    """Rays through pixel centres and their pixel numbers, in tile order. The camera looks down
    its -Z with +Y up; row 0 is the top of the picture. `y_fov` in radians."""
    if width < 1 or height < 1:
        raise UserError(f"size {width}x{height} holds no pixel")
    if not 0 < y_fov < np.pi:
        raise UserError(f"vertical angle {y_fov} rad is not between 0 and pi")
    matrix = np.asarray(camera_to_world, np.float64)
    pixels = tile_order(width, height)
    y, x = np.divmod(pixels, width)
    half = np.tan(0.5 * y_fov)
    local = np.stack(
        [
            (2 * (x + 0.5) / width - 1) * half * width / height,
            (1 - 2 * (y + 0.5) / height) * half,
            np.full(len(pixels), -1.0),
        ],
        axis=1,
    )
    direction = _unit(local @ matrix[:3, :3].T)
    return make_rays(matrix[:3, 3], direction), pixels.astype(np.uint32)


def mirror_rays(surface: Surface, incoming: F64) -> Rays:
    """Perfect reflections about the geometric normal."""
    n = surface.normal
    direction = incoming - 2 * (incoming * n).sum(1, keepdims=True) * n
    return make_rays(_origins(surface), _unit(direction))


def diffuse_rays(surface: Surface, rng: np.random.Generator) -> Rays:
    """One cosine-weighted direction about the geometric normal each."""
    n = surface.normal
    r1, r2 = rng.random((2, len(n)))
    radius, angle = np.sqrt(r1), 2 * np.pi * r2
    # Duff et al., "Building an Orthonormal Basis, Revisited" (JCGT 2017).
    sign = np.copysign(1.0, n[:, 2])
    a = -1 / (sign + n[:, 2])
    b = n[:, 0] * n[:, 1] * a
    tangent = np.stack([1 + sign * n[:, 0] ** 2 * a, sign * b, -sign * n[:, 0]], 1)
    bitangent = np.stack([b, sign + n[:, 1] ** 2 * a, -n[:, 1]], 1)
    direction = (
        (radius * np.cos(angle))[:, None] * tangent
        + (radius * np.sin(angle))[:, None] * bitangent
        + np.sqrt(1 - r1)[:, None] * n
    )
    return make_rays(_origins(surface), _unit(direction))


def shadow_rays(surface: Surface, light: Sequence[ArrayLike], rng: np.random.Generator) -> Rays:
    """One ray each to a uniform point of the rectangle (center, half_u, half_v). Surfaces that
    face away keep theirs: it meets the surface itself or another one behind."""
    center, half_u, half_v = (np.asarray(part, np.float64) for part in light)
    a, b = rng.uniform(-1, 1, (2, len(surface.point), 1))
    origin = _origins(surface)
    target = center + a * half_u + b * half_v
    return make_rays(origin, target - origin, 0, SHADOW_T_MAX)


def make_rayset(
    kind: str,
    scene_bvh: Traceable,
    camera_to_world: ArrayLike,
    y_fov: float,
    width: int,
    height: int,
    light: Sequence[ArrayLike] | None = None,
    seed: int = 0,
    scene_sha256: str = "",
    workers: int | None = None,
) -> RaySet:
    """Rays of `kind` for one view, with expected hits. `light` is (center, half_u, half_v) in
    world space, asked for by shadow rays only. UserError for an unknown kind, an empty size or a
    missing light."""
    if kind not in KINDS:
        raise UserError(f"unknown ray kind '{kind}'; known: {', '.join(KINDS)}")
    if kind == "shadow" and light is None:
        raise UserError("shadow rays need an area light")
    rays, pixels = primary_rays(camera_to_world, y_fov, width, height)
    found = trace(scene_bvh.words, rays, flags=RayFlags.OPAQUE, workers=workers)
    if kind != "primary":
        surface = surface_at(scene_bvh, rays, found)
        pixels = pixels[surface.lanes]
        # The kinds of one seed share nothing: each has its own stream.
        rng = np.random.default_rng([seed, KINDS.index(kind)])
        if kind == "mirror":
            rays = mirror_rays(surface, rays["direction"][surface.lanes].astype(np.float64))
        elif kind == "diffuse":
            rays = diffuse_rays(surface, rng)
        else:
            assert light is not None
            rays = shadow_rays(surface, light, rng)
        found = trace(scene_bvh.words, rays, flags=RayFlags.OPAQUE, workers=workers)
    if found.overflows.any():
        raise UserError(
            f"{int((found.overflows > 0).sum())} {kind} rays overflowed the oracle's stack: "
            "their expected hits are unknown"
        )
    return RaySet(
        kind=kind,
        rays=rays,
        pixels=pixels,
        expected_t=found.t,
        expected_object=found.object,
        expected_primitive=found.primitive,
        expected_instance=found.instance,
        width=width,
        height=height,
        seed=seed,
        scene_sha256=scene_sha256,
    )


def save(path: str | Path, rayset: RaySet) -> None:
    """Write the file in one step: it is complete or not there. UserError where that fails."""
    arrays: dict[str, Any] = {
        name: getattr(rayset, name) for name in RaySet.__dataclass_fields__ if name != "rays"
    }
    arrays["rays"] = np.ascontiguousarray(rayset.rays).view(np.float32).reshape(-1, 8)
    write_arrays(path, arrays)


def load(path: str | Path) -> RaySet:
    """Read a file that `save` wrote. UserError for a missing, damaged or foreign one."""
    arrays = read_arrays(path)
    kind = str(arrays["kind"])
    if kind not in KINDS:
        raise UserError(f"{path}: unknown ray kind '{kind}'; known: {', '.join(KINDS)}")
    rays = np.ascontiguousarray(arrays["rays"]).view(RAY).reshape(-1)
    return RaySet(
        kind=kind,
        rays=rays,
        pixels=arrays["pixels"],
        expected_t=arrays["expected_t"],
        expected_object=arrays["expected_object"],
        expected_primitive=arrays["expected_primitive"],
        expected_instance=arrays["expected_instance"],
        width=int(arrays["width"]),
        height=int(arrays["height"]),
        seed=int(arrays["seed"]),
        scene_sha256=str(arrays["scene_sha256"]),
    )


def _origins(surface: Surface) -> F32:
    return offset_origin(surface.point, surface.normal, surface.error)


def _unit(vectors: F64) -> F64:
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))
