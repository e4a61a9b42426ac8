"""Rays of a user's own against a built scene: arrays in, arrays out."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bvh.gpu.default_kernel import default_kernel
from bvh.gpu.trace_rays import FAILURES, STACK_SIZES, GpuTrace, RayTracer, Variant, fit_variant
from bvh.rays import make_rays
from engine.gpu.device import open_device
from passes.prepare import PreparedScene

if TYPE_CHECKING:
    from engine.gpu.device import Device

RAYS_AT_ONCE = 1 << 20  # 32 MiB of records, and as much of hits
MISS = 0xFFFFFFFF  # the ids of a ray that hit nothing
STACK_OVERFLOWED = FAILURES[1]


class RayCaster:
    """A built scene on the GPU, for as many calls of `cast` as there are: its bytes are uploaded
    once, and kernels are compiled when they are first used. `device` None opens the best adapter.
    TypeError for a scene that was not built."""

    def __init__(self, prepared: PreparedScene, device: "Device | None" = None) -> None:
        if not isinstance(prepared, PreparedScene):
            raise TypeError(f"rays are cast at a scene that build gave, not {_kind(prepared)}")
        self._device = device
        self._scene = prepared.bvh
        self._buffer: Any = None
        self._tracers: dict[tuple[bool, int], RayTracer] = {}
        self._stack = STACK_SIZES[0]  # entries; fewer are faster, and few scenes need more

    def cast(self, rays: ArrayLike, *, any_hit: bool = False) -> dict[str, NDArray[Any]]:
        """The closest hit of each ray (or some hit, with `any_hit`), as `treeline.cast_rays` gives
        it, with its errors."""
        records = ray_records(rays)
        parts = []
        for first in range(0, max(1, len(records)), RAYS_AT_ONCE):
            parts.append(self._trace(records[first : first + RAYS_AT_ONCE], any_hit).hits)
        hits = np.concatenate(parts)
        miss = hits["object"] == MISS
        return {
            "t_hit": np.where(miss, np.float32(np.inf), hits["t"]),
            "uv": np.stack([hits["u"], hits["v"]], axis=1),
            "object_ids": hits["object"],
            "primitive_ids": hits["primitive"],
            "instance_ids": hits["instance"],
        }

    def _trace(self, records: NDArray[Any], any_hit: bool) -> GpuTrace:
        """RuntimeError where traversal failed; what overflows a stack is traced again with the next
        size, which later calls begin with."""
        while True:
            trace = self._tracer(any_hit).trace(records)
            larger = [size for size in STACK_SIZES if size > self._stack]
            if STACK_OVERFLOWED not in trace.failures or not larger:
                break
            self._stack = larger[0]
        if trace.failures:
            raise RuntimeError("; ".join(trace.failures))
        return trace

    def _tracer(self, any_hit: bool) -> RayTracer:
        key = any_hit, self._stack
        if key not in self._tracers:
            self._device = device = self._device or open_device()
            self._buffer = self._buffer or device.upload("bvh", self._scene.words)
            loops = default_kernel(device.info).loops
            kernel = Variant("cast_rays", any_hit=any_hit, loops=loops)
            self._tracers[key] = RayTracer(
                device,
                self._scene.words,
                fit_variant(kernel, self._scene, has_alpha=False),
                stack=self._stack,
                bvh_buffer=self._buffer,
            )
        return self._tracers[key]


def ray_records(rays: ArrayLike) -> NDArray[Any]:
    """`rays` [n, 6] or [n, 8] as records (bvh.rays.RAY). ValueError for another shape and for a ray
    that is not finite, with its number; TypeError for complex numbers."""
    if np.iscomplexobj(rays):
        raise TypeError("rays are real numbers, not complex ones")
    with np.errstate(over="ignore"):  # told below
        given = np.asarray(rays, np.float32)
    if given.ndim != 2 or given.shape[1] not in (6, 8):
        raise ValueError(f"rays are [n, 6] or [n, 8], not {list(given.shape)}")
    usable = np.isfinite(given[:, :7]).all(axis=1) & ~np.isnan(given).any(axis=1)
    if not usable.all():
        number = int(usable.argmin())
        raise ValueError(f"ray {number} is not finite: {given[number].tolist()}")
    # A shader may assume that nothing is infinite: no end is the largest float32 there.
    farthest = np.finfo(np.float32).max
    if given.shape[1] == 6:
        return make_rays(given[:, :3], given[:, 3:], 0.0, farthest)
    t_max = np.minimum(given[:, 7], farthest)
    return make_rays(given[:, :3], given[:, 4:7], given[:, 3], t_max)


def _kind(value: object) -> str:
    return type(value).__name__
