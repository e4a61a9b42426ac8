"""How counts are spread over a counted frame's rays: percentiles and a histogram of each count that
rays keep (`passes.slot_counts`), and how many rays there are of each bounce.

Every ray visits a node, so that slots without nodes sent no ray and are left out.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from passes.rays import BOUNCES, RAY_TYPES, RayType
from passes.slot_counts import SLOT_COUNTS

U32 = NDArray[np.uint32]

PERCENTS = (50, 95, 99)


@dataclass(frozen=True, slots=True)
class Spread:
    """Of one count over rays. `percentiles` in the order of PERCENTS, with the linear interpolation
    of `np.percentile`. `octaves`: rays whose count is 0, 1, 2 to 3, 4 to 7 and so on, each twice as
    wide as the one before, up to the largest."""

    mean: float
    percentiles: tuple[float, ...]
    largest: int
    octaves: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RaySpread:
    """One ray type: a Spread for each of SLOT_COUNTS, none without rays. `bounces[i]` rays are the
    (i + 1)th of their path: 1 for rays that start at what the primary ray sees."""

    counts: dict[str, Spread]
    bounces: tuple[int, ...]

    @property
    def rays(self) -> int:
        return sum(self.bounces)

    @property
    def mean_bounce(self) -> float | None:
        """None without rays."""
        if not self.rays:
            return None
        return sum((i + 1) * count for i, count in enumerate(self.bounces)) / self.rays


def octave_bounds(index: int) -> tuple[int, int]:
    """The smallest and the largest count of an octave."""
    return (0, 0) if index == 0 else (1 << (index - 1), (1 << index) - 1)


def spread(values: U32) -> Spread:
    """Of one count, [rays], of one ray or more."""
    exponents = np.frexp(values.astype(np.float64))[1]
    return Spread(
        mean=float(values.mean()),
        percentiles=tuple(np.percentile(values, PERCENTS).tolist()),
        largest=int(values.max()),
        octaves=tuple(np.bincount(exponents).tolist()),
    )


def slot_bounce(ray: RayType, slot: int) -> int:
    """Of the rays of a slot of a pixel: 1 from what the primary ray sees, else one more than those
    that they start at the hits of."""
    before = ray.starts_at[slot]
    for other in (*RAY_TYPES, *BOUNCES):
        if other.name == before:
            return 1 + max(slot_bounce(other, i) for i in range(other.slots_per_pixel))
    return 1


def ray_spread(ray: RayType, planes: Mapping[str, U32]) -> RaySpread:
    """Out of a type's planes [slots], by the names of SLOT_COUNTS."""
    sent = planes["nodes"] > 0
    counts = {name: spread(planes[name][sent]) for name in SLOT_COUNTS} if sent.any() else {}
    by_kind = sent.reshape(-1, ray.slots_per_pixel).sum(axis=0)
    bounces = np.bincount(
        [slot_bounce(ray, kind) - 1 for kind in range(ray.slots_per_pixel)], weights=by_kind
    )
    return RaySpread(counts, tuple(bounces.astype(int).tolist()))


def read_ray_spreads(data: Any, rays: Sequence[RayType]) -> dict[str, RaySpread]:
    """Ray type -> of the last frame of a `passes.frame_data.FrameData` that counts; waits."""
    return {
        ray.name: ray_spread(ray, {name: data.read_slot_counts(ray, name) for name in SLOT_COUNTS})
        for ray in rays
    }
