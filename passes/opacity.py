"""Which triangles of an alpha-tested material need the test: found before the BVH is built.

A triangle is OPAQUE where the test accepts every point of it, CLEAR where it accepts none, else
MIXED. Only mixed ones keep the test: opaque ones say so in their block, clear ones are left out.

The test (passes/shaders/accept_alpha.wgsl) samples mip 0 bilinearly. Between four neighbouring
texels a sample lies between their least and largest alpha; call that square, from texel centre to
texel centre, a cell. So a triangle's footprint in the texture is covered by cells, row by row, and
those are compared with the cutoff. Everything is bounded outward: the footprint grows by MARGIN and
by what float32 may misplace a coordinate, values by SLACK. What is not certain is MIXED.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from bvh.layout import GEOMETRY_OPAQUE
from engine.scene.material import Material, Texture, Wrap
from engine.scene.mesh import Mesh
from engine.scene.scene import Scene

OPAQUE, MIXED, CLEAR = 0, 1, 2
CLASSES = {"opaque": OPAQUE, "mixed": MIXED, "clear": CLEAR}

U8 = NDArray[np.uint8]
U32 = NDArray[np.uint32]
I64 = NDArray[np.int64]
F64 = NDArray[np.float64]
Mask = NDArray[np.bool_]

MARGIN = 2.0**-8  # of a texel: weights of points on an edge are rounded, too
COORDINATE_ERROR = 2.0**-19  # relative, of a coordinate in texels: 16 roundings of 2^-24, twice
SLACK = 2.0**-19  # relative, of alpha x texture: a dozen roundings of 2^-24, twice
MOST_ROWS = 1 << 14  # of cells, of one triangle: what reaches farther is MIXED
_ROWS_AT_ONCE = 1 << 18  # of cells, of all triangles: bounds the memory


def vertex_alpha(mesh: Mesh, material: Material) -> NDArray[np.float32]:
    """[m, 3] factor x vertex alpha at each triangle's vertices, as the alpha test has it."""
    alpha = mesh.colors[mesh.triangles, 3].astype(np.float32) / np.float32(255)
    return alpha * np.float32(material.base_color[3])


def scene_opacity(scene: Scene, opacity: str) -> tuple[U8, ...]:
    """For each mesh its triangles' classes, [m]. By `opacity` "material" those of a material that
    is not opaque are all MIXED (one of bvh.build_defaults.OPACITIES), as its spheres always are."""
    cells: dict[int, AlphaCells] = {}
    found = []
    for mesh in scene.meshes:
        material = scene.materials[mesh.material]
        if material.opaque:
            found.append(np.full(len(mesh.triangles), OPAQUE, np.uint8))
        elif opacity == "material" or mesh.radii is not None:
            found.append(np.full(len(mesh.triangles), MIXED, np.uint8))
        else:
            index = material.base_color_texture
            if index >= 0 and index not in cells:
                cells[index] = AlphaCells(scene.textures[index])
            found.append(triangle_opacity(mesh, material, cells.get(index)))
    return tuple(found)


def triangle_opacity(mesh: Mesh, material: Material, cells: "AlphaCells | None") -> U8:
    """[m] classes under a material with that base colour texture, or none."""
    cutoff = float(np.float32(material.alpha_cutoff))
    alpha = vertex_alpha(mesh, material).astype(np.float64)
    low, high = alpha.min(axis=1, initial=np.inf), alpha.max(axis=1, initial=-np.inf)
    slack = SLACK * (high - low)  # none where all vertices agree: the test then has just that alpha
    low, high = low - slack, high + slack
    if cells is None:
        return _classes(low >= cutoff, high < cutoff)
    uvs = mesh.uvs[mesh.triangles].astype(np.float64)
    surely = _least_byte(cutoff, low * (1.0 - SLACK))
    perhaps = _least_byte(cutoff, high * (1.0 + SLACK))
    return _classes(
        ~cells.any_cell(uvs, surely, cells.least, below=True),
        ~cells.any_cell(uvs, perhaps, cells.largest, below=False),
    )


def _least_byte(cutoff: float, alpha: F64) -> I64:
    """[n] the least alpha byte of a texture that is accepted together with `alpha`; 256: none."""
    if cutoff <= 0.0:
        return np.where(alpha >= 0.0, 0, 256)
    with np.errstate(divide="ignore"):
        byte = np.ceil(255.0 * cutoff / alpha.clip(0.0, None))
    return byte.clip(0, 256).astype(np.int64)


def _classes(opaque: Mask, clear: Mask) -> U8:
    return np.where(opaque, OPAQUE, np.where(clear, CLEAR, MIXED)).astype(np.uint8)


@dataclass(frozen=True, slots=True)
class Axis:
    """One coordinate of a texture: cell i lies between texels i and i + 1 of the endless pattern.
    `period` cells repeat, or (clamp) cells -1 to `size` - 1 are all that there are."""

    size: int
    wrap: Wrap

    @property
    def cells(self) -> int:
        return {"repeat": self.size, "mirror": 2 * self.size, "clamp": self.size + 1}[self.wrap]

    def texels(self, index: I64) -> I64:
        """The texel that stands at these places of the endless pattern."""
        if self.wrap == "clamp":
            return index.clip(0, self.size - 1)
        if self.wrap == "mirror":
            place = index % (2 * self.size)
            return np.minimum(place, 2 * self.size - 1 - place)
        return index % self.size

    def ends(self) -> tuple[I64, I64]:
        """Both texels of each distinct cell."""
        first = np.arange(self.cells) - (self.wrap == "clamp")
        return self.texels(first), self.texels(first + 1)

    def place(self, cell: I64) -> I64:
        """Where a cell of the endless pattern stands among the distinct ones."""
        if self.wrap == "clamp":
            return cell.clip(-1, self.size - 1) + 1
        return cell % self.cells

    def span(self, first: I64, last: I64) -> tuple[I64, I64]:
        """Distinct cells [start, end) from `first` to `last`, in a row that stands there twice."""
        if self.wrap == "clamp":
            return self.place(first), self.place(last) + 1
        start = self.place(first)
        return start, start + np.minimum(last - first + 1, self.cells)


class AlphaCells:
    """The least and the largest alpha byte of every distinct cell of a texture, [rows, columns]."""

    def __init__(self, texture: Texture) -> None:
        height, width = texture.pixels.shape[:2]
        self.axis_u, self.axis_v = Axis(width, texture.wrap_u), Axis(height, texture.wrap_v)
        alpha = texture.pixels[..., 3]
        left, right = self.axis_u.ends()
        upper, lower = self.axis_v.ends()
        self.least = np.minimum(alpha[:, left], alpha[:, right])
        self.least = np.minimum(self.least[upper], self.least[lower])
        self.largest = np.maximum(alpha[:, left], alpha[:, right])
        self.largest = np.maximum(self.largest[upper], self.largest[lower])

    @cached_property
    def size(self) -> F64:
        return np.array([self.axis_u.size, self.axis_v.size], np.float64)

    def any_cell(self, uvs: F64, threshold: I64, values: U8, *, below: bool) -> Mask:
        """[m] whether a cell that triangle `uvs [m, 3, 2]` may touch has a value below its
        threshold [m], or not below. True where the footprint is too far or too large to say."""
        found = np.zeros(len(uvs), np.bool_)
        for limit in np.unique(threshold):
            mine = np.flatnonzero(threshold == limit)
            marked = (values < limit) == below
            if marked.all() or not marked.any():
                found[mine] = bool(marked.all())
                continue
            # Marked cells left of each cell, in rows that stand there twice.
            sums = np.zeros((len(marked), 2 * marked.shape[1] + 1), np.int32)
            np.cumsum(np.concatenate([marked, marked], axis=1), axis=1, out=sums[:, 1:])
            found[mine] = self._touches(uvs[mine], sums)
        return found

    def _touches(self, uvs: F64, sums: NDArray[np.int32]) -> Mask:
        with np.errstate(invalid="ignore", over="ignore"):
            points = uvs * self.size - 0.5
            reach = np.abs(uvs * self.size).max(axis=(1, 2), initial=0.0) + 1.0
            margin = MARGIN + COORDINATE_ERROR * reach
            low = np.floor(points[:, :, 1].min(axis=1) - margin)
            high = np.floor(points[:, :, 1].max(axis=1) + margin)
            sound = np.isfinite(points).all(axis=(1, 2)) & (margin < 0.5)
            sound &= high - low < MOST_ROWS
        found = ~sound
        todo = np.flatnonzero(sound)
        rows = (high[todo] - low[todo] + 1).astype(np.int64)
        parts = np.searchsorted(np.cumsum(rows), np.arange(0, rows.sum(), _ROWS_AT_ONCE))
        for part in np.split(np.arange(len(todo)), np.unique(parts)[1:]):
            mine, count = todo[part], rows[part]
            triangle = np.repeat(np.arange(len(mine)), count)
            row = np.arange(len(triangle)) - np.repeat(np.cumsum(count) - count, count)
            row += low[mine].astype(np.int64)[triangle]
            grown = margin[mine][triangle]
            left, right = _reach(points[mine][triangle], row - grown, row + 1 + grown)
            there = left <= right  # else only what the row was grown by came near
            triangle, row, grown = triangle[there], row[there], grown[there]
            start, end = self.axis_u.span(
                np.floor(left[there] - grown).astype(np.int64),
                np.floor(right[there] + grown).astype(np.int64),
            )
            line = self.axis_v.place(row)
            hit = sums[line, end] > sums[line, start]
            found[mine] = np.bincount(triangle[hit], minlength=len(mine)) > 0
        return found


def _reach(points: F64, low: F64, high: F64) -> tuple[F64, F64]:
    """Least and largest u of what triangles `points [n, 3, 2]` have between v = low and v = high;
    inf and -inf where that is nothing."""
    least, largest = np.full(len(points), np.inf), np.full(len(points), -np.inf)
    for corner in range(3):
        a, b = points[:, corner], points[:, (corner + 1) % 3]
        step = b - a
        with np.errstate(divide="ignore", invalid="ignore"):
            enter = (np.where(step[:, 1] > 0, low, high) - a[:, 1]) / step[:, 1]
            leave = (np.where(step[:, 1] > 0, high, low) - a[:, 1]) / step[:, 1]
        level = step[:, 1] == 0
        enter = np.where(level, 0.0, enter).clip(0.0, None)
        leave = np.where(level, 1.0, leave).clip(None, 1.0)
        inside = np.where(level, (low <= a[:, 1]) & (a[:, 1] <= high), enter <= leave)
        for t in (enter, leave):
            u = a[:, 0] + t * step[:, 0]
            least = np.where(inside, np.minimum(least, u), least)
            largest = np.where(inside, np.maximum(largest, u), largest)
    return least, largest


def traced(opacity: Sequence[U8]) -> tuple[U32, U32, Mask, Mask]:
    """What a BLAS is built of whose geometry g has these classes: geometry words and primitives of
    the triangles that are not clear, [n]; which are opaque as a whole, [g]; and which of all
    triangles were kept."""
    counts = [len(classes) for classes in opacity]
    every = np.concatenate([np.zeros(0, np.uint8), *opacity])
    kept = every != CLEAR
    geometry = np.repeat(np.arange(len(counts), dtype=np.uint32), counts)
    primitive = np.concatenate([np.arange(count, dtype=np.uint32) for count in counts])
    whole = np.array([bool((classes == OPAQUE).all()) for classes in opacity], np.bool_)
    own = (every == OPAQUE) & ~whole[geometry]
    geometry |= own * np.uint32(GEOMETRY_OPAQUE)
    return geometry[kept], primitive[kept], whole, kept
