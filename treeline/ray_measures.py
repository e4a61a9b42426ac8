"""What reports and the viewer say of a ray type, declared once: `SUMS` are counts over all rays of
a frame, which are also told by ray, by pixel and by hit; `MEASURES` are all other numbers.

A new line of either tuple appears in report.json, .csv and .html, on the terminal if it says so,
and in the viewer's table.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from passes.bytes_read import bytes_read
from passes.frame_stats import RayStats
from passes.hit_table import SUBGROUP
from passes.ray_spread import RaySpread
from passes.rays import BOUNCES, RAY_TYPES

Number = int | float | None


@dataclass(frozen=True, slots=True)
class Measured:
    """One ray type in a frame. `stats` are the counted frame's (of a timed one, without counts),
    `spread` too, and `materials`, the different ones among the hits of SUBGROUP neighbouring rays;
    None where nobody counted."""

    name: str
    stats: RayStats
    pixels: int
    spread: RaySpread | None = None
    materials: float | None = None


@dataclass(frozen=True, slots=True)
class Sum:
    """A count over the rays of a frame. `field` names it in reports, and with `stem` (`field`, if
    there is none) in front of `_per_ray`, `_per_pixel`. On the terminal if `terminal` says so."""

    field: str
    label: str
    help: str = ""
    stem: str = ""
    run: str = "counted"
    terminal: bool = False
    total: Callable[[Measured], Number] | None = None

    def of(self, measured: Measured) -> Number:
        """Over the frame; None where nobody counted."""
        if self.total is not None:
            return self.total(measured)
        value: Number = getattr(measured.stats, self.field)
        return value


@dataclass(frozen=True, slots=True)
class Measure:
    """A number that has no sum. `format` is the viewer's, whose live table leaves out what takes to
    read all rays' counts or hits back."""

    field: str
    label: str
    of: Callable[[Measured], Number]
    help: str = ""
    unit: str = ""
    format: str = ",.2f"
    terminal: bool = False
    reads_back: bool = False


def share(count: Number, of: Number) -> float | None:
    """count / of; None where either does not exist or there is nothing to divide by."""
    return None if count is None or not of else float(count) / float(of)


def _rest(tests: str, hits: str) -> Callable[[Measured], Number]:
    def rest(m: Measured) -> Number:
        a, b = getattr(m.stats, tests), getattr(m.stats, hits)
        return None if a is None or b is None else a - b

    return rest


def _bytes(m: Measured) -> Number:
    types = [ray for ray in (*RAY_TYPES, *BOUNCES) if ray.name == m.name]
    return bytes_read(types[0], m.stats) if types else None


def active_lane_ratio(stats: RayStats) -> float | None:
    """Of the lanes of a subgroup, how many fetch a node when it fetches nodes: 1 where all rays
    take the same way, 1 / lanes where each goes alone. Lanes that have no ray do not."""
    if stats.subgroup_steps is None or stats.subgroup_lanes is None:
        return None
    return share(stats.nodes, stats.subgroup_steps * stats.subgroup_lanes)


def _of(name: str) -> Callable[[Measured], Number]:
    def of(m: Measured) -> Number:
        value: Number = getattr(m.stats, name)
        return value

    return of


SUMS: tuple[Sum, ...] = (
    Sum("hits", "hits", "shadow and occlusion rays: something is in the way", terminal=True),
    Sum("misses", "misses", terminal=True),
    Sum("nodes", "nodes", "box nodes fetched, those of the TLAS included", terminal=True),
    Sum("box_tests", "box tests", terminal=True),
    Sum("box_hits", "box hits"),
    Sum("box_misses", "box misses", total=_rest("box_tests", "box_hits")),
    Sum("triangle_tests", "triangle tests", terminal=True),
    Sum("triangle_hits", "candidates", "triangles hit inside the ray's interval", terminal=True),
    Sum("triangle_misses", "triangle misses", total=_rest("triangle_tests", "triangle_hits")),
    Sum("instance_hits", "instances entered"),
    Sum("any_hits", "any-hit calls", "alpha tests of candidates", "any_hit", terminal=True),
    Sum("rejected", "rejected", "candidates that the alpha test refused"),
    Sum("alpha_samples", "alpha samples", "textures sampled by alpha tests", terminal=True),
    Sum("texture_fetches", "texture fetches", "textures sampled where hits are shaded"),
    Sum(
        "bytes_read",
        "bytes read",
        "computed: counts by the sizes of records, before any cache",
        run="computed",
        terminal=True,
        total=_bytes,
    ),
)

MEASURES: tuple[Measure, ...] = (
    Measure(
        "nodes_per_hit_ray",
        "nodes a ray that hits",
        lambda m: share(m.stats.nodes_hit, m.stats.hits),
    ),
    Measure(
        "nodes_per_miss_ray",
        "nodes a ray that misses",
        lambda m: share(m.stats.nodes_miss, m.stats.misses),
    ),
    Measure("nodes_p50", "nodes p50", _of("nodes_p50"), "of a ray's nodes", format=",.0f"),
    Measure(
        "nodes_p95", "nodes p95", _of("nodes_p95"), "of a ray's nodes", format=",.0f", terminal=True
    ),
    Measure(
        "nodes_p99", "nodes p99", _of("nodes_p99"), "of a ray's nodes", format=",.0f", terminal=True
    ),
    Measure(
        "nodes_max", "nodes max", _of("nodes_max"), "of a ray's nodes", format=",d", terminal=True
    ),
    Measure(
        "active_lane_ratio",
        "active lanes",
        lambda m: active_lane_ratio(m.stats),
        "of a subgroup's lanes, the part that fetches a node when it fetches nodes (ballots)",
        format=".3f",
        terminal=True,
    ),
    Measure(
        "nodes_per_subgroup_step",
        "distinct nodes a subgroup",
        lambda m: share(m.stats.subgroup_nodes, m.stats.subgroup_steps),
        "that the active lanes of a subgroup fetch at once (ballots)",
        terminal=True,
    ),
    Measure(
        "subgroup_lanes",
        "lanes a subgroup",
        _of("subgroup_lanes"),
        "the adapter's; none where it has no subgroup operations or nobody counted lanes",
        format=",d",
        terminal=True,
    ),
    Measure(
        f"materials_per_{SUBGROUP}_rays",
        f"distinct materials, {SUBGROUP} rays",
        lambda m: m.materials,
        f"among the hits of {SUBGROUP} rays in a row that are shaded together",
        terminal=True,
        reads_back=True,
    ),
    Measure(
        "bounce_mean",
        "bounce, mean",
        lambda m: None if m.spread is None else m.spread.mean_bounce,
        "1 for rays from what the primary ray sees, 2 for rays from their hits",
        terminal=True,
        reads_back=True,
    ),
    Measure(
        "bounce_max",
        "bounce, most",
        lambda m: len(m.spread.bounces) if m.spread and m.spread.rays else None,
        format=",d",
        reads_back=True,
    ),
    Measure(
        "lost",
        "samples lost",
        _of("lost"),
        "that a rough lobe sent below the surface: no ray, no light",
        format=",d",
    ),
    Measure(
        "widened",
        "pixels shown a farther ray",
        _of("widened"),
        "at a part of the picture's size: none of the four nearest rays left a surface like theirs",
        format=",d",
    ),
    Measure(
        "unlike",
        "pixels shown no ray",
        _of("unlike"),
        "at a part of the picture's size: the environment, as no ray left a surface like theirs",
        format=",d",
        terminal=True,
    ),
    Measure("stack_max", "stack max", _of("stack_max"), unit="entries", format=",d", terminal=True),
    Measure("overflows", "overflows", _of("overflows"), "rays that ended early", format=",d"),
)


def sum_fields(measured: Measured) -> Iterator[tuple[str, str, Number]]:
    """(field, run, value) of every sum: over the frame, a ray and a pixel, and textures a hit."""
    for item in SUMS:
        total, stem = item.of(measured), item.stem or item.field
        yield item.field, item.run, total
        yield f"{stem}_per_ray", item.run, share(total, measured.stats.rays)
        yield f"{stem}_per_pixel", item.run, share(total, measured.pixels)
    fetches = measured.stats.texture_fetches
    yield "texture_fetches_per_hit", "counted", share(fetches, measured.stats.hits)


def labels() -> dict[str, str]:
    """Report field -> what people read."""
    found = {item.field: item.label for item in MEASURES}
    for item in SUMS:
        stem = item.stem or item.field
        found[item.field] = item.label
        found[f"{stem}_per_ray"] = f"{item.label} a ray"
        found[f"{stem}_per_pixel"] = f"{item.label} a pixel"
    return found


def terminal_fields() -> tuple[str, ...]:
    """Fields of a ray's row that a narrow terminal shows: hits and misses as they are, other sums
    by ray."""
    sums = (
        item.field if item.field in ("hits", "misses") else f"{item.stem or item.field}_per_ray"
        for item in SUMS
        if item.terminal
    )
    return (*sums, *(item.field for item in MEASURES if item.terminal))


def measured_rays(run: Any) -> dict[str, Measured]:
    """Of a `treeline.measure.SizeRun`, by ray type."""
    found = {}
    touched = () if run.hit_table is None else run.hit_table.touched
    for name, timed in run.frames[-1].rays.items():
        # A timed frame has the counters' fields, too, but no values in them.
        stats = timed if run.counted is None else run.counted.rays[name]
        materials = [t.materials for t in touched if (t.ray_type, t.lanes) == (name, SUBGROUP)]
        found[name] = Measured(
            name,
            stats,
            run.width * run.height,
            run.spreads.get(name),
            materials[0] if materials else None,
        )
    return found
