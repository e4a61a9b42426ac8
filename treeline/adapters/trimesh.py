"""trimesh's ray queries, traced on the GPU over guest bytes.

    mesh.ray = treeline.adapters.trimesh.RayMeshIntersector(mesh)

Names, shapes, dtypes and errors are trimesh's (its `ray_pyembree` and `ray_triangle` classes).
Precision: the mesh is moved to its middle and scaled to about 100 units, rays that start far away
are started near it, and both are then rounded to float32 for the kernel, which decides what is
hit. Where it is hit is solved again in float64, on the plane of the triangle that was hit, with
the vertices and the ray as given.

Several hits of one ray that lie closer together than MERGE_DISTANCE times the mesh's diagonal
count once: faces that share the edge or vertex that the ray passes through, doubled faces, and
also walls thinner than that. trimesh's embree class steps over the same distance. A ray that
starts on a surface hits it (at distance 0), as there.
"""

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from trimesh.ray.ray_util import contains_points as count_crossings

from bvh.build import BuildOptions, build_blas
from bvh.gpu.default_kernel import default_kernel
from bvh.gpu.trace_rays import STACK_SIZES, RayTracer, Variant, fit_variant
from bvh.rays import MISS_ID, make_rays, valid_rays
from bvh.scene_bvh import SceneBvh, assemble
from bvh.tlas import BvhInstance
from engine.gpu.device import Device, open_device

I64 = NDArray[np.int64]
F64 = NDArray[np.float64]

BOX_SIZE = 100.0  # units of the scaled mesh's diagonal, as trimesh's embree class
MERGE_DISTANCE = 1e-6  # of the diagonal, as that class's step from one hit to the next
BACK_DISTANCE = 1e-5  # of the diagonal: where rays really start, since t_min itself is no hit
BEHIND_TOLERANCE = 1e-9  # of the diagonal: a hit so little behind the origin is at the origin
CHUNK = 1 << 20  # rays a dispatch
FARTHEST = float(np.finfo(np.float32).max)  # stands for no end: a shader may not know infinity


@cache
def _default_device() -> Device:
    return open_device()


class RayMeshIntersector:
    """Ray queries on one mesh. The structure is built at the first query and again after any
    change of the mesh (trimesh's content hash). `device` None opens the best adapter once."""

    def __init__(
        self,
        mesh: Any,
        scale_to_box: bool = True,
        *,
        device: Device | None = None,
        options: BuildOptions | None = None,
    ) -> None:
        self.mesh = mesh
        self._scale_to_box = scale_to_box
        self._device = device
        self._options = options or BuildOptions()
        self._built: tuple[int, _Traced] | None = None

    def intersects_id(
        self,
        ray_origins: ArrayLike,
        ray_directions: ArrayLike,
        multiple_hits: bool = True,
        max_hits: int = 100,
        return_locations: bool = False,
    ) -> tuple[I64, I64] | tuple[I64, I64, F64]:
        """(index_tri, index_ray[, locations]) of every hit, all first hits before all second ones;
        with `multiple_hits` False of each ray's first one. At most `max_hits` a ray. Locations are
        float64 [m, 3]. ValueError for rays that are not two [n, 3] arrays."""
        origins, directions = _check_rays(ray_origins, ray_directions)
        limit = max_hits if multiple_hits else min(max_hits, 1)
        found = self._traced().walk(origins, directions, limit)
        return found if return_locations else found[:2]

    def intersects_location(
        self,
        ray_origins: ArrayLike,
        ray_directions: ArrayLike,
        multiple_hits: bool = True,
        **options: Any,
    ) -> tuple[F64, I64, I64]:
        """(locations, index_ray, index_tri), as `intersects_id`."""
        found: Any = self.intersects_id(
            ray_origins, ray_directions, multiple_hits, return_locations=True, **options
        )
        return found[2], found[1], found[0]

    def intersects_first(self, ray_origins: ArrayLike, ray_directions: ArrayLike) -> I64:
        """[n] the face each ray hits first, -1 for none."""
        origins, directions = _check_rays(ray_origins, ray_directions)
        return self._traced().first(origins, directions)

    def intersects_any(
        self, ray_origins: ArrayLike, ray_directions: ArrayLike
    ) -> NDArray[np.bool_]:
        """[n] whether each ray hits anything, by the any-hit kernel."""
        origins, directions = _check_rays(ray_origins, ray_directions)
        return self._traced().any(origins, directions)

    def contains_points(self, points: ArrayLike) -> NDArray[np.bool_]:
        """[n] whether each point [n, 3] is inside, by trimesh's parity of crossings."""
        return np.asarray(count_crossings(self, points))

    def _traced(self) -> "_Traced":
        key = hash(self.mesh)
        if self._built is None or self._built[0] != key:
            device = self._device or _default_device()
            self._built = (key, _Traced(self.mesh, self._scale_to_box, device, self._options))
        return self._built[1]

    # A device and its buffers belong to this process and this object: copies build their own.
    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_device": None, "_built": None}

    def __copy__(self) -> "RayMeshIntersector":
        return RayMeshIntersector(
            self.mesh, self._scale_to_box, device=self._device, options=self._options
        )

    def __deepcopy__(self, memo: Any) -> "RayMeshIntersector":
        return self.__copy__()


def _check_rays(origins: ArrayLike, directions: ArrayLike) -> tuple[F64, F64]:
    """Float64 rays with unit directions; one that is zero or not finite becomes zero."""
    origins = np.array(origins, np.float64)
    directions = np.array(directions, np.float64)
    if origins.shape != directions.shape:
        raise ValueError(
            f"Ray origin and direction don't match! ({origins.shape} and {directions.shape})"
        )
    if origins.size == 0:
        return np.zeros((0, 3)), np.zeros((0, 3))
    if origins.ndim != 2 or origins.shape[1] != 3:
        raise ValueError(f"rays are two arrays of shape (n, 3), not {origins.shape}")
    usable = np.isfinite(directions).all(1) & np.isfinite(origins).all(1)
    directions[~usable] = 0.0
    origins[~usable] = 0.0
    # In two steps, so that squares neither overflow nor vanish.
    largest = np.abs(directions).max(1, keepdims=True)
    directions /= np.where(largest > 0, largest, 1.0)
    length = np.linalg.norm(directions, axis=1, keepdims=True)
    return origins, directions / np.where(length > 0, length, 1.0)


class _Traced:
    """One state of a mesh on the GPU. `first`, `any` and `walk` take float64 rays [n, 3] in the
    mesh's space with unit directions."""

    def __init__(
        self, mesh: Any, scale_to_box: bool, device: Device, options: BuildOptions
    ) -> None:
        self.device = device
        self.triangles = np.array(mesh.triangles, np.float64).reshape(-1, 3, 3)
        finite = self.triangles[np.isfinite(self.triangles).all((1, 2))].reshape(-1, 3)
        low = finite.min(0) if len(finite) else np.zeros(3)
        high = finite.max(0) if len(finite) else np.zeros(3)
        self.centre = 0.5 * (low + high)
        diagonal = float(np.linalg.norm(high - low))
        self.scale = BOX_SIZE / diagonal if scale_to_box and diagonal > 0 else 1.0
        self.diagonal = diagonal
        with np.errstate(over="ignore", invalid="ignore"):
            corners = ((self.triangles - self.centre) * self.scale).astype(np.float32)
        count = len(corners)
        blas = build_blas(
            corners,
            np.zeros(count, np.uint32),
            np.arange(count, dtype=np.uint32),
            np.ones(1, np.bool_),
            options,
        )
        self.empty = blas.stats.triangles == 0
        self.scene: SceneBvh = assemble([blas], ["mesh"], [BvhInstance(0, name="mesh")], options)
        wanted = blas.stats.stack_bound + 8
        self.stack = next((size for size in STACK_SIZES if size >= wanted), STACK_SIZES[-1])
        self._tracers: dict[bool, RayTracer] = {}
        self._buffer: Any = None

    def _tracer(self, any_hit: bool) -> RayTracer:
        if any_hit not in self._tracers:
            self._buffer = self._buffer or self.device.upload("bvh", self.scene.words)
            variant = Variant(
                "trimesh/any" if any_hit else "trimesh/first",
                any_hit=any_hit,
                loops=default_kernel(self.device.info).loops,
            )
            self._tracers[any_hit] = RayTracer(
                self.device,
                self.scene.words,
                fit_variant(variant, self.scene, has_alpha=False),
                stack=self.stack,
                bvh_buffer=self._buffer,
                trusted=True,  # bytes of our own builder
            )
        return self._tracers[any_hit]

    def _cast(self, rays: Any, any_hit: bool) -> tuple[I64, NDArray[np.float32]]:
        """(face or -1, t) of float32 rays."""
        face = np.full(len(rays), -1, np.int64)
        t = np.full(len(rays), np.inf, np.float32)
        usable = np.flatnonzero(valid_rays(rays))
        if self.empty:
            return face, t
        for start in range(0, len(usable), CHUNK):
            some = usable[start : start + CHUNK]
            traced = self._tracer(any_hit).trace(rays[some])
            if traced.failures:
                raise RuntimeError("; ".join(traced.failures))
            hit = traced.hits["object"] != MISS_ID
            face[some[hit]] = traced.hits["primitive"][hit]
            t[some[hit]] = traced.hits["t"][hit]
        return face, t

    def _records(self, origins: F64, directions: F64) -> Any:
        radius = 0.5 * self.diagonal * self.scale
        local = (origins - self.centre) * self.scale
        # Far from the mesh a float32 origin is coarse: start just before its bounding sphere.
        ahead = -(local * directions).sum(1) - 1.01 * radius
        far = (np.linalg.norm(local, axis=1) > 4.0 * radius) & (ahead > 0)
        back = BACK_DISTANCE * self.diagonal * self.scale
        local += np.where(far, ahead, -back)[:, None] * directions
        with np.errstate(over="ignore"):
            return make_rays(local, directions, 0.0, FARTHEST)

    def first(self, origins: F64, directions: F64) -> I64:
        face = np.full(len(origins), -1, np.int64)
        faces, owners, _ = self.walk(origins, directions, 1)
        face[owners] = faces
        return face

    def any(self, origins: F64, directions: F64) -> NDArray[np.bool_]:
        face, _ = self._cast(self._records(origins, directions), True)
        found = face >= 0
        hit = np.flatnonzero(found)
        # What an any-hit ray found may lie between its real start and its origin.
        behind = hit[self._locate(origins[hit], directions[hit], face[hit])[0] < self._least_t]
        found[behind] = self.first(origins[behind], directions[behind]) >= 0
        return found

    def walk(self, origins: F64, directions: F64, limit: int) -> tuple[I64, I64, F64]:
        """(faces, rays, locations) of up to `limit` hits a ray, in depth order."""
        rays = self._records(origins, directions)
        alive = np.arange(len(rays))
        counts = np.zeros(len(rays), np.int64)
        last = np.full(len(rays), -np.inf)
        faces, owners, places = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], [np.zeros((0, 3))]
        while len(alive) and limit > 0:
            face, traced_t = self._cast(rays[alive], False)
            hit = face >= 0
            alive, face, traced_t = alive[hit], face[hit], traced_t[hit]
            t, place = self._locate(origins[alive], directions[alive], face)
            fresh = (t >= self._least_t) & (t - last[alive] > MERGE_DISTANCE * self.diagonal)
            faces.append(face[fresh])
            owners.append(alive[fresh])
            places.append(place[fresh])
            last[alive[fresh]] = t[fresh]
            counts[alive[fresh]] += 1
            # The interval is open: neither this hit nor one at the same float32 t comes again.
            rays["t_min"][alive] = traced_t
            alive = alive[counts[alive] < limit]
        return np.concatenate(faces), np.concatenate(owners), np.concatenate(places)

    @property
    def _least_t(self) -> float:
        return -BEHIND_TOLERANCE * self.diagonal

    def _locate(self, origins: F64, directions: F64, face: I64) -> tuple[F64, F64]:
        """(distance, point) where each ray meets the plane of its face, float64."""
        corners = self.triangles[face]
        # Lengths near 1 whatever the mesh's units are.
        first, second = ((corners[:, i] - corners[:, 0]) * self.scale for i in (1, 2))
        normal = np.cross(first, second)
        slope = (normal * directions).sum(1)
        rise = (normal * (corners[:, 0] - origins)).sum(1)
        # A triangle that is edge-on in float64, though float32 saw it: its first corner.
        flat = slope == 0
        t = rise / np.where(flat, 1.0, slope)
        t = np.where(flat, ((corners[:, 0] - origins) * directions).sum(1), t)
        return t, np.asarray(origins + t[:, None] * directions)
