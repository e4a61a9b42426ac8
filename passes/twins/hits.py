"""Hits of some rays of a queue, in the names of `bvh.oracle.Trace`."""

from dataclasses import dataclass
from typing import Any

from bvh.oracle import Trace
from bvh.rays import MISS_ID
from passes.twins.wgsl_functions import F32, U32, Flags

NAMES = ("t", "u", "v", "object", "primitive", "instance")


@dataclass(frozen=True, slots=True)
class Hits:
    t: F32
    u: F32
    v: F32
    object: U32
    primitive: U32
    instance: U32

    @property
    def hit(self) -> Flags:
        return self.object != MISS_ID


def hits_of(trace: Trace, rows: Any) -> Hits:
    """Of some of the rays."""
    return Hits(*(getattr(trace, name)[rows] for name in NAMES))


def hits_in(candidates: Any) -> Hits:
    """What CANDIDATE records say."""
    return Hits(*(candidates[name] for name in NAMES))
