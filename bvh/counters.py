"""What traversal counts, named once for the kernels, the oracle and the reports.

A counter's place in this list is its index in the `counters` buffer of counted pipelines.
Definitions:

* `rays`: rays traced; `hits`: of them, those with an accepted hit (shadow rays: occluded).
* `nodes`: box nodes fetched, those of the TLAS included.
* `box_tests`: child slots with a child; `box_hits`: of them, those that the ray enters.
* `triangle_tests`, `triangle_hits`: triangles tested; of them, those hit inside (t_min, t_max).
* `instance_hits`: instance nodes entered (the mask let the ray in).
* `any_hits`: candidates on non-opaque triangles handed to the alpha test.
* `stack_max`: the most stack entries in use at once (a maximum, not a sum).
* `overflows`: rays that ended early (stack, step limit, unknown node): the run is then invalid.
* `nodes_hit`: nodes spent by rays that hit.
"""

COUNTERS = (
    "rays",
    "hits",
    "nodes",
    "box_tests",
    "box_hits",
    "triangle_tests",
    "triangle_hits",
    "instance_hits",
    "any_hits",
    "stack_max",
    "overflows",
    "nodes_hit",
)
# Spent inside one object's BLAS; slot 0 of the table is the TLAS, slot 1 + i instance i.
OBJECT_COUNTERS = ("nodes", "triangle_tests", "any_hits")


def buffer_words(instance_count: int) -> int:
    """Words of a `counters` buffer: the totals, then a row for the TLAS and each instance."""
    return len(COUNTERS) + len(OBJECT_COUNTERS) * (1 + instance_count)


def wgsl() -> str:
    """Indices as `COUNT_<NAME>` and `OBJECT_<NAME>`, sizes as COUNTER_FIELDS, OBJECT_FIELDS."""
    lines = [f"const COUNTER_FIELDS: u32 = {len(COUNTERS)}u;"]
    lines += [f"const COUNT_{name.upper()}: u32 = {i}u;" for i, name in enumerate(COUNTERS)]
    lines += [f"const OBJECT_FIELDS: u32 = {len(OBJECT_COUNTERS)}u;"]
    lines += [f"const OBJECT_{n.upper()}: u32 = {i}u;" for i, n in enumerate(OBJECT_COUNTERS)]
    return "\n".join(lines) + "\n"
