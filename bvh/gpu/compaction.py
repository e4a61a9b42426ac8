"""Compaction on the GPU: containers out of buffers of worst-case size into one tight scene buffer.

A builder gets room for the most that a tree can need, and only afterwards knows what it took. What
lasts is then copied to a buffer of exactly that size. Node pointers and parent links count from
their container's start and stay; the base in each header's descriptor changes, and so do the BLAS
pointer and base of the TLAS's instance nodes. One dispatch copies every container of a source
buffer, one patches the instances.

By lifetime: only static BLASes are made tight. What is rebuilt or refitted keeps its room, because
the next build may need it, and copying it every frame would cost more than it saves.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bvh.header import HEADER
from bvh.layout import (
    BASE_ALIGN_BYTES,
    HEADER_BYTES,
    INSTANCE_BLAS_BASE_WORD,
    INSTANCE_BLAS_WORD,
    NODE_BOX_FP32,
    NODE_BYTES,
    NODE_INSTANCE,
    UNIT_BYTES,
    UNIT_WORDS,
)
from engine.gpu.device import Device
from engine.gpu.stage import Stage
from engine.gpu.structs import Field, Struct

U32 = NDArray[np.uint32]

GROUP_SIZE = 256
TIGHT_LIFETIMES = ("static", "rigid")  # their vertices never change
_SIZE_WORD = HEADER.offsets["size_units"] // 4
_DESCRIPTOR_WORD = HEADER.offsets["descriptor"] // 4
_LEAF_UNIT_WORD = HEADER.offsets["leaf_unit"] // 4
_LEAF_COUNT_WORD = HEADER.offsets["leaf_count"] // 4
assert _DESCRIPTOR_WORD % 4 == 0

MOVE = Struct(
    "Move",  # everything in 64-byte units
    Field("old_unit", "u32"),
    Field("new_unit", "u32"),
    Field("first", "u32"),  # units of the moves before this one
    Field("units", "u32"),
)
COMPACTION_PARAMETERS = Struct(
    "CompactionParameters",
    Field("moves", "u32"),
    Field("units", "u32"),  # of all moves
    Field("tlas_unit", "u32"),  # where the TLAS is in the target
    Field("pad", "u32"),
)


@dataclass(frozen=True, slots=True)
class Container:
    """One container to place: where it is now, the bytes it uses, and the room that it is to have
    if it does not last (a TLAS that is built every frame is "deforming")."""

    name: str
    source_bytes: int
    used_bytes: int
    room_bytes: int
    lifetime: str = "static"


@dataclass(frozen=True, slots=True)
class CompactionPlan:
    """`bases[i]` is container i's byte in the target, whose size is `after_bytes`. While both
    buffers live, `peak_bytes` are taken; parent links are counted in all three."""

    moves: NDArray[Any]  # MOVE [n]
    bases: tuple[int, ...]
    target_bytes: int
    before_bytes: int
    after_bytes: int
    peak_bytes: int

    def __str__(self) -> str:
        saved = 1.0 - self.after_bytes / self.before_bytes if self.before_bytes else 0.0
        return (
            f"compaction: {self.before_bytes:,} bytes before, {self.after_bytes:,} after "
            f"({100 * saved:.1f}% less), {self.peak_bytes:,} at the peak"
        )


def plan_compaction(containers: Sequence[Container], source_bytes: int) -> CompactionPlan:
    """Lays containers out in the given order, the first one (the TLAS) at byte 0. `source_bytes`
    is the size of the source buffer. ValueError for a container that is not where it says."""
    moves = np.zeros(len(containers), MOVE.dtype)
    bases, end, units = [], 0, 0
    for move, item in zip(moves, containers, strict=True):
        inside = 0 <= item.used_bytes <= source_bytes - item.source_bytes
        inside &= item.used_bytes <= item.room_bytes
        if item.source_bytes % BASE_ALIGN_BYTES or item.used_bytes % UNIT_BYTES or not inside:
            raise ValueError(f"{item.name} is no container of this buffer: {item}")
        base = -(-end // BASE_ALIGN_BYTES) * BASE_ALIGN_BYTES
        bases.append(base)
        end = base + (item.used_bytes if item.lifetime in TIGHT_LIFETIMES else item.room_bytes)
        move["old_unit"], move["new_unit"] = item.source_bytes // UNIT_BYTES, base // UNIT_BYTES
        move["first"], move["units"] = units, item.used_bytes // UNIT_BYTES
        units += item.used_bytes // UNIT_BYTES
    end = -(-end // UNIT_BYTES) * UNIT_BYTES
    before, after = (size + size // UNIT_BYTES * 4 for size in (source_bytes, end))
    return CompactionPlan(moves, tuple(bases), end, before, after, before + after)


def copy_containers(
    parameters: NDArray[Any],
    moves: NDArray[Any],
    loose: U32,
    loose_links: U32,
    tight: U32,
    tight_links: U32,
) -> None:
    """Twin of copy_containers.wgsl."""
    for move in moves[: int(parameters[0]["moves"])]:
        units = int(move["units"])
        start, end = int(move["old_unit"]), int(move["new_unit"])
        from_units = loose.reshape(-1, UNIT_WORDS)[start : start + units]
        tight.reshape(-1, UNIT_WORDS)[end : end + units] = from_units
        tight_links[end : end + units] = loose_links[start : start + units]
        word = end * UNIT_WORDS + _DESCRIPTOR_WORD
        tight[word] = end // (BASE_ALIGN_BYTES // UNIT_BYTES)
        tight[word + 1] &= np.uint32(0xFFFFFF00)


def patch_instances(parameters: NDArray[Any], moves: NDArray[Any], tight: U32, lost: U32) -> None:
    """Twin of patch_instances.wgsl: `lost[0]` counts instances whose BLAS was not moved."""
    tlas = int(parameters[0]["tlas_unit"]) * UNIT_WORDS
    first = tlas + int(tight[tlas + _LEAF_UNIT_WORD]) * UNIT_WORDS
    size = NODE_BYTES[NODE_INSTANCE] // 4
    count = int(tight[tlas + _LEAF_COUNT_WORD])
    nodes = tight[first : first + size * count].reshape(-1, size)
    order = np.argsort(moves["old_unit"], kind="stable")
    sources = moves["old_unit"][order]
    at = np.searchsorted(sources, nodes[:, INSTANCE_BLAS_BASE_WORD])
    known = at < len(sources)
    known[known] = sources[at[known]] == nodes[known, INSTANCE_BLAS_BASE_WORD]
    base = moves["new_unit"][order][at[known]].astype(np.uint64)
    root = (base * UNIT_BYTES + HEADER_BYTES) >> np.uint64(3) | np.uint64(NODE_BOX_FP32)
    nodes[known, INSTANCE_BLAS_WORD] = root & np.uint64(0xFFFFFFFF)
    nodes[known, INSTANCE_BLAS_WORD + 1] = root >> np.uint64(32)
    nodes[known, INSTANCE_BLAS_BASE_WORD] = base
    lost[0] += (~known).sum(dtype=np.uint32)


class GpuCompaction:
    """Carries out a plan, into new buffers or those given (the size of `plan.target_bytes` and its
    parent links at least). LimitError where these would not fit the adapter."""

    def __init__(
        self, device: Device, plan: CompactionPlan, tight: Any = None, tight_links: Any = None
    ) -> None:
        self.device = device
        self.plan = plan
        self.copy = Stage(
            device, "compaction/copy", "bvh/gpu/shaders/copy_containers.wgsl", twin=copy_containers
        )
        self.patch = Stage(
            device, "compaction/patch", "bvh/gpu/shaders/patch_instances.wgsl", twin=patch_instances
        )
        # Moves by source, for the search of an instance's BLAS; `first` follows that order.
        by_source = np.sort(plan.moves, order="old_unit")
        by_source["first"] = np.cumsum(by_source["units"]) - by_source["units"]
        self.units = int(by_source["units"].sum())
        parameters = np.zeros(1, COMPACTION_PARAMETERS.dtype)
        parameters["moves"], parameters["units"] = len(by_source), self.units
        parameters["tlas_unit"] = plan.moves["new_unit"][:1].sum()
        self.resources = {
            "parameters": device.upload("compaction/parameters", parameters, "UNIFORM|COPY_DST"),
            "moves": device.upload("compaction/moves", by_source),
            "lost": device.buffer("compaction/lost", 4),
        }
        links = plan.target_bytes // UNIT_BYTES * 4
        self.tight = tight or device.buffer("compacted scene", plan.target_bytes)
        self.tight_links = tight_links or device.buffer("compacted links", links)

    def encode(self, scope: Any, buffers: dict[str, Any], instances: int) -> None:
        """Within the compute pass `scope`: from `loose` and `loose_links` to `self.tight` and
        `self.tight_links`. The first container of the plan is a TLAS of up to `instances`
        instances; 0 where there is none."""
        resources = {
            **self.resources,
            **buffers,
            "tight": self.tight,
            "tight_links": self.tight_links,
        }
        self.copy.dispatch(scope, resources, -(-4 * self.units // GROUP_SIZE))
        self.patch.dispatch(scope, resources, -(-instances // GROUP_SIZE))

    def lost(self) -> int:
        """Instances whose BLAS was not among the moves, read back: 0 for a sound scene."""
        return int(self.device.read(self.resources["lost"], count=1)[0])


def wgsl() -> str:
    """The records and constants for shaders."""
    constants = {
        "SIZE_WORD": _SIZE_WORD,
        "DESCRIPTOR_WORD": _DESCRIPTOR_WORD,
        "LEAF_UNIT_WORD": _LEAF_UNIT_WORD,
        "LEAF_COUNT_WORD": _LEAF_COUNT_WORD,
    }
    lines = [f"const {name}: u32 = {value}u;" for name, value in constants.items()]
    return "\n".join([*lines, MOVE.wgsl(), COMPACTION_PARAMETERS.wgsl()])
