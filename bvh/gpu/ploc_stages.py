"""PLOC's stages: neighbours along the Morton curve merge where each is the other's nearest.

Clusters stand in Morton order. In every round each one looks at `radius` clusters on either side
for the one with which its common box has the least area; where two choose each other, they become
a node, which takes the left one's place, and the rest closes up. Source: Meister and Bittner 2018,
"Parallel Locally-Ordered Clustering for Bounding Volume Hierarchy Construction".

A dispatch does many rounds: each workgroup takes a chunk of 256 clusters into workgroup memory and
goes on until half of them are left (after Benthin et al. 2022, "PLOC++", and 2024, "H-PLOC"). The
`radius` clusters beyond the chunk's ends are looked at, as they were when the dispatch began, but
do not merge: a cluster whose nearest is out there waits for the next dispatch, whose chunks begin
elsewhere. A dispatch reads only what earlier ones wrote.

Equal areas: the neighbour in a cluster's own pair (places 2k and 2k + 1 of the chunk) comes first,
then the nearer place, then the lower one (RADV prefers by parity too). That is an order of pairs,
the same from both ends, so the first pair of all always merges, and a million equal boxes halve.

Depth: where a dispatch begins with c clusters, its searches merge none that has MAX_DEPTH -
ceil(log2 c) levels already (in the last one c counts down round by round). So halving, pair by
pair in order, always ends within MAX_DEPTH levels. Forced dispatches do that, for inputs that
merge too slowly.

Node numbers: a cluster carries the place in Morton order of its first leaf; a merge takes the
number of the right one's place less one. Each place but the first is taken once, whatever the
order of merges, and nodes lie in memory near their children. In the end the root and node 0 swap.

Areas are float32, products kept apart from sums. Areas under 2^-126 may be flushed to zero by an
adapter, which then breaks the tie its own way.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bvh.gpu.build_records import LARGEST
from bvh.tree import EMPTY, MAX_DEPTH
from engine.gpu.structs import Field, Struct

F32 = NDArray[np.float32]
I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
U32 = NDArray[np.uint32]

CHUNK = 256  # clusters a workgroup, one a lane
MOST_RADIUS = 16
ROUNDS = 16  # of searching, at most, before the next dispatch
SPARE = 2  # dispatches
LAST_ROUNDS = 64  # the same where one chunk holds all; then it is halved
HEIGHT_BITS = 6  # a cluster's second word: its first leaf's place above its height
MOST_PRIMITIVES = 1 << (32 - HEIGHT_BITS)
LONGEST_SIDE = np.float32(1e18)  # so that no area overflows
BLOCKED = np.float32(3e38)  # farther than any two clusters

PLOC_PARAMETERS = Struct(
    "PlocParameters",
    Field("forced", "u32"),  # 1: halve what the searches left
    Field("zero", "u32"),  # 0, unknown to the compiler
    Field("reserved", "vec2u"),
)
CLUSTER = Struct(
    "Cluster",
    Field("low", "vec3f"),
    Field("link", "i32"),  # node, or ~primitive
    Field("high", "vec3f"),
    Field("place_height", "u32"),
)


def make_parameters(forced: bool) -> NDArray[Any]:
    """One PLOC_PARAMETERS record."""
    record = np.zeros(1, PLOC_PARAMETERS.dtype)
    record["forced"] = forced
    return record


def chunk_count(count: int) -> int:
    """Chunks of `count` clusters."""
    return -(-count // CHUNK)


def dispatches(capacity: int) -> list[bool]:
    """The dispatches that always suffice for `capacity` boxes, in order; True is forced. Plain
    ones halve what real scenes have, with some to spare; a forced one leaves 256 or a 256th."""
    if capacity <= CHUNK:
        return [False]
    plain = (chunk_count(capacity) - 1).bit_length() + SPARE
    forced, left = 0, capacity
    while left > CHUNK:
        forced, left = forced + 1, chunk_count(left)
    return [False] * plain + [True] * forced + [False]


def ploc_leaves(
    state: NDArray[Any], boxes: F32, payload: U32, counts: U32, clusters: NDArray[Any]
) -> None:
    """Twin of ploc_leaves.wgsl: a cluster of every box, in sorted order. `counts` are the number
    of chunks, then the clusters of each, which begin at every 256th place of `clusters`."""
    kept = int(state["kept"][0])
    every = boxes.reshape(-1, 2, 3)[payload[:kept]]
    clusters["low"][:kept], clusters["high"][:kept] = every[:, 0], every[:, 1]
    clusters["link"][:kept] = ~payload[:kept].astype(np.int32)
    clusters["place_height"][:kept] = np.arange(kept, dtype=np.uint32) << np.uint32(HEIGHT_BITS)
    chunks = chunk_count(kept)
    counts[0] = chunks
    counts[1 : chunks + 1] = CHUNK
    if kept % CHUNK:
        counts[chunks] = kept % CHUNK


def _heights(clusters: NDArray[Any]) -> U32:
    return np.asarray(clusters["place_height"] & np.uint32((1 << HEIGHT_BITS) - 1))


def _places(clusters: NDArray[Any]) -> U32:
    return np.asarray(clusters["place_height"] >> np.uint32(HEIGHT_BITS))


def _nearest(clusters: NDArray[Any], chunk: I64, pair: I64, limit: int, radius: int) -> I64:
    """[n] places from each cluster to its nearest of the same chunk; 0 where there is none. `pair`
    numbers the pairs that ties prefer."""
    count = len(clusters)
    blocked = np.where(_heights(clusters) >= limit, BLOCKED, np.float32(0))
    low = [np.ascontiguousarray(clusters["low"][:, axis]) for axis in range(3)]
    high = [np.ascontiguousarray(clusters["high"][:, axis]) for axis in range(3)]
    best = np.full(count, BLOCKED, np.float32)
    offset = np.zeros(count, np.int64)

    def consider(rows: slice, areas: F32, step: int) -> None:
        closer = areas < best[rows]
        np.copyto(best[rows], areas, where=closer)
        np.copyto(offset[rows], step, where=closer)

    for step in range(1, min(radius, count - 1) + 1):
        left, right = slice(0, count - step), slice(step, count)
        x, y, z = (
            np.minimum(
                np.maximum(high[k][left], high[k][right]) - np.minimum(low[k][left], low[k][right]),
                LONGEST_SIDE,
            )
            for k in range(3)
        )
        area = np.maximum(x * y + y * z + z * x, np.maximum(blocked[left], blocked[right]))
        area[chunk[left] != chunk[right]] = BLOCKED
        if step == 1:
            paired = np.where(pair[left] == pair[right], area, BLOCKED)
            consider(left, paired, 1)
            consider(right, paired, -1)
        consider(right, area, -step)
        consider(left, area, step)
    return offset


def _merge(
    clusters: NDArray[Any], offset: I64, children: I32, bounds: F32, zero_parent: U32
) -> NDArray[np.bool_]:
    """Merges every two clusters whose offsets lead to each other, into the left one, and writes
    their nodes; the mask of those that are left."""
    here = np.arange(len(clusters))
    mutual = (offset != 0) & (offset[here + offset] == -offset)
    left = np.flatnonzero(mutual & (offset > 0))
    right = left + offset[left]
    a, b = clusters[left], clusters[right]
    node = _places(b).astype(np.int64) - 1
    low, high = np.minimum(a["low"], b["low"]), np.maximum(a["high"], b["high"])
    children.reshape(-1, 2)[node] = np.stack([a["link"], b["link"]], axis=1)
    bounds.reshape(-1, 2, 3)[node] = np.stack([low, high], axis=1)
    parent = node[(a["link"] == 0) | (b["link"] == 0)]
    if len(parent):
        zero_parent[0] = parent[0]
    clusters["low"][left], clusters["high"][left], clusters["link"][left] = low, high, node
    height = np.maximum(_heights(a), _heights(b)) + np.uint32(1)
    clusters["place_height"][left] = _places(a) << np.uint32(HEIGHT_BITS) | height
    return ~(mutual & (offset < 0))


def ploc_rounds(
    parameters: NDArray[Any],
    counts: U32,
    clusters: NDArray[Any],
    next_counts: U32,
    next_clusters: NDArray[Any],
    children: I32,
    bounds: F32,
    zero_parent: U32,
    *,
    radius: int,
) -> None:
    """Twin of ploc_rounds.wgsl: rounds within every chunk until half of it is left, or, where one
    chunk holds all, until the root is. A lone box becomes a root with one leaf, and none a root
    with none, whose box is inverted."""
    sizes = counts[1 : 1 + int(counts[0])].astype(np.int64)
    within = np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    every = clusters[np.repeat(np.arange(len(sizes)), sizes) * CHUNK + within]
    total = len(every)
    last = total <= CHUNK
    chunks = chunk_count(total)
    goal, rounds, halved = CHUNK // 2, ROUNDS, CHUNK
    if last:
        goal, rounds, halved = 1, LAST_ROUNDS, 1
    elif parameters["forced"][0]:
        halved = 1 << max(CHUNK // chunks, 1).bit_length() - 1

    # Every chunk with what lies around it, chunk after chunk.
    start = np.arange(chunks) * CHUNK
    end = np.minimum(start + CHUNK, total)
    first, past = np.maximum(start - radius, 0), np.minimum(end + radius, total)
    chunk = np.repeat(np.arange(chunks), past - first)
    work = every[_index_within(chunk) + first[chunk]]
    left = end - start
    done: list[tuple[I64, NDArray[Any]]] = []
    for round_number in range(rounds + 9):
        local = _index_within(chunk) - (start - first)[chunk]
        own = (local >= 0) & (local < left[chunk])
        searching = (left > goal) & (round_number < rounds)
        active = (searching | (left > halved))[chunk]
        done.append((chunk[own & ~active], work[own & ~active]))
        work, chunk, local, own = work[active], chunk[active], local[active], own[active]
        if not len(work):
            break
        offset = np.where(local % 2 == 0, 1, -1)
        offset[local + offset >= left[chunk]] = 0
        limit = height_limit(int(left[0]) if last else total)
        nearest = _nearest(work, chunk, local // 2, limit, radius)
        offset = np.where(searching[chunk], nearest, offset)
        offset[~own] = 0
        offset[~own[np.arange(len(work)) + offset]] = 0
        stays = _merge(work, offset, children, bounds, zero_parent)
        left -= np.bincount(chunk[~stays], minlength=chunks)
        work, chunk = work[stays], chunk[stays]

    order = np.argsort(np.concatenate([c for c, _ in done]), kind="stable")
    chunk = np.concatenate([c for c, _ in done])[order]
    next_counts[0] = chunks
    next_counts[1 : 1 + chunks] = left
    next_clusters[chunk * CHUNK + _index_within(chunk)] = np.concatenate([w for _, w in done])[
        order
    ]
    if last:
        _move_root(total, next_clusters[0], children, bounds, zero_parent)


def height_limit(count: int) -> int:
    """Levels that a cluster must be below to merge, with `count` clusters left."""
    return MAX_DEPTH - max(count - 1, 0).bit_length()


def _index_within(chunk: I64) -> I64:
    """[n] places from the first of each run of equal, ascending numbers."""
    return np.arange(len(chunk)) - np.searchsorted(chunk, chunk)


def _move_root(total: int, cluster: Any, children: I32, bounds: F32, zero_parent: U32) -> None:
    nodes, boxes = children.reshape(-1, 2), bounds.reshape(-1, 6)
    root = int(cluster["link"])
    if total == 0:
        nodes[0] = EMPTY
        boxes[0, :3], boxes[0, 3:] = LARGEST, -LARGEST
    elif total == 1 and root < 0:
        nodes[0] = root, EMPTY
        boxes[0, :3], boxes[0, 3:] = cluster["low"], cluster["high"]
    elif total > 1 and root > 0:
        nodes[[0, root]], boxes[[0, root]] = nodes[[root, 0]], boxes[[root, 0]]
        parent = int(zero_parent[0])
        slots = nodes[0 if parent == root else parent]
        slots[slots == 0] = root


def wgsl() -> str:
    """The records and constants for shaders."""
    constants = {
        "CHUNK": f"u32 = {CHUNK}u",
        "ROUNDS": f"u32 = {ROUNDS}u",
        "LAST_ROUNDS": f"u32 = {LAST_ROUNDS}u",
        "HEIGHT_BITS": f"u32 = {HEIGHT_BITS}u",
        "MAX_DEPTH": f"u32 = {MAX_DEPTH}u",
        "LONGEST_SIDE": "f32 = 1e18",
        "BLOCKED": "f32 = 3e38",
    }
    lines = [f"const {name}: {value};" for name, value in constants.items()]
    records = [r.wgsl() for r in (PLOC_PARAMETERS, CLUSTER)]
    return "\n".join(["// Generated from bvh/gpu/ploc_stages.py.", *lines, *records])
