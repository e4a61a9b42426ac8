"""What a contract traversal is told and what it answers."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from bvh.contract.cases import Rules
from bvh.contract.memory import Pager
from bvh.contract.residency import ATTEMPTS
from bvh.contract.trace_log import Step

F32 = NDArray[np.float32]
U32 = NDArray[np.uint32]
U64 = NDArray[np.uint64]

STEP_LIMIT = 1 << 16  # instructions a ray
STACK_LIMIT = 64  # node pointers a ray


class Ended(StrEnum):
    """Why a ray's walk ended. All but the first two are errors."""

    STACK_EMPTY = "stack empty"
    FIRST_HIT = "first hit"
    STEP_LIMIT = "step limit"
    STACK_OVERFLOW = "stack overflow"
    UNKNOWN_NODE = "a node that this walk cannot enter"
    BAD_DESCRIPTOR = "wrong descriptor type"
    OUT_OF_RANGE = "node out of range"
    BAD_RAY = "NaN or infinite ray"
    UNAVAILABLE = "page not available"
    INVALID_ADDRESS = "invalid address"


@dataclass(frozen=True, slots=True)
class Options:
    """`fan`: a pointer of type k visits k..0 (GPURT's and our convention), else k alone.
    `instances`: whether type 6 nodes are ours and entered, or end the ray as unknown."""

    rules: Rules = "chapter"
    any_hit: bool = False
    mask: int = 0xFF
    fan: bool = True
    instances: bool = True
    step_limit: int = STEP_LIMIT
    stack_limit: int = STACK_LIMIT
    pager: Pager | None = None
    attempts: int = ATTEMPTS
    log: Callable[[Step], None] | None = None


@dataclass(frozen=True, slots=True)
class Trace:
    """Per ray: the nearest accepted hit (t infinite and ids 0xffffffff on a miss), and counters.
    `geometry` and `primitive` are read as our blocks hold them. `steps` counts instructions."""

    t: F32
    u: F32
    v: F32
    pointer: U64  # of the triangle, with its own type
    geometry: U32
    primitive: U32
    instance: U32
    front: NDArray[np.bool_]
    ended: NDArray[np.object_]  # of Ended
    steps: U32
    box_nodes: U32
    triangle_tests: U32
    triangle_hits: U32
    instance_hits: U32
    stack_max: U32

    @property
    def error_count(self) -> int:
        """Rays that ended before they knew their hit."""
        return sum(ended not in (Ended.STACK_EMPTY, Ended.FIRST_HIT) for ended in self.ended)
