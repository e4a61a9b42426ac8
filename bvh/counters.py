"""What traversal counts, named once for the kernels, the oracle and the reports.

A counter's place in this list is its index in the `counters` buffer of counted pipelines.
Definitions:

* `rays`: rays traced; `hits`: of them, those with an accepted hit (shadow rays: occluded).
* `nodes`: box nodes fetched, those of the TLAS included.
* `box_tests`: child slots with a child; `box_hits`: of them, those that the ray enters.
* `triangle_tests`, `triangle_hits`: triangles tested; of them, the candidates: those hit inside
  (t_min, t_max).
* `instance_hits`: instance nodes entered (the mask let the ray in).
* `any_hits`: candidates on non-opaque triangles handed to the alpha test; `rejected`: of them,
  those that it refused; `alpha_samples`: textures that it sampled.
* `stack_max`: the most stack entries in use at once (a maximum, not a sum).
* `overflows`: rays that ended early (stack, step limit, unknown node): the run is then invalid.
* `nodes_hit`: nodes spent by rays that hit; `nodes_fp16`: nodes that are FP16 ones.
* `leaf_blocks`: blocks of triangles (or spheres) fetched.
* `subgroup_steps`: times that a subgroup fetched box nodes, one by each lane that was active: over
  these steps the active lanes add up to `nodes`. `subgroup_nodes`: different nodes in each step,
  summed. `subgroup_lanes`: the subgroup's size (a maximum, not a sum). All three are 0 where nobody
  asked for them, where the adapter has no subgroup operations, and in the oracle, which has no
  lanes.

The contract traversal, which has no step log, does not count what is from `nodes_fp16` on.

The buffer also charges an object with what rays did inside of it (OBJECT_COUNTERS). All instances
of an object share a row, so that neither the table nor what is read back grows with instances:

    totals              COUNTERS
    a row for the TLAS  OBJECT_COUNTERS
    a row an object     OBJECT_COUNTERS
    instance -> row     one word each, if they are told apart
    padding
    how many instances are told apart, and the word where their rows begin

All others share row 1, so that a buffer of zeros counts them as one object.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

U32 = NDArray[np.uint32]

# What happens inside one object's BLAS; sums over the rows are the totals of these names. Row 0 is
# the TLAS, row 1 + i object i.
OBJECT_COUNTERS = (
    "hits",
    "nodes",
    "box_tests",
    "box_hits",
    "triangle_tests",
    "triangle_hits",
    "instance_hits",
    "any_hits",
    "rejected",
    "alpha_samples",
)
COUNTERS = (
    "rays",
    *OBJECT_COUNTERS,
    "stack_max",
    "overflows",
    "nodes_hit",
    "nodes_fp16",
    "leaf_blocks",
    "subgroup_steps",
    "subgroup_nodes",
    "subgroup_lanes",
)


def table_words(objects: int) -> int:
    """Words of the totals and the rows: what a frame begins with as zeros, and reads back."""
    return len(COUNTERS) + len(OBJECT_COUNTERS) * (1 + objects)


def counter_words(rows: U32) -> U32:
    """A `counters` buffer whose instance i is charged to row `rows[i]` (1 + its object)."""
    first = table_words(int(rows.max(initial=1)))
    words = np.zeros(-(-(first + len(rows) + 2) // 4) * 4, np.uint32)
    words[first : first + len(rows)] = rows
    words[-2:] = len(rows), first
    return words


@dataclass(frozen=True, slots=True)
class CounterTable:
    """Views of a `counters` buffer: `totals` [COUNTERS], `objects` [1 + objects, OBJECT_COUNTERS]
    and `rows` [instances]."""

    totals: U32
    objects: U32
    rows: U32

    @classmethod
    def of(cls, words: U32) -> "CounterTable":
        """Of a whole buffer, as `counter_words` gives it."""
        count, first = (int(word) for word in words[-2:])
        rows = words[len(COUNTERS) : first].reshape(-1, len(OBJECT_COUNTERS))
        return cls(words[: len(COUNTERS)], rows, words[first : first + count])

    def charge(self, name: str, instances: U32, amounts: U32 | int = 1) -> None:
        """Adds `amounts` to a counter of the objects of `instances` [n]."""
        column = self.objects[:, OBJECT_COUNTERS.index(name)]
        np.add.at(column, self.rows[instances], np.asarray(amounts, np.uint32))


_FUNCTIONS = """
// The row of an instance's object; needs `counters: array<atomic<u32>>`, bound whole.
fn object_row(instance: u32) -> u32 {
    let end = arrayLength(&counters);
    if (instance >= atomicLoad(&counters[end - 2u])) { return 1u; }
    return atomicLoad(&counters[atomicLoad(&counters[end - 1u]) + instance]);
}

fn charge(row: u32, field: u32, amount: u32) {
    if (amount != 0u) {
        atomicAdd(&counters[COUNTER_FIELDS + row * OBJECT_FIELDS + field], amount);
    }
}
"""


def wgsl() -> str:
    """Indices as `COUNT_<NAME>` and `OBJECT_<NAME>`, sizes as COUNTER_FIELDS, OBJECT_FIELDS;
    `object_row` and `charge`."""
    lines = [f"const COUNTER_FIELDS: u32 = {len(COUNTERS)}u;"]
    lines += [f"const COUNT_{name.upper()}: u32 = {i}u;" for i, name in enumerate(COUNTERS)]
    lines += [f"const OBJECT_FIELDS: u32 = {len(OBJECT_COUNTERS)}u;"]
    lines += [f"const OBJECT_{n.upper()}: u32 = {i}u;" for i, n in enumerate(OBJECT_COUNTERS)]
    return "\n".join(lines) + _FUNCTIONS
