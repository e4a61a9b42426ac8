"""Many copies of one object on the ground: seeded places in a rectangle, a disc or a ring.

| key | meaning |
| --- | --- |
| `count` | copies, 0 to `MOST_COPIES` |
| `area` | table: where |
| `exclude` | list of such tables: where not |
| `least_distance` | between any two copies' places, metres; 0 |
| `scale` | `[low, high]`, one factor a copy; `[1, 1]` |
| `yaw` | `[low, high]` degrees about +Y; `[0, 0]` |
| `seed` | whole number from 0; 0 |

An area's `shape` is `rectangle` (`size` along X and Z), `disc` (`radius`) or `ring` (`inner`,
`outer`); its `center` is x, y, z, and y the ground's height. Places are even over the area: darts
are thrown, and those that land in an exclusion or too near to an earlier one are drawn again.
"""

from dataclasses import dataclass

import numpy as np

from engine.scene.animation import compose
from engine.scene.mesh import F64
from engine.scene.placement import turn_about_y
from engine.scene.table import Table

SCATTER_KEYS = ("count", "area", "exclude", "least_distance", "scale", "yaw", "seed")
_AREA_KEYS = {"rectangle": ("size",), "disc": ("radius",), "ring": ("inner", "outer")}
MOST_COPIES = 1 << 20
_LEAST_DISTANCE = 1e-6  # below that nobody is kept apart
_CELLS = 1 << 31  # along an axis, of a crowd's grid
_DARTS_A_COPY = 100  # thrown before an area counts as full


@dataclass(frozen=True, slots=True)
class Area:
    """Part of the ground: `half` extents along X and Z of a rectangle, else all points whose
    distance from the centre is from `inner` to `outer`."""

    center: F64  # [3]
    half: tuple[float, float] | None = None
    inner: float = 0.0
    outer: float = 0.0

    def points(self, rng: np.random.Generator, count: int) -> F64:
        """[count, 2] even over the area, X and Z."""
        u, v = rng.random((2, count))
        if self.half is not None:
            offset = np.stack([(2 * u - 1) * self.half[0], (2 * v - 1) * self.half[1]], axis=1)
        else:
            # area grows with the radius squared
            radius = np.sqrt(self.inner**2 + u * (self.outer**2 - self.inner**2))
            offset = radius[:, None] * np.stack(
                [np.cos(2 * np.pi * v), np.sin(2 * np.pi * v)], axis=1
            )
        return np.asarray(self.center[[0, 2]] + offset)

    def holds(self, points: F64) -> np.ndarray:
        """[n] which of `points` [n, 2] lie in it."""
        offset = points - self.center[[0, 2]]
        if self.half is not None:
            return np.asarray((np.abs(offset) <= self.half).all(axis=1))
        distance = np.linalg.norm(offset, axis=1)
        return np.asarray((distance >= self.inner) & (distance <= self.outer))


@dataclass(frozen=True, slots=True)
class Scatter:
    """What the table of the module's docstring says."""

    count: int
    area: Area
    exclude: tuple[Area, ...]
    least_distance: float
    scale: tuple[float, float]
    yaw: tuple[float, float]
    seed: int

    def places(self) -> F64:
        """[at most count, 2] X and Z; fewer where the area is full."""
        rng = np.random.default_rng([self.seed, 0])
        crowd = _Crowd(self.least_distance)
        kept: list[F64] = []
        missing = self.count
        darts = _DARTS_A_COPY * self.count
        while missing and darts > 0:
            points = self.area.points(rng, min(max(2 * missing, 64), darts))
            darts -= len(points)
            for area in self.exclude:
                points = points[~area.holds(points)]
            points = crowd.admit(points, missing)
            missing -= len(points)
            kept.append(points)
        return np.concatenate(kept) if kept else np.zeros((0, 2))

    def transforms(self) -> F64:
        """[at most count, 4, 4]; scale and yaw of a copy do not depend on the area."""
        places = self.places()
        rng = np.random.default_rng([self.seed, 1])
        scales = rng.uniform(*self.scale, self.count)[: len(places)]
        turns = rng.uniform(*self.yaw, self.count)[: len(places)]
        ground = np.full(len(places), self.area.center[1])
        moves = np.stack([places[:, 0], ground, places[:, 1]], axis=1)
        return compose(moves, turn_about_y(turns), np.repeat(scales[:, None], 3, axis=1))


class _Crowd:
    """Points that keep a distance, by cells of that size: what is too near to a point lies in its
    own cell or the eight around it."""

    def __init__(self, distance: float) -> None:
        self.distance = distance
        self._cells: dict[int, list[tuple[float, float]]] = {}

    def admit(self, points: F64, most: int) -> F64:
        """The first `most` of those that are far enough from all before them."""
        if self.distance < _LEAST_DISTANCE:
            return points[:most]
        cells = np.floor(points / self.distance).astype(np.int64).tolist()
        keys = [i * _CELLS + j for i, j in cells]  # one that two cells share only costs time
        around = [i * _CELLS + j for i in (0, -1, 1) for j in (0, -1, 1)]
        nearest, taken, kept = self.distance**2, self._cells, []
        for index, (key, (x, z)) in enumerate(zip(keys, points.tolist(), strict=True)):
            if any(
                (other_x - x) ** 2 + (other_z - z) ** 2 < nearest
                for step in around
                if key + step in taken
                for other_x, other_z in taken[key + step]
            ):
                continue
            taken.setdefault(key, []).append((x, z))
            kept.append(index)
            if len(kept) == most:
                break
        return points[kept]


def read_scatter(table: Table) -> Scatter:
    """The scatter of a table with SCATTER_KEYS."""
    return Scatter(
        count=table.integer("count", 0, MOST_COPIES),
        area=_read_area(_area_table(table, "area")),
        exclude=tuple(_read_area(area) for area in table.tables("exclude", _all_area_keys())),
        least_distance=table.number("least_distance", 0.0, (0.0, 1e9)),
        scale=_range(table, "scale", (1.0, 1.0), (1e-9, 1e9)),
        yaw=_range(table, "yaw", (0.0, 0.0), (-360.0, 360.0)),
        seed=table.integer("seed", 0, 2**63 - 1, 0),
    )


def _all_area_keys() -> list[str]:
    return ["shape", "center", *(key for keys in _AREA_KEYS.values() for key in keys)]


def _area_table(table: Table, key: str) -> Table:
    return table.table(key, _all_area_keys())


def _read_area(table: Table) -> Area:
    shape = table.choice("shape", list(_AREA_KEYS))
    # only now are the keys known that this shape has
    table = Table(table.path, table.where, table.values, ("shape", "center", *_AREA_KEYS[shape]))
    center = np.array(table.vector("center", 3, (0.0, 0.0, 0.0), (-1e9, 1e9)))
    if shape == "rectangle":
        width, depth = table.vector("size", 2, None, (0.0, 1e9))
        return Area(center, half=(width / 2, depth / 2))
    if shape == "disc":
        return Area(center, outer=table.number("radius", None, (0.0, 1e9)))
    inner = table.number("inner", None, (0.0, 1e9))
    return Area(center, inner=inner, outer=table.number("outer", None, (inner, 1e9)))


def _range(
    table: Table, key: str, default: tuple[float, float], limits: tuple[float, float]
) -> tuple[float, float]:
    low, high = table.vector(key, 2, default, limits)
    if low > high:
        raise table.error(key, f"is [{low:g}, {high:g}], not a lower and an upper end")
    return low, high
