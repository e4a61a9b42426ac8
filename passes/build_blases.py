"""The BLASes of a scene: built on the GPU or the CPU, or taken from the cache.

On the GPU, meshes of about one size share a builder (`bvh.gpu.build_capacity`): its buffers and
pipelines are made once, and what a build costs follows the capacity. Large ones come first and one
builder lives at a time, so that the largest alone decides how much memory it takes.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from bvh.blas_cache import BlasCache
from bvh.build import Blas, BuildOptions, build_blas
from bvh.build_spheres import build_sphere_blas
from bvh.coordinate_range import check_range
from bvh.gpu.blas_builder import GpuBlasBuilder
from bvh.gpu.build_capacity import build_capacity
from engine.gpu.device import Device
from engine.gpu.errors import LimitError
from engine.scene.mesh import Mesh
from passes.opacity import U8, traced

Build = Callable[..., Blas]
# Number and name of a BLAS, how many are done and of how many.
Told = Callable[[int, str, int, int], None]
# Number of a BLAS, and it.
Fits = Callable[[int, Blas], bool]


@dataclass(frozen=True, slots=True)
class BlasRequest:
    """One BLAS whose geometry g is meshes[g], with the classes opacity[g] (`passes.opacity`): all
    of triangles or all of spheres, which are not cached. One that does not last is as its vertices
    lie at rest; frames refit it or build it anew."""

    name: str
    meshes: tuple[Mesh, ...]
    opacity: tuple[U8, ...]
    lasting: bool = True

    @property
    def triangles(self) -> int:
        return sum(len(mesh.triangles) for mesh in self.meshes)

    @property
    def spheres(self) -> bool:
        return self.meshes[0].radii is not None

    def build_spheres(self, options: BuildOptions) -> Blas:
        """The BLAS of a request for spheres, on the CPU whatever builds triangles."""
        geometry, primitive, opaque, kept = traced(self.opacity)
        centers = np.concatenate([mesh.positions for mesh in self.meshes])[kept]
        radii = np.concatenate([mesh.radii for mesh in self.meshes if mesh.radii is not None])
        return build_sphere_blas(centers, radii[kept], geometry, primitive, opaque, options)

    def arrays(self) -> tuple[Any, Any, Any, Any]:
        """triangles, geometry, primitive, opaque as `bvh.build.build_blas` takes them."""
        geometry, primitive, opaque, kept = traced(self.opacity)
        if self.spheres:
            raise ValueError(f"{self.name} is made of spheres")
        triangles = np.concatenate([mesh.positions[mesh.triangles] for mesh in self.meshes])
        return triangles[kept], geometry, primitive, opaque


# Up to so many triangles a CPU driver's dispatches cost more than the twins take: 0.4 s against
# 0.1 for 200 triangles with reinsertion, 0.5 against 0.6 for 6,000.
SMALL_ON_CPU_DRIVERS = 4096


class SharedBuilder:
    """`build_blas` on a device, with the last builder kept for the next mesh of its size. Unless
    `all_there`, meshes that are too small to be worth a CPU driver's dispatches are built by the
    twins. `places` says where something was built: cpu, gpu."""

    def __init__(self, device: Device, all_there: bool = False) -> None:
        self.device = device
        self.small = SMALL_ON_CPU_DRIVERS if device.info.is_cpu and not all_there else 0
        self.places: set[str] = set()
        self._builder: GpuBlasBuilder | None = None

    def builder(self, triangles: int, options: BuildOptions) -> GpuBlasBuilder:
        """One for so many triangles; the one before is given up if it is another."""
        capacity = build_capacity(triangles)
        last = self._builder
        if last is None or (last.capacity, last.options) != (capacity, options):
            self._builder = last = None  # its buffers go before others come
            self._builder = last = GpuBlasBuilder(self.device, capacity, options)
        return last

    def build(
        self, triangles: Any, geometry: Any, primitive: Any, opaque: Any, options: BuildOptions
    ) -> Blas:
        """The same bytes as `build_blas(..., device=device)`."""
        if 0 < len(triangles) <= self.small:
            self.places.add("cpu")
            return build_blas(triangles, geometry, primitive, opaque, options)
        check_range(triangles, geometry)
        self.places.add("gpu")
        builder = self.builder(len(triangles), options)
        return builder.build(triangles, geometry, primitive, opaque)


def build_blases(
    requests: Sequence[BlasRequest],
    options: BuildOptions,
    build: Build = build_blas,
    cache: BlasCache | None = None,
    told: Told | None = None,
    fits: Fits | None = None,
) -> list[Blas]:
    """One BLAS a request, in order. `build` has the arguments of `build_blas`; `told` is called
    before each. A BLAS that `fits` says no to is built again with one triangle a block. LimitError
    names the BLAS that does not fit the adapter."""
    blases: list[Any] = [None] * len(requests)
    order = sorted(range(len(requests)), key=lambda i: -requests[i].triangles)
    for done, index in enumerate(order):
        request = requests[index]
        if told:
            told(index, request.name, done, len(requests))
        if request.spheres:
            blases[index] = request.build_spheres(options)
            continue
        given = request.arrays()
        try:
            make = build if cache is None else partial(cache.build, build=build)
            blases[index] = make(*given, options)
            if (
                not request.lasting
                and fits is not None
                and options.leaf > 1
                and not fits(index, blases[index])
            ):
                blases[index] = make(*given, replace(options, leaf=1))
        except LimitError as error:
            raise LimitError(f"{request.name}, {request.triangles:,} triangles: {error}") from error
    return blases
