"""Why two tracers of the same triangles differ on a ray: each disagreement listed with its reason.

Reasons are checked in float64 against the triangles themselves, not against either tracer. Lengths
are compared in roundings: one is 2^-24 of the coordinates that meet in the computation (origin,
distance travelled, triangle), divided by the cosine between ray and normal where it slides the
point along the plane; for t also times how thin the triangle is (edge lengths over area), since
edge functions and cross products lose that. Within `ALLOWED` of them either answer is right:

shared edge   both hit at the same t, on an edge
overlap       both hit at the same t, inside: two surfaces in one place
edge          one hits on the edge of a triangle that the other passes by
limit         one hits at t_min or t_max
unexplained   none of these
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bvh.rays import MISS_ID, Rays

F64 = NDArray[np.float64]
U32 = NDArray[np.uint32]
# (object [n], primitive [n]) -> world-space corners [n, 3, 3]
Triangles = Callable[[U32, U32], F64]

ROUNDING = 2.0**-24
ALLOWED = 16.0
REASONS = ("shared edge", "overlap", "edge", "limit", "unexplained")


@dataclass(frozen=True, slots=True)
class Disagreement:
    """`first` and `second` are (object, primitive, t), None for a miss. `edge_roundings` is the
    distance of the decisive hit from its triangle's nearest edge, negative outside."""

    ray: int
    first: tuple[int, int, float] | None
    second: tuple[int, int, float] | None
    reason: str
    edge_roundings: float

    def __str__(self) -> str:
        def name(hit: tuple[int, int, float] | None) -> str:
            return "miss" if hit is None else f"object {hit[0]} triangle {hit[1]} t {hit[2]:.7g}"

        return f"ray {self.ray}: {name(self.first)} | {name(self.second)}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Contact:
    """Where rays meet the planes of triangles, `[n]`; lengths of t in units of the direction."""

    t: F64
    edge_roundings: F64
    t_slack: F64  # what ALLOWED roundings do to t
    hit: NDArray[np.bool_]


def find(
    rays: Rays, first: NDArray[Any], second: NDArray[Any], triangles: Triangles, any_hit: bool
) -> list[Disagreement]:
    """Every disagreement of two tracers' hits (t, object, primitive; `[n]`), with its reason.

    Any-hit results may stop at different triangles: there only hit against miss counts. Hits of
    one triangle whose t differ by more than rounding are disagreements too.
    """
    hit_a, hit_b = first["object"] != MISS_ID, second["object"] != MISS_ID
    other = (first["object"] != second["object"]) | (first["primitive"] != second["primitive"])
    suspect = hit_a != hit_b if any_hit else other | (first["t"] != second["t"]) & hit_a
    at = np.flatnonzero(suspect)
    if not at.size:
        return []
    a, b = meet(rays[at], first[at], triangles), meet(rays[at], second[at], triangles)
    same_t = np.abs(a.t - b.t) <= a.t_slack + b.t_slack
    reported = np.abs(first["t"][at].astype(np.float64) - second["t"][at]) <= a.t_slack + b.t_slack
    found = []
    for i, ray in enumerate(at.tolist()):
        if not other[ray] and not any_hit and reported[i]:
            continue
        # The nearer hit decides: the other tracer should have found it.
        a_decides = bool(a.hit[i] and not (b.hit[i] and b.t[i] < a.t[i]))
        reason, roundings = _reason(rays[ray], a, b, i, a_decides, bool(same_t[i]), other[ray])
        found.append(
            Disagreement(ray, _hit(first[ray]), _hit(second[ray]), reason, round(roundings, 3))
        )
    return found


def _reason(
    ray: Any, a: Contact, b: Contact, i: int, a_decides: bool, same_t: bool, other: bool
) -> tuple[str, float]:
    decisive, rival = (a, b) if a_decides else (b, a)
    roundings = float(decisive.edge_roundings[i])
    both = bool(a.hit[i] and b.hit[i])
    tie = both and same_t and bool(other)
    on_edge = abs(roundings) <= ALLOWED
    # A tracer that loses the nearer triangle may also win at the edge of the farther one.
    if tie and abs(float(rival.edge_roundings[i])) < abs(roundings):
        roundings = float(rival.edge_roundings[i])
        on_edge = abs(roundings) <= ALLOWED
    if tie:
        return ("shared edge" if on_edge else "overlap"), roundings
    if on_edge and other:
        return "edge", roundings
    ends = (float(ray["t_min"]), float(ray["t_max"]))
    if any(abs(float(decisive.t[i]) - end) <= float(decisive.t_slack[i]) for end in ends):
        return "limit", roundings
    return "unexplained", roundings


def _hit(record: Any) -> tuple[int, int, float] | None:
    if record["object"] == MISS_ID:
        return None
    return int(record["object"]), int(record["primitive"]), float(record["t"])


def meet(rays: Rays, hits: NDArray[Any], triangles: Triangles) -> Contact:
    """Each ray against the plane and the edges of the triangle that its hit names, in float64."""
    hit = hits["object"] != MISS_ID
    corners = np.zeros((len(hits), 3, 3))
    corners[:] = ((0, 0, 0), (1, 0, 0), (0, 1, 0))
    corners[hit] = triangles(hits["object"][hit], hits["primitive"][hit])
    origin, direction = (rays[name].astype(np.float64) for name in ("origin", "direction"))
    a, b, c = corners.transpose(1, 0, 2)
    normal = np.cross(b - a, c - a)
    area = np.linalg.norm(normal, axis=1)
    speed = np.linalg.norm(direction, axis=1)
    with np.errstate(all="ignore"):
        along = (normal * direction).sum(1)
        t = (normal * (a - origin)).sum(1) / along
        cosine = np.abs(along) / (area * speed)
        point = origin + t[:, None] * direction
        distances = []
        lengths = []
        for first, second in ((a, b), (b, c), (c, a)):
            edge = second - first
            lengths.append(np.linalg.norm(edge, axis=1))
            inward = np.cross(normal, edge)
            inward /= np.linalg.norm(inward, axis=1)[:, None]
            distances.append((inward * (point - first)).sum(1))
        nearest = np.min(distances, axis=0)
        size = np.linalg.norm(origin, axis=1) + np.abs(t) * speed
        unit = ROUNDING * (size + np.abs(corners).max((1, 2)))
        roundings = nearest * cosine / unit
        _, middle, longest = np.sort(lengths, axis=0)
        slack = ALLOWED * unit / (cosine * speed) * np.maximum(1, middle * longest / area)
    # A ray inside the plane, or a triangle without area, may answer anything.
    flat = ~np.isfinite(roundings)
    return Contact(t, np.where(flat, 0.0, roundings), np.where(flat, np.inf, slack), hit)
