"""Which traversal kernel an adapter gets unless something else is asked for: the one place that
says so.

On a GPU the lanes of a subgroup share one program counter in hardware, and a loop with an `if` for
boxes and one for leaves keeps them together. A CPU driver runs a subgroup as vectors under a mask:
both sides of such an `if` are executed in every round in which the lanes disagree, and the loop's
variables are blended again behind each. With a loop of its own for boxes, lanes that have come to a
leaf wait for the others, and the long body of leaves and instances is executed far less often.

Neither changes which nodes a ray visits, in which order, or what it hits.
"""

from dataclasses import dataclass

from engine.gpu.device import AdapterInfo


@dataclass(frozen=True, slots=True)
class DefaultKernel:
    """`two_loops`: an inner loop for boxes, then one leaf or instance (while-while), instead of one
    loop. Why, and the records in benchmarks/records that say so."""

    two_loops: bool
    measured: str
    records: tuple[str, ...]

    @property
    def reason(self) -> str:
        return f"{self.measured}: {', '.join(self.records)}"

    @property
    def loops(self) -> str:
        return "two" if self.two_loops else "one"


CPU = DefaultKernel(
    True,
    "1.28 to 1.85 times as fast on llvmpipe",
    ("tune-hall-llvmpipe", "tune-kitchen-frame-llvmpipe"),
)
GPU = DefaultKernel(False, "two loops take 3 to 16% longer on an H200", ("choices-kitchen-h200",))


def default_kernel(adapter: AdapterInfo) -> DefaultKernel:
    """By what kind of machine it is: a driver that runs on the CPU, or a GPU."""
    return CPU if adapter.is_cpu else GPU
