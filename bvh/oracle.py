"""CPU truth over the guest bytes: what every ray hits, and what it costs to find out.

An independent definition of traversal (NumPy float32, vectorised over rays, chunks in a thread
pool), read by tests, ray sets and the `nodes` counts of reports. It reads the scene buffer as the
GPU does and nothing else: no Tree, no mesh. Rules: `bvh.ray_box` (slabs, zero components, growth),
`bvh.ray_triangle` (watertight test), `bvh.ray_sphere`, `bvh.traversal` (order, flags, instances).
"""

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bvh.rays import MISS_ID, RAY, RayFlags, Rays, make_rays, valid_rays
from bvh.traversal import Walk
from bvh.walk_options import COUNTERS, RESULTS, Accept, Resume, StepLog, WalkOptions

__all__ = [
    "MISS_ID",
    "RAY",
    "Accept",
    "Counters",
    "RayFlags",
    "Resume",
    "Trace",
    "make_rays",
    "trace",
    "valid_rays",
]

U32 = NDArray[np.uint32]
F32 = NDArray[np.float32]

# Rays walked together: NumPy's cost per call is spread over them. On a million triangles 4k are
# half as fast as 32k; 64k gain 3% more for twice the memory (32k take about 40 MiB a worker).
CHUNK = 32768
STACK_LIMIT = 96  # entries; the deepest seen is 24, on a million triangles
STEP_LIMIT = 1 << 17  # nodes a ray may visit before it counts as lost


@dataclass(frozen=True, slots=True)
class Counters:
    """Work of each ray, [n]. Tests are hits plus misses, so misses are not stored."""

    nodes: U32  # box nodes fetched, those of the TLAS included
    box_tests: U32  # child slots tested that hold a child
    box_hits: U32
    triangle_tests: U32
    triangle_hits: U32  # crossings in the ray's interval that culling left, before the alpha test
    instance_hits: U32  # instance nodes entered (mask passed)
    any_hits: U32  # calls of `accept`
    rejected: U32  # of them, those that refused
    stack_max: U32  # deepest stack, entries
    nodes_fp16: U32  # of `nodes`
    leaf_blocks: U32  # blocks of triangles and spheres fetched


@dataclass(frozen=True, slots=True)
class Trace:
    """One entry a ray. A miss has t = inf, ids MISS_ID and u = v = 0."""

    t: F32  # units of the given direction
    u: F32  # weight of the original triangle's vertex 1; of a sphere bvh.ray_sphere's place
    v: F32  # weight of its vertex 2
    object: U32  # the instance's first object + geometry index
    primitive: U32
    instance: U32  # TLAS instance id; MISS_ID too for a hit in a BLAS container traced alone
    # Node pointer of the triangle hit, relative to the buffer (type = bits 2:0); of a sphere type 0
    # where the ray enters it and 1 where it leaves.
    pointer: U32
    crossings: U32  # accepted crossings; with count_all every one in (t_min, t_max)
    counters: Counters
    overflows: U32  # stack entries dropped, plus 1 for a ray stopped as going round or at the limit
    invalid: NDArray[np.bool_]  # rays refused unwalked (see bvh.rays.valid_rays)
    waits: NDArray[np.bool_]  # the hit is a candidate that was not tested
    leaves: NDArray[np.bool_]  # the hit is where the ray leaves a sphere

    @property
    def hit(self) -> NDArray[np.bool_]:
        return np.asarray(self.t < np.inf)

    @property
    def missed(self) -> NDArray[np.bool_]:
        """Certain misses: a ray that lost work to an overflow is neither hit nor missed."""
        return ~self.hit & (self.overflows == 0)


def trace(
    words: U32,
    rays: Rays,
    *,
    any_hit: bool = False,
    count_all: bool = False,
    mask: int = 0xFF,
    flags: RayFlags = RayFlags.NONE,
    accept: Accept | None = None,
    sort: bool | None = None,
    stack_limit: int = STACK_LIMIT,
    step_limit: int = STEP_LIMIT,
    kernel_order: bool = False,
    log: StepLog | None = None,
    defer: bool = False,
    resume: Resume | None = None,
    workers: int | None = None,
) -> Trace:
    """Trace `rays` [n] of RAY through the container at byte 0 of `words` (a SceneBvh's words, or
    one BLAS's).

    any_hit: stop at the first accepted hit (which one it is depends on the order of nodes).
    count_all: visit everything, never shorten the interval; `crossings` counts, `t` is the nearest.
    mask: instances whose mask shares no bit are skipped.
    accept(object, primitive, u, v) -> bool array: the alpha test, called for non-opaque candidates
    only, from several threads; without it they are accepted.
    sort: visit children near-first; default True for closest-hit and False for any-hit.
    kernel_order: of the hit children only the first comes first, the others last slot first, as the
    GPU kernel takes them. log: is told every step.
    defer: candidates are taken untested for hits that wait (`Trace.waits`): any_hit rays end there.
    resume: where a round before ended in candidates that were rejected; the order of visits has to
    be that of the round.
    UserError for a node pointer beyond the buffer or a node that tracers do not read.
    """
    words = np.ascontiguousarray(words, np.uint32)
    options = WalkOptions(
        any_hit=any_hit,
        count_all=count_all,
        mask=mask,
        flags=RayFlags(flags),
        accept=accept,
        sort=not any_hit if sort is None else sort,
        stack_limit=stack_limit,
        step_limit=step_limit,
        kernel_order=kernel_order,
        log=log,
        defer=defer,
    )
    n = len(rays)
    out = {name: np.full(n, miss, dtype) for name, (dtype, miss) in RESULTS.items()}
    counters = {name: np.zeros(n, np.uint32) for name in COUNTERS}

    def walk(start: int) -> None:
        rows = slice(start, start + CHUNK)
        # Infinite distances and NaN bounds of empty slots are part of the format; the state is
        # per thread.
        with np.errstate(all="ignore"):
            Walk(
                words,
                rays[rows],
                options,
                {name: values[rows] for name, values in out.items()},
                {name: values[rows] for name, values in counters.items()},
                None if resume is None else resume.rows(rows),
            ).run()

    if workers is None:
        workers = os.cpu_count() or 1
    if workers <= 1 or n <= CHUNK:
        for start in range(0, n, CHUNK):
            walk(start)
    else:
        with ThreadPoolExecutor(workers) as pool:
            for _ in pool.map(walk, range(0, n, CHUNK)):
                pass
    results: dict[str, Any] = out
    return Trace(counters=Counters(**counters), **results)
