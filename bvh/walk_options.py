"""What a walk of the oracle is asked for, what it may tell on its way, and the arrays it fills."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from bvh.rays import MISS_ID, RayFlags

U32 = NDArray[np.uint32]
F32 = NDArray[np.float32]
Index = NDArray[np.int64]
Accept = Callable[[U32, U32, NDArray[np.float32], NDArray[np.float32]], NDArray[np.bool_]]

COUNTERS = (
    "nodes",
    "box_tests",
    "box_hits",
    "triangle_tests",
    "triangle_hits",
    "instance_hits",
    "any_hits",
    "rejected",
    "stack_max",
    "nodes_fp16",
    "leaf_blocks",
)
RESULTS: dict[str, tuple[Any, Any]] = {  # name -> (dtype, value of a miss)
    "t": (np.float32, np.inf),
    "u": (np.float32, 0),
    "v": (np.float32, 0),
    "object": (np.uint32, MISS_ID),
    "primitive": (np.uint32, MISS_ID),
    "instance": (np.uint32, MISS_ID),
    "pointer": (np.uint32, MISS_ID),
    "crossings": (np.uint32, 0),
    "overflows": (np.uint32, 0),
    "invalid": (np.bool_, False),
    "waits": (np.bool_, False),
    "leaves": (np.bool_, False),
}


@dataclass(frozen=True, slots=True)
class Resume:
    """Where rays [n] go on: behind a triangle that the alpha test rejected, in the order of visits.
    `t` is where they cross it, `pointer` its node pointer in the buffer, `instance` its id."""

    t: F32
    pointer: U32
    instance: U32

    def rows(self, rows: slice) -> "Resume":
        return Resume(self.t[rows], self.pointer[rows], self.instance[rows])


@dataclass(frozen=True, slots=True)
class WalkOptions:
    """What one trace call asks for; see `bvh.oracle.trace`."""

    any_hit: bool
    count_all: bool
    mask: int
    flags: RayFlags
    accept: Accept | None
    sort: bool
    stack_limit: int
    step_limit: int
    kernel_order: bool = False
    log: "StepLog | None" = None
    defer: bool = False


class StepLog(Protocol):
    """Is told what each of the m rays in `lanes` does at a node: its pointer `node` [m] and its
    word `address` [m] in the buffer. Called from several threads if the trace uses them."""

    def boxes(
        self,
        lanes: Index,
        node: U32,
        address: Index,
        bounds: F32,  # [4, 2, 3, m]
        entry: F32,  # [4, m]
        hit: NDArray[np.bool_],  # [4, m]
        order: U32,  # [4, m] the hit children, next one first
        limit: F32,  # [m] t of the best hit so far
    ) -> None: ...

    def triangles(
        self,
        lanes: Index,
        node: U32,
        address: Index,
        kind: Index,  # [m] which triangle of the block
        t: F32,  # [m] NaN where the ray does not cross it inside its interval
        accepted: NDArray[np.bool_],
    ) -> None: ...

    def instances(
        self, lanes: Index, node: U32, address: Index, entered: NDArray[np.bool_]
    ) -> None: ...

    def leave(self, lanes: Index) -> None: ...
