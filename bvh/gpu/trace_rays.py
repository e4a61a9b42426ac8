"""Traces plain ray sets on the GPU over the guest bytes of a scene: the kernel that the frame's
passes share, without queues or shading. `bvh.oracle.trace` is its CPU counterpart.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bvh.counters import COUNTERS, table_words
from bvh.header import unpack_header
from bvh.layout import DEFAULT_GROWTH, INVALID_POINTER, ROOT_POINTER, unpack_pointer
from bvh.rays import RAY, RayFlags
from bvh.scene_bvh import SceneBvh
from engine.gpu.device import Device
from engine.gpu.errors import UserError
from engine.gpu.stage import Stage
from engine.gpu.structs import Field, Struct
from engine.gpu.timer import PassTimer

HIT = Struct(
    "Hit",
    Field("t", "f32"),
    Field("u", "f32"),
    Field("v", "f32"),
    Field("object", "u32"),
    Field("primitive", "u32"),
    Field("instance", "u32"),
)
GROUP_SIZE = 64
# Entries of a lane's stack that kernels are built with. Fewer are faster (WGSL zeroes them for
# every ray); a ray that needs more is reported and the next size takes over.
STACK_SIZES = (32, 64, 128)
# Bits of `failed`; any of them makes a run invalid.
FAILURES = {
    1: "a stack overflowed",
    2: "an unknown node type was met",
    4: "the step limit ran out",
    8: "a node pointer left the buffer",
}


LANES_ALONE, LANES_VOTE = (f"bvh/shaders/lanes_{how}.wgsl" for how in ("alone", "vote"))

# fast: our own arithmetic. contract: every node through the instruction (bvh/contract).
TRAVERSALS = ("fast", "contract")


def stack_shader(entries: int) -> str:
    """The file that fills the kernel's $stack slot with so many entries."""
    return f"bvh/shaders/stack_{entries}.wgsl"


def counter_slots(device: Device, counted: bool, lanes: bool = False) -> dict[str, str]:
    """The slots that decide what is counted; `lanes` too, if the device can."""
    if not counted:
        return {"count": "bvh/shaders/count_nothing.wgsl"}
    how = "ballot" if lanes and "subgroup" in device.features else "unknown"
    return {
        "count": "bvh/shaders/count_events.wgsl",
        "lanes": f"bvh/shaders/lanes_{how}.wgsl",
    }


def vote_slots(device: Device, loops: str) -> dict[str, str]:
    """The slot by which lanes go on together to what one of them needs (three loops), instead of
    each by itself: for `fast` traversal, after its other slots."""
    together = loops == "three" and "subgroup" in device.features
    return {"vote": LANES_VOTE if together else LANES_ALONE}


def traversal_slots(traversal: str) -> dict[str, str]:
    """The slots that decide how nodes are tested: one of TRAVERSALS, else UserError."""
    if traversal == "fast":
        return {
            "traverse": "bvh/shaders/traverse.wgsl",
            "ray_types": "bvh/shaders/one_ray_type.wgsl",
            "vote": LANES_ALONE,
        }
    if traversal != "contract":
        there = ", ".join(TRAVERSALS)
        raise UserError(f"no traversal is named '{traversal}'; there are {there}")
    return {
        "traverse": "bvh/shaders/traverse_contract.wgsl",
        "ray_types": "bvh/shaders/one_ray_type.wgsl",
        "arithmetic": "bvh/contract/shaders/arithmetic_exact.wgsl",
        "memory": "bvh/contract/shaders/scene_memory.wgsl",
    }


@dataclass(frozen=True, slots=True)
class Variant:
    """One build of the traversal kernel. `name` is what benchmarks print."""

    name: str
    any_hit: bool = False
    sort: bool = True
    loops: str = "one"  # of bvh.gpu.default_kernel.LOOPS; contract traversal has one
    two_level: bool = True
    has_fp16: bool = True
    has_alpha: bool = True
    has_fans: bool = False
    has_spheres: bool = False
    mask: int = 0xFF
    flags: int = 0
    start_instance_unit: int = 0
    traversal: str = "fast"
    rules: str = "chapter"  # contract traversal only, as is `growth` (ULPs)
    growth: int = DEFAULT_GROWTH

    def slots(self) -> dict[str, str]:
        """The kernel's slots that do not depend on the stage around it."""
        return traversal_slots(self.traversal)

    def constants(self) -> dict[str, float]:
        """The kernel's WGSL override constants."""
        own: dict[str, float] = {"HAS_SPHERES": self.has_spheres}
        if self.traversal == "contract":
            own = {"GPURT_RULES": self.rules == "gpurt", "GROWTH": self.growth}
        return {
            **own,
            "ANY_HIT": self.any_hit,
            "SORT": self.sort,
            "WHILE_WHILE": self.loops != "one",
            "UNDER_MASK": self.loops == "three",
            "TWO_LEVEL": self.two_level,
            "HAS_FP16": self.has_fp16,
            "HAS_ALPHA": self.has_alpha,
            "HAS_FANS": self.has_fans,
            "RAY_MASK": self.mask,
            "RAY_FLAGS": self.flags,
            "START_INSTANCE_UNIT": self.start_instance_unit,
        }


def fit_variant(variant: Variant, scene: SceneBvh, *, has_alpha: bool = True) -> Variant:
    """The variant with what this scene does not need left out: FP16 nodes, the alpha test (nor do
    rays that take everything as opaque), fans, spheres, and the TLAS where it has one instance that
    these rays see. (A kernel that starts inside the instance never looks at its mask.) UserError
    for the contract traversal of a scene with spheres: the instruction tests none."""
    has_spheres = scene_has_spheres(scene)
    if has_spheres and variant.traversal == "contract":
        raise UserError("the contract traversal cannot test spheres (procedural nodes): use fast")
    if RayFlags(variant.flags) & (RayFlags.OPAQUE | RayFlags.NON_OPAQUE) == RayFlags.OPAQUE:
        has_alpha = False
    has_fp16 = any(stats.nodes_fp16 for stats in scene.blas_stats)
    variant = replace(
        variant,
        has_fp16=has_fp16,
        has_alpha=has_alpha,
        has_fans=scene_has_fans(scene),
        has_spheres=has_spheres,
    )
    instance_unit = only_instance(scene)
    if instance_unit is None or not variant.mask & 0xFF:
        return variant
    return replace(variant, two_level=False, start_instance_unit=instance_unit)


def scene_has_spheres(scene: SceneBvh) -> bool:
    """Whether any BLAS's header says that its leaves are spheres."""
    return any(
        unpack_header(scene.blas_words(i)).sphere_count != 0 for i in range(len(scene.blas_bases))
    )


def scene_has_fans(scene: SceneBvh) -> bool:
    """Whether any BLAS's header says that it has blocks of three or four triangles."""
    return any(
        unpack_header(scene.blas_words(i)).fan_unit != 0 for i in range(len(scene.blas_bases))
    )


def only_instance(scene: SceneBvh) -> int | None:
    """The instance node's place in 64-byte units where the TLAS holds one instance that every
    mask lets in, else None."""
    if len(scene.instances) != 1 or scene.instances[0].mask != 0xFF:
        return None
    child = int(scene.words[unpack_pointer(ROOT_POINTER)[0] // 4])
    return None if child == INVALID_POINTER else child >> 3


@dataclass(frozen=True, slots=True)
class GpuTrace:
    """What one dispatch gave. `hits` has dtype HIT.dtype (object MISS_ID on a miss, t = t_max
    there); `ms` is GPU time by timestamps (NaN without them); `counters` and `nodes` (box nodes a
    ray) come from counted runs only; `failures` lists what went wrong, empty for a valid run."""

    hits: NDArray[Any]
    ms: float
    failures: tuple[str, ...]
    counters: Mapping[str, int] | None
    nodes: NDArray[np.uint32] | None


class RayTracer:
    """One kernel variant bound to one scene buffer (`words`: uint32, `SceneBvh.words`)."""

    def __init__(
        self,
        device: Device,
        words: NDArray[np.uint32],
        variant: Variant,
        *,
        counted: bool = False,
        lanes: bool = False,
        count_all: bool = False,
        stack: int = 64,
        bvh_buffer: Any = None,
        trusted: bool = False,
    ) -> None:
        self.device = device
        self.variant = variant
        self.counted = counted
        self._bvh = bvh_buffer or device.upload("bvh", words)
        self._rays: Any = None
        self.stage = Stage(
            device,
            f"trace/{variant.name}",
            "bvh/shaders/trace_rays_counted.wgsl" if counted else "bvh/shaders/trace_rays.wgsl",
            slots={
                **variant.slots(),
                "stack": stack_shader(stack),
                "accept": f"bvh/shaders/accept_{'none' if count_all else 'all'}.wgsl",
                **counter_slots(device, counted, lanes),
                **vote_slots(device, variant.loops),
            },
            constants={
                **variant.constants(),
                "STORE_CANDIDATES": count_all,
                "CHECK_POINTERS": not trusted,
            },
            trusted=trusted,
        )

    def bind(self, words: NDArray[np.uint32]) -> None:
        """Goes on with another scene's buffer, through the same kernel; rays have to follow."""
        self._bvh = self.device.upload("bvh", words)

    def upload(self, rays: NDArray[Any]) -> None:
        """Puts rays (dtype RAY) on the GPU."""
        raw = np.ascontiguousarray(rays, RAY).view(np.float32).reshape(-1, 8)
        self.count = len(raw)
        size = self.count * HIT.size
        self._timer = PassTimer(self.device, 1)
        self._rays = self.device.upload("rays", raw)
        self._resources = {
            "parameters": self.device.upload(
                "parameters", np.array([self.count, 0, 0, 0], np.uint32), "UNIFORM|COPY_DST"
            ),
            "bvh": self._bvh,
            "rays": self._rays,
            "hits": self.device.buffer("hits", size),
            "failed": self.device.buffer("failed", 4),
        }
        if self.counted:
            # Two words behind the table, zero: no objects are told apart (bvh/counters.py).
            self._resources["counters"] = self.device.buffer("counters", 4 * (table_words(1) + 2))
            self._resources["ray_nodes"] = self.device.buffer("ray_nodes", 4 * self.count)

    def encode(self, encoder: Any, timestamps: Any) -> None:
        """One timed pass over the uploaded rays."""
        encoder.clear_buffer(self._resources["failed"])
        if self.counted:
            encoder.clear_buffer(self._resources["counters"])
        extra = {"timestamp_writes": timestamps} if timestamps else {}
        scope = encoder.begin_compute_pass(label=self.stage.name, **extra)
        self.stage.dispatch(scope, self._resources, -(-self.count // GROUP_SIZE))
        scope.end()

    def dispatch(self) -> float:
        """Traces the uploaded rays once; GPU milliseconds (NaN without timestamps)."""
        encoder = self.device.wgpu.create_command_encoder(label=self.stage.name)
        self.encode(encoder, self._timer.writes(0))
        self._timer.resolve(encoder)
        self.device.wgpu.queue.submit([encoder.finish()])
        begin, end = self._timer.read_ms()[0]
        return float(end - begin)

    def read(self, ms: float = float("nan")) -> GpuTrace:
        """Results of the last dispatch."""
        device, resources = self.device, self._resources
        hits = device.read(resources["hits"], HIT.dtype, count=self.count)
        failed = int(device.read(resources["failed"], np.uint32, count=1)[0])
        failures = tuple(text for bit, text in FAILURES.items() if failed & bit)
        if not self.counted:
            return GpuTrace(hits, ms, failures, None, None)
        counters = device.read(resources["counters"], np.uint32, count=len(COUNTERS))
        totals = dict(zip(COUNTERS, counters.tolist(), strict=True))
        nodes = device.read(resources["ray_nodes"], np.uint32, count=self.count)
        return GpuTrace(hits, ms, failures, totals, nodes)

    def trace(self, rays: NDArray[Any]) -> GpuTrace:
        """Uploads, traces once and reads back."""
        if not len(rays):
            empty = np.zeros(0, HIT.dtype)
            return GpuTrace(empty, float("nan"), (), None, None)
        self.upload(rays)
        return self.read(self.dispatch())


def time_interleaved(
    device: Device, tracers: Sequence[RayTracer], repeats: int, warmup_ms: float
) -> NDArray[np.float64]:
    """[tracers, repeats] GPU milliseconds; each repeat is one submission that runs every tracer.

    First the same submissions run untimed for `warmup_ms` of wall time and at least once: an idle
    GPU clocks down to a fraction of its speed and needs about a second of work to come back.
    """
    timer = PassTimer(device, len(tracers))

    def submit() -> NDArray[np.float64]:
        encoder = device.wgpu.create_command_encoder(label="interleaved")
        for index, tracer in enumerate(tracers):
            tracer.encode(encoder, timer.writes(index))
        timer.resolve(encoder)
        device.wgpu.queue.submit([encoder.finish()])
        spans = timer.read_ms()
        return spans[:, 1] - spans[:, 0]

    start = time.perf_counter()
    submit()
    while 1e3 * (time.perf_counter() - start) < warmup_ms:
        submit()
    return np.stack([submit() for _ in range(repeats)], axis=1)
