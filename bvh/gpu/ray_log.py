"""The steps of one ray, written down by the GPU kernel itself.

A logged pipeline is the ordinary traversal with count_steps.wgsl in its $count slot. The lane
whose ray is asked for appends LOG_EVENT records to a buffer of fixed size; what does not fit is
counted. `bvh.ray_steps` reads and compares them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bvh.gpu.trace_rays import FAILURES, GROUP_SIZE, HIT, Variant, stack_shader, vote_slots
from bvh.layout import NODE_BYTES
from bvh.ray_steps import Step
from bvh.rays import RAY
from engine.gpu.device import Device
from engine.gpu.stage import Stage
from engine.gpu.structs import Field, Struct

KINDS = ("", "start", "box", "triangle", "instance", "leave", "end")
LOG_EVENT = Struct(
    "LogEvent",
    Field("kind", "u32"),  # index in KINDS
    Field("node", "u32"),  # pointer, relative to its container
    Field("at", "u32"),  # vec4 of the buffer where the node starts
    Field("next", "u32"),  # box: pointer taken next; triangle: which; end: failure bits
    Field("top", "u32"),  # stack entries after the step
    Field("flags", "u32"),  # box: slots entered; triangle: 1 crossed, 2 accepted; 1 entered; 1 hit
    Field("t", "f32"),
    Field("t_limit", "f32"),  # best hit before the step
    Field("entry", "f32", 4),
    Field("words", "u32", 32),  # of the node; at the start the ray
)
LOG_HEADER = Struct(
    "LogHeader",
    Field("ray", "u32"),
    Field("count", "u32"),
    Field("dropped", "u32"),
    Field("pad", "u32"),
)
CAPACITY = 4096  # events: 704 KiB


def wgsl() -> str:
    """The record and its kinds as LOG_<KIND>."""
    kinds = "".join(
        f"const LOG_{kind.upper()}: u32 = {i}u;\n" for i, kind in enumerate(KINDS) if kind
    )
    return LOG_EVENT.wgsl() + kinds


@dataclass(frozen=True, slots=True)
class RayLog:
    """What the GPU wrote. `start_byte` is the instance node that the kernel starts inside, 0 when
    it starts at the TLAS's root; `dropped` events did not fit. No steps: the ray was not traced."""

    ray: NDArray[Any]  # [] of RAY, as the kernel read it
    start_byte: int
    steps: tuple[Step, ...]
    dropped: int


def new_log(device: Device, ray_index: int, capacity: int = CAPACITY) -> Any:
    """An empty log buffer for ray `ray_index`."""
    buffer = device.buffer("ray_log", LOG_HEADER.size + capacity * LOG_EVENT.size)
    header = np.zeros(1, LOG_HEADER.dtype)
    header["ray"] = ray_index
    device.write(buffer, header)
    return buffer


def read_log(device: Device, buffer: Any) -> RayLog:
    """The log after a dispatch."""
    header = device.read(buffer, LOG_HEADER.dtype, count=1)[0]
    capacity = (buffer.size - LOG_HEADER.size) // LOG_EVENT.size
    count = min(int(header["count"]), capacity)
    events = device.read(buffer, LOG_EVENT.dtype, offset=LOG_HEADER.size, count=count)
    ray = np.zeros((), RAY)
    if not count or KINDS[events[0]["kind"]] != "start":
        return RayLog(ray, 0, (), int(header["dropped"]))
    ray = np.ascontiguousarray(events[0]["words"][:8]).view(RAY)[0]
    steps = tuple(_step(event) for event in events[1:])
    return RayLog(ray, 16 * int(events[0]["at"]), steps, int(header["dropped"]))


def _step(event: Any) -> Step:
    kind, node, flags = KINDS[event["kind"]], int(event["node"]), int(event["flags"])
    words = event["words"][: NODE_BYTES[node & 7] // 4].tolist()
    place: dict[str, Any] = {
        "node": node,
        "byte_offset": 16 * int(event["at"]),
        "words": tuple(words),
    }
    if kind == "box":
        hit = tuple(bool(flags >> slot & 1) for slot in range(4))
        pushed = [words[slot] for slot in reversed(range(4)) if hit[slot]]
        following = []
        if pushed:
            following = [int(event["next"])]
            pushed.remove(int(event["next"]))
        return Step(
            kind,
            **place,
            entry=tuple(event["entry"].tolist()),
            hit=hit,
            follow=(*following, *pushed),
            t=float(event["t_limit"]),
            stack=int(event["top"]) - 1,  # less the mark at its bottom
        )
    if kind == "triangle":
        crossed = bool(flags & 1)
        t = float(event["t"]) if crossed else float("nan")
        return Step(kind, **place, hit=(crossed, bool(flags & 2)), slot=int(event["next"]), t=t)
    if kind == "instance":
        return Step(kind, **place, hit=(bool(flags & 1),))
    if kind == "leave":
        return Step(kind)
    failed = int(event["next"])
    told = [text for bit, text in FAILURES.items() if failed & bit]
    t = float(event["t"]) if flags & 1 else float("inf")
    why = f"hit at t = {t:.9g}" if flags & 1 else "missed: nothing is left on the stack"
    return Step("end", t=t, why="; ".join(told) or why)


class RayLogger:
    """The kernel of RayTracer with a log, over one scene buffer. For bytes of any origin."""

    def __init__(
        self,
        device: Device,
        words: NDArray[np.uint32],
        variant: Variant,
        *,
        stack: int = 64,
        capacity: int = CAPACITY,
    ) -> None:
        self.device = device
        self.capacity = capacity
        self._bvh = device.upload("bvh", words)
        self._stage = Stage(
            device,
            f"log/{variant.name}",
            "bvh/shaders/trace_log.wgsl",
            slots={
                **variant.slots(),
                "stack": stack_shader(stack),
                "accept": "bvh/shaders/accept_all.wgsl",
                "count": "bvh/shaders/count_steps.wgsl",
                **vote_slots(device, variant.loops),
            },
            constants={**variant.constants(), "CHECK_POINTERS": True},
        )

    def log(self, rays: NDArray[Any], ray_index: int) -> tuple[RayLog, NDArray[Any]]:
        """Traces all of `rays` (RAY); the log of one of them and every HIT."""
        device = self.device
        raw = np.ascontiguousarray(rays, RAY).view(np.float32).reshape(-1, 8)
        count = np.array([len(raw), 0, 0, 0], np.uint32)
        resources = {
            "parameters": device.upload("parameters", count, "UNIFORM|COPY_DST"),
            "bvh": self._bvh,
            "rays": device.upload("rays", raw),
            "hits": device.buffer("hits", HIT.size * len(raw)),
            "failed": device.buffer("failed", 4),
            "ray_log": new_log(device, ray_index, self.capacity),
        }
        self._stage.run(resources, -(-len(raw) // GROUP_SIZE))
        hits = device.read(resources["hits"], HIT.dtype, count=len(raw))
        return read_log(device, resources["ray_log"]), hits


def without_start(steps: Sequence[Step], start_byte: int) -> list[Step]:
    """An oracle's steps less those before instance node `start_byte` was entered, and less the
    TLAS steps after it: what a kernel that starts inside it has no part in."""
    if not start_byte:
        return list(steps)
    kept: list[Step] = []
    inside = False
    for step in steps:
        if step.kind == "instance":
            inside = step.hit[0] and step.byte_offset == start_byte
        elif step.kind == "leave":
            inside = False
        elif inside or step.kind == "end":
            kept.append(step)
    return kept
