"""Whether the same rays hit the same in two frames, in terms that no structure changes: the
scene's object, its triangle, and the distance.

Over one structure all kernels have to agree on every ray. Over another, whose triangles' corners
are placed, ordered and so rounded anew, distances move by a part of the scene's size, and rays that
graze an edge may answer differently: a few, and they are counted.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bvh.rays import MISS_ID
from passes.rays import RayType

T_TOLERANCE = 1e-4  # of distances, relative, as of `treeline bench trace`
ROUNDING = 1e-6  # of distances by the scene's diagonal, on top: of corners that are placed anew
# Share of a type's rays over another structure, or one ray where they are few; over the same one
# none may.
MOST_DIFFERENT = 1e-4
MOST_TIES = 1e-2  # rays that meet another triangle just as far away


@dataclass(frozen=True, slots=True)
class Found:
    """What the rays of a type found. `records` of the ray type; `results` in their order;
    `originals` [prepared objects] says which of the scene's objects each is."""

    records: NDArray[Any]
    results: NDArray[Any]
    originals: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Agreement:
    """Of `rays` of a type: `different` ones hit something else, `ties` another triangle at an equal
    distance: at an edge between two, or where one lies on the other."""

    rays: int
    different: int
    ties: int = 0

    def refusal(self, name: str, *, same_structure: bool) -> str | None:
        """Why rays of this name do not hit the same; None where they do."""
        most = 0 if same_structure else max(1, MOST_DIFFERENT * self.rays)
        if self.different > most:
            return f"{self.different:,} of {self.rays:,} {name} rays hit something else"
        if self.ties > MOST_TIES * self.rays:
            return f"{self.ties:,} of {self.rays:,} {name} rays hit another triangle as far away"
        return None

    def facts(self) -> dict[str, int]:
        return asdict(self)


def agree(ray: RayType, found: Found, expected: Found, diagonal: float) -> Agreement:
    """Rays are the same by their slots; one that is in one frame only is different. `diagonal` of
    the scene, in metres."""
    slots, expected_slots = found.records[ray.slot_field], expected.records[ray.slot_field]
    most = max(slots.max(initial=0), expected_slots.max(initial=0))
    place = np.full(int(most) + 1, -1, np.int64)
    place[expected_slots] = np.arange(len(expected_slots))
    other = place[slots]
    both = other >= 0
    alone = len(slots) + len(expected_slots) - 2 * int(both.sum())
    rays = alone + int(both.sum())
    a, b = found.results[both], expected.results[other[both]]
    if ray.any_hit:
        return Agreement(rays, alone + int((a != b).sum()))
    hit, there = a["object"] != MISS_ID, b["object"] != MISS_ID
    different = alone + int((hit != there).sum())
    a, b = a[hit & there], b[hit & there]
    apart = np.abs(a["t"].astype(np.float64) - b["t"])
    as_far = apart <= T_TOLERANCE * np.abs(b["t"].astype(np.float64)) + ROUNDING * diagonal
    same = found.originals[a["object"]] == expected.originals[b["object"]]
    same &= a["primitive"] == b["primitive"]
    return Agreement(rays, different + int((~as_far).sum()), int((as_far & ~same).sum()))


def agreement_text(hits: Mapping[str, Agreement]) -> str:
    """In words, of all ray types."""
    rays, different = (
        sum(getattr(h, name) for h in hits.values()) for name in ("rays", "different")
    )
    if not different:
        return f"all {rays:,} rays hit the same"
    return f"equal but for {different:,} of {rays:,} rays, by rounding of placed corners"
