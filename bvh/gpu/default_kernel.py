"""Which traversal kernel an adapter gets unless something else is asked for: the one place that
says so.

On a GPU a branch that no lane of a subgroup takes costs nothing, and one loop with an `if` for
boxes, leaves and instances is fastest. A CPU driver runs a subgroup as vectors under a mask and
executes both sides of every `if`, however few lanes want one: only the end of a loop is a branch.
With a loop of its own for boxes (two loops) the long body of leaves and instances is executed far
less often; with a third around both, for alpha tests, these are executed where lanes have a
candidate, not at every leaf.

None of this changes which nodes a ray visits, in which order, what is counted, or what it hits.
"""

from dataclasses import dataclass

from engine.gpu.device import AdapterInfo

LOOPS = ("one", "two", "three")


@dataclass(frozen=True, slots=True)
class DefaultKernel:
    """`loops` of LOOPS: one; an inner one for boxes; and an outer one for alpha tests. Why, and the
    records in benchmarks/records that say so."""

    loops: str
    measured: str
    records: tuple[str, ...]

    @property
    def reason(self) -> str:
        return f"{self.measured}: {', '.join(self.records)}"


CPU = DefaultKernel(
    "three",
    "2.3 times as fast as one on llvmpipe, in the hall and the kitchen frame; two 1.5",
    ("kernel-loops-hall-llvmpipe", "kernel-loops-kitchen-frame-llvmpipe"),
)
GPU = DefaultKernel(
    "one",
    "two take up to 16% longer on an H200, three 19% to 85%",
    ("choices-kitchen-h200", "kernel-loops-hall-h200"),
)


def default_kernel(adapter: AdapterInfo) -> DefaultKernel:
    """By what kind of machine it is: a driver that runs on the CPU, or a GPU."""
    return CPU if adapter.is_cpu else GPU
