"""The binary radix tree over sorted keys: every inner node finds its own range and its split.

Source: Karras 2012, "Maximizing parallelism in the construction of BVHs, octrees, and k-d trees",
section 4. One dispatch; a node reads sorted keys only and nothing that another node writes, so
that nothing depends on the order of workgroups. Equal keys are told apart by their place, which
halves them evenly.

A tree may come out too deep for a traversal's stack. Its depth is known on the GPU only, so a
second attempt is always encoded and does nothing where the first was fine. It looks at fewer
leading bits: with c bits of code compared, n leaves make at most c + ceil(log2 n) levels.

`children` are as in `bvh.tree.Tree`; `ranges` are each node's first and last leaf, counted in
sorted order; `parents` are as in `bvh.gpu.tree_order`.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bvh.gpu.tree_order_records import NO_PARENT, RIGHT_CHILD
from bvh.tree import EMPTY

U32 = NDArray[np.uint32]
I32 = NDArray[np.int32]
I64 = NDArray[np.int64]


def compared_bits(parameters: NDArray[Any], kept: int) -> int:
    """Leading bits of a key that this attempt looks at: all of them, or so few that `kept` leaves
    stay within `max_depth` levels whatever they are."""
    p = parameters[0]
    key_bits = 32 * int(p["key_words"])
    if not p["attempt"]:
        return key_bits
    leading_zeros = key_bits - 3 * int(p["grid_bits"]) - int(p["size_bits"])
    by_place = max(0, kept - 1).bit_length()
    return leading_zeros + max(0, int(p["max_depth"]) - by_place)


def needs_attempt(parameters: NDArray[Any], deepest: U32) -> bool:
    """False for a second attempt where the first one's tree is shallow enough. `deepest` counts
    steps from the root, one less than levels."""
    return not parameters["attempt"][0] or int(deepest[0]) >= int(parameters["max_depth"][0])


def _leading_zeros(value: NDArray[np.uint64], bits: int) -> I64:
    """Of unsigned words of `bits` (up to 64), exactly."""
    high = (value >> np.uint64(32)).astype(np.float64)
    low = (value & np.uint64(0xFFFFFFFF)).astype(np.float64)
    length = np.where(high > 0, 32 + np.frexp(high)[1], np.frexp(low)[1])
    return np.asarray(bits - length, np.int64)


def hierarchy(
    parameters: NDArray[Any],
    state: NDArray[Any],
    keys: U32,
    payload: U32,
    deepest: U32,
    children: I32,
    ranges: U32,
    parents: U32,
) -> None:
    """Twin of hierarchy.wgsl: max(kept - 1, 1) nodes, the root first. A first attempt clears
    `deepest` for this build."""
    if not parameters["attempt"][0]:
        deepest[:2] = 0
    kept, words = int(state["kept"][0]), int(parameters["key_words"][0])
    limit = min(compared_bits(parameters, kept), 32 * words)
    if not needs_attempt(parameters, deepest):
        return
    parents[0] = NO_PARENT
    if kept < 2:
        children[:2] = (~int(payload[0]) if kept else EMPTY, EMPTY)
        ranges[:2] = 0
        return
    code = keys[: kept * words].reshape(kept, words).astype(np.uint64)
    code = code[:, 0] | code[:, 1] << np.uint64(32) if words == 2 else code[:, 0]

    def prefix(i: I64, j: I64) -> I64:
        """Bits that two leaves share; -1 where `j` is none."""
        inside = (j >= 0) & (j < kept)
        at = np.where(inside, j, 0)
        shared = _leading_zeros(code[i] ^ code[at], 32 * words)
        by_place = limit + _leading_zeros((i ^ at).astype(np.uint64), 32)
        return np.where(inside, np.where(shared >= limit, by_place, shared), -1)

    node = np.arange(kept - 1, dtype=np.int64)
    step = np.where(prefix(node, node + 1) > prefix(node, node - 1), 1, -1)
    outside = prefix(node, node - step)
    reach = np.full(kept - 1, 2, np.int64)
    growing = node
    while len(growing):
        far = growing + reach[growing] * step[growing]
        growing = growing[prefix(growing, far) > outside[growing]]
        reach[growing] *= 2
    length = np.zeros(kept - 1, np.int64)
    stride = reach // 2
    while len(open_nodes := np.flatnonzero(stride)):
        far = open_nodes + (length[open_nodes] + stride[open_nodes]) * step[open_nodes]
        inside = open_nodes[prefix(open_nodes, far) > outside[open_nodes]]
        length[inside] += stride[inside]
        stride //= 2
    end = node + length * step
    shared = prefix(node, end)
    split = np.zeros(kept - 1, np.int64)
    stride = length.copy()
    open_nodes = node
    while len(open_nodes):
        stride[open_nodes] = (stride[open_nodes] + 1) // 2
        far = open_nodes + (split[open_nodes] + stride[open_nodes]) * step[open_nodes]
        beyond = open_nodes[prefix(open_nodes, far) > shared[open_nodes]]
        split[beyond] += stride[beyond]
        open_nodes = open_nodes[stride[open_nodes] > 1]
    cut = node + split * step + np.minimum(step, 0)
    first, last = np.minimum(node, end), np.maximum(node, end)
    leaf = ~payload[:kept].astype(np.int64)
    out = children[: 2 * (kept - 1)].reshape(-1, 2)
    out[:, 0] = np.where(first == cut, leaf[cut], cut)
    out[:, 1] = np.where(last == cut + 1, leaf[cut + 1], cut + 1)
    ranges[: 2 * (kept - 1)].reshape(-1, 2)[:] = np.stack([first, last], axis=1)
    for side, bit in ((0, 0), (1, RIGHT_CHILD)):
        inner = out[:, side] >= 0
        parents[out[inner, side]] = node[inner] | bit
