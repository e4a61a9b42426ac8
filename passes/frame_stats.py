"""What one frame did: times by pass, counts by ray type, costs by object.

Times are milliseconds from timestamps (NaN where the adapter has none). Fields that only counted
pipelines know are None in a timed frame.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from bvh.gpu.trace_rays import FAILURES
from passes.frame_uniforms import FrameInputs

Stage = Callable[[], Mapping[str, Any]]  # gives fields of `FrameStats`


@dataclass(frozen=True, slots=True, kw_only=True)
class RayStats:
    """One ray type in one frame; counter definitions are in bvh/counters.py. Sums over the
    frame's rays, except `stack_max` and the percentiles of nodes a ray."""

    rays: int
    dropped: int
    payload_bytes: int
    replaced: int  # directions below the geometric horizon that were mirrored up
    lost: int  # samples that a rough lobe sent below the surface: no ray
    failed: int  # bits of bvh.gpu.trace_rays.FAILURES
    # Pixels that none of the four nearest rays stands for: others do, or none at all.
    widened: int = 0
    unlike: int = 0
    candidates_dropped: int = 0  # rays that lost the alpha test that they waited for
    hits: int | None = None
    misses: int | None = None
    nodes: int | None = None
    nodes_hit: int | None = None
    nodes_miss: int | None = None
    nodes_p50: float | None = None
    nodes_p95: float | None = None
    nodes_p99: float | None = None
    nodes_max: int | None = None
    nodes_octaves: tuple[int, ...] | None = None  # rays with 0, 1, 2 to 3, 4 to 7... nodes
    box_tests: int | None = None
    box_hits: int | None = None
    triangle_tests: int | None = None
    triangle_hits: int | None = None
    instance_hits: int | None = None
    any_hits: int | None = None
    rejected: int | None = None
    alpha_samples: int | None = None
    texture_fetches: int | None = None
    stack_max: int | None = None
    overflows: int | None = None
    nodes_fp16: int | None = None
    leaf_blocks: int | None = None
    subgroup_steps: int | None = None
    subgroup_nodes: int | None = None
    subgroup_lanes: int | None = None


@dataclass(frozen=True, slots=True)
class FrameStats:
    """`passes` in frame order. `objects` maps (object name, ray type) to what its rays did
    there, by bvh.counters.OBJECT_COUNTERS; the name "(TLAS)" holds what the top level took. Over
    both they add up to the ray type's. `valid` is False
    when a queue dropped records, a traversal failed or a tree had no room to be built anew: the
    picture must not be trusted. Those of `later` are worked out when somebody looks."""

    passes: dict[str, float]
    frame_total_ms: float
    frame_gaps_ms: float
    cpu_ms: float
    rays: dict[str, RayStats]
    objects: dict[tuple[str, str], dict[str, int]]
    dropped: int
    valid: bool
    counted: bool
    upload_bytes: int
    readback_bytes: int
    forced_waits: int
    timing_source: str
    failures: tuple[str, ...] = ()
    found: dict[str, int] | None = None  # of passes.screen_counts.COUNT_NAMES; counted
    reused: tuple[str, ...] = ()  # passes left out: what they wrote in an earlier frame stands
    begins: tuple[float, ...] = ()  # of the passes, from the first one's begin on
    history_lost: str = ""  # why it remembers no light, where it should
    inputs: FrameInputs | None = field(default=None, compare=False, repr=False)  # what it drew
    _stages: tuple[Stage, ...] = field(default=(), init=False, compare=False, repr=False)

    @classmethod
    def later(cls, *stages: Stage, **known: Any) -> "FrameStats":
        """Those whose fields `stages` give, all together but for the `known` ones. A stage is
        called once somebody asks for what neither is known nor came from a stage before it: of
        sixty frames a second few are looked into."""
        stats = object.__new__(cls)
        for name, value in {**known, "_stages": stages}.items():
            object.__setattr__(stats, name, value)
        return stats

    def __getattr__(self, name: str) -> Any:
        """Of a slot that is still empty."""
        stages = () if name == "_stages" else self._stages
        if not stages:
            raise AttributeError(f"frame statistics have no {name}")
        object.__setattr__(self, "_stages", stages[1:])
        for found, value in stages[0]().items():
            object.__setattr__(self, found, value)
        return getattr(self, name)

    @property
    def stack_overflow(self) -> bool:
        """Whether a larger traversal stack would mend the frame."""
        return FAILURES[1] in self.failures
