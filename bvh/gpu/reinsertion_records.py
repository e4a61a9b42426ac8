"""Records of the reinsertion on the GPU and how its buffers are laid out.

A node is named as in `bvh.tree.Tree`: an inner node by its index, the leaf of primitive p by ~p.
Buffers with a word for every node hold inner node i at i and the leaf of p at `nodes + p`, with
`nodes` that of the capacity.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bvh.tree import MAX_DEPTH
from engine.gpu.structs import Field, Struct

I32 = NDArray[np.int32]
I64 = NDArray[np.int64]

# Gains below this fraction of the root's area are rounding noise.
LEAST_GAIN = 1e-7
BINS = 2048  # of positive float32, by their first 11 bits: eight an octave
BIN_SHIFT = 20
STACK = MAX_DEPTH + 2  # a search leaves one node behind a level
SUM_TILE = 2048  # areas a workgroup sums
# Levels that the refit sorts changed nodes into, and one more for what lies deeper: a tree with
# nodes there is refused.
LEVEL_SLOTS = MAX_DEPTH + 1

# Words of the buffer `tally`.
CANDIDATES = 0
MOVES = 1
LEAST_BIN = 2  # candidates' parents have areas from this bin up
LEVELS = 4  # changed nodes a level
STARTS = LEVELS + LEVEL_SLOTS  # where each level starts in `changed`, and the end of the last
CURSORS = STARTS + LEVEL_SLOTS + 1
TALLY_WORDS = CURSORS + LEVEL_SLOTS

# `Progress.verdict`
NO_VERDICT = 0
ACCEPTED = 1
REJECTED = 2

PARAMETERS = Struct(
    "ReinsertionParameters",
    Field("nodes", "u32"),  # inner nodes that the buffers have room for
    Field("round", "u32"),  # from 1; 0 is the refit of the whole tree before the first
    Field("batch", "u32"),
    Field("stride", "u32"),
    Field("steps", "u32"),
    Field("max_depth", "u32"),
    Field("level", "u32"),  # that a refit dispatch does
    Field("zero", "u32"),  # 0, unknown to the compiler
    Field("least_progress", "f32"),
    Field("reserved_0", "u32"),
    Field("reserved_1", "u32"),
    Field("reserved_2", "u32"),
)
PROGRESS = Struct(
    "Progress",
    Field("scale", "f32"),  # power of two that takes the root's largest side into [1, 2)
    Field("least_gain", "f32"),
    Field("first_cost", "f32"),  # summed area of inner nodes, scaled, before the first round
    Field("cost", "f32"),  # now
    Field("done", "u32"),
    Field("verdict", "u32"),  # on the last round
    Field("strikes", "u32"),  # rounds on end that gained too little
    Field("changed", "u32"),  # nodes that the last round changed
    Field("rounds", "u32"),  # accepted
    Field("moves", "u32"),  # of accepted rounds
)

# Bytes of each buffer: a node of the capacity, and (inner and leaf) in all.
INNER_BYTES = {"heights": 4, "marks": 4, "changed": 4, "kept_links": 16, "kept_bounds": 24}
NODE_BYTES = {"parents": 4, "locks": 8, "moving": 4, "candidates": 4, "moves": 8}
FIXED_BYTES = {"tally": 4 * TALLY_WORDS, "histogram": 4 * BINS, "progress": PROGRESS.size}


def place(node: I32, nodes: int) -> I64:
    """Where a node's word lies in buffers that have one for every node."""
    return np.where(node >= 0, node, nodes + ~node).astype(np.int64)


def buffer_bytes(capacity: int) -> dict[str, int]:
    """Sizes of the scratch for trees of up to `capacity` leaves."""
    nodes = max(capacity - 1, 1)
    return {
        **{name: size * nodes for name, size in INNER_BYTES.items()},
        **{name: size * (nodes + capacity) for name, size in NODE_BYTES.items()},
        **FIXED_BYTES,
        "partials": 4 * -(-nodes // SUM_TILE),
    }


def wgsl() -> str:
    """The records and constants for shaders."""
    constants = {
        "BINS": BINS,
        "BIN_SHIFT": BIN_SHIFT,
        "STACK": STACK,
        "LEVEL_SLOTS": LEVEL_SLOTS,
        "CANDIDATES": CANDIDATES,
        "MOVES": MOVES,
        "LEAST_BIN": LEAST_BIN,
        "LEVELS": LEVELS,
        "STARTS": STARTS,
        "CURSORS": CURSORS,
        "NO_VERDICT": NO_VERDICT,
        "ACCEPTED": ACCEPTED,
        "REJECTED": REJECTED,
    }
    lines = [f"const {name} = {value}u;" for name, value in constants.items()]
    lines.append(f"const LEAST_GAIN = {LEAST_GAIN};")
    records = [record.wgsl() for record in (PARAMETERS, PROGRESS)]
    return "\n".join(["// Generated from bvh/gpu/reinsertion_records.py.", *lines, *records])


def make_parameters(**fields: Any) -> NDArray[Any]:
    """One PARAMETERS record; fields not given are 0."""
    record = np.zeros(1, PARAMETERS.dtype)
    for name, value in fields.items():
        record[name] = value
    return record
