"""Valid scene buffers of a thousand nodes and more, with what a fuzzer must know about them:
where everything lies, what every box has to enclose, and which rays cross which triangles.

The truth about crossings is that of `bvh.fuzz.crossings` over the decoded triangles, placed by the
stored matrices.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from bvh import layout, oracle
from bvh.build import Blas, BuildOptions, build_blas
from bvh.fuzz.container_map import ContainerMap, map_container
from bvh.fuzz.crossings import (
    EDGE_MARGIN,
    Crossings,
    cross_triangles,
    nearest,
    passes_sphere,
    same_t,
)
from bvh.rays import Rays, make_rays
from bvh.scene_bvh import SceneBvh, assemble
from bvh.tlas import BvhInstance

F32 = NDArray[np.float32]
F64 = NDArray[np.float64]
U32 = NDArray[np.uint32]
I64 = NDArray[np.int64]
Index = NDArray[np.int64]

RAY_COUNT = 640  # of a subject
FARTHEST = np.float32(3.4028235e38)


class Subject:
    """A valid scene and its truth. `words` and `parents` are the fuzzer's own copies, damaged and
    restored in place; `scene` refers to them."""

    def __init__(self, name: str, scene: SceneBvh, rays: Rays) -> None:
        self.name = name
        self.words, self.parents = scene.words.copy(), scene.parents.copy()
        self.scene = SceneBvh(
            words=self.words,
            parents=self.parents,
            blas_bases=scene.blas_bases,
            blas_stats=scene.blas_stats,
            blas_names=scene.blas_names,
            instances=scene.instances,
            options=scene.options,
        )
        bases = [0, *(int(b) // 4 for b in scene.blas_bases)]
        self.containers = [map_container(self.words, base) for base in bases]
        self.instance_words = self.containers[0].leaf_word
        self.size = float(np.abs(self.containers[0].header.bounds).max())
        self.rays, self.crossings = self._settle(rays)
        self.expected = nearest(self.crossings, len(self.rays))
        self.visits = self._visits()
        self.node_count = sum(len(c.node_word) for c in self.containers)

    def _settle(self, rays: Rays) -> tuple[Rays, Crossings]:
        """The rays that are evidence, and all they cross."""
        crossings = self.cross(np.arange(len(self.instance_words)), rays, None)
        doubtful = np.zeros(len(rays), np.bool_)
        doubtful[crossings.ray[np.abs(crossings.margin) < EDGE_MARGIN]] = True
        crossings = crossings.where(~doubtful[crossings.ray]).inside()
        number = np.cumsum(~doubtful) - 1
        return rays[~doubtful], replace(crossings, ray=number[crossings.ray])

    def _visits(self) -> dict[int, Index]:
        """Rays that read the record at a word of the undamaged buffer."""
        seen = _Visits()
        result = oracle.trace(self.words, self.rays, workers=1, log=seen)
        if not same_t(result.t, self.expected, self.size).all() or result.overflows.any():
            raise AssertionError(f"{self.name}: the oracle and brute force differ")
        pairs = np.unique(np.concatenate(seen.pairs), axis=0)
        # Quick rays first: a run takes as many as it needs from the front.
        cost = np.bincount(pairs[:, 1], minlength=len(self.rays))
        pairs = pairs[np.lexsort((cost[pairs[:, 1]], pairs[:, 0]))]
        self.quick = np.argsort(cost, kind="stable")
        words, first = np.unique(pairs[:, 0], return_index=True)
        return dict(zip(words.tolist(), np.split(pairs[:, 1], first[1:]), strict=True))

    def cross(self, which: Index, rays: Rays, rows: Index | None) -> Crossings:
        """What `rays` meet of the triangles `rows` (None: all) of the instances in nodes `which`,
        read from the buffer as it is now; those just outside an edge are included."""
        parts = []
        for index in which.tolist():
            at = int(self.instance_words[index])
            container = self.container_of(index)
            assert container.rows is not None
            first = at + layout.INSTANCE_WORLD_TO_OBJECT_WORD
            matrix = self.words[first : first + 12].view(np.float32).astype(np.float64)
            matrix = matrix.reshape(3, 4)
            chosen = np.arange(len(container.rows.block)) if rows is None else rows
            block = container.leaf_word[container.rows.block[chosen]]
            triangle = chosen - np.searchsorted(container.rows.block, container.rows.block[chosen])
            slots = np.array(layout.TRIANGLE_SLOTS)[triangle]
            cells = block[:, None, None] + 3 * slots[:, :, None] + np.arange(3)
            corners = self.words[cells].view(np.float32).astype(np.float64)
            origin = rays["origin"] @ matrix[:, :3].T + matrix[:, 3]
            direction = rays["direction"].astype(np.float64) @ matrix[:, :3].T
            near = np.flatnonzero(passes_sphere(corners, origin, direction))
            ray, row, t, margin = cross_triangles(corners, origin[near], direction[near])
            ray = near[ray]
            inside = (t > rays["t_min"][ray]) & (t < rays["t_max"][ray])
            ray, row, t, margin = ray[inside], row[inside], t[inside], margin[inside]
            parts.append((ray, t, np.full(len(ray), index), chosen[row], margin))
        columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
        return Crossings(*columns)

    def container_of(self, instance_node: int) -> ContainerMap:
        """The BLAS container below an instance node of the undamaged TLAS."""
        at = int(self.instance_words[instance_node])
        base = int(self.words[at + layout.INSTANCE_BLAS_BASE_WORD]) * layout.UNIT_WORDS
        return next(c for c in self.containers[1:] if c.base == base)

    def instances_of(self, container: ContainerMap) -> Index:
        """The instance nodes that place a BLAS."""
        base = self.words[self.instance_words + layout.INSTANCE_BLAS_BASE_WORD].astype(np.int64)
        return np.flatnonzero(base * layout.UNIT_WORDS == container.base)


class _Visits:
    """A StepLog that keeps which ray (column 1) read the record at which word (column 0)."""

    def __init__(self) -> None:
        self.pairs: list[I64] = []

    def _keep(self, lanes: Index, address: Index) -> None:
        self.pairs.append(np.stack([address, lanes], axis=1))

    def boxes(self, lanes: Index, node: U32, address: Index, *rest: object) -> None:
        self._keep(lanes, address)

    def triangles(self, lanes: Index, node: U32, address: Index, *rest: object) -> None:
        self._keep(lanes, address)

    def instances(self, lanes: Index, node: U32, address: Index, entered: object) -> None:
        self._keep(lanes, address)

    def leave(self, lanes: Index) -> None:
        pass


def make_subjects(seed: int, count: int | None = None) -> list[Subject]:
    """The buffers that a fuzz run damages (the first `count` of them): node formats, block sizes
    and collapses in turn, one to twelve instances, each with a thousand box nodes and more."""
    rng = np.random.default_rng([seed, 0])
    plans: Sequence[tuple[str, BuildOptions, int, int]] = (
        ("auto", BuildOptions(reinsertion=4), 1, 1),
        ("fp16", BuildOptions(nodes="fp16", reinsertion=0), 1, 4),
        ("fp32", BuildOptions(nodes="fp32", leaf=1, reinsertion=0), 1, 3),
        ("greedy", BuildOptions(collapse="greedy", reinsertion=0), 2, 12),
        ("fans", BuildOptions(leaf=4, reinsertion=0), 1, 2),
    )
    return [
        make_subject(rng, name, options, blases, instances)
        for name, options, blases, instances in plans[:count]
    ]


def make_subject(
    rng: np.random.Generator, name: str, options: BuildOptions, blas_count: int, instances: int
) -> Subject:
    """`blas_count` bumpy closed surfaces with a few loose triangles, placed `instances` times."""
    total = {1: 2800, 2: 4400, 4: 8000}[options.leaf]
    blases = [build_surface(rng, total // blas_count, options) for _ in range(blas_count)]
    placed = []
    for i in range(instances):
        matrix = np.eye(4)
        if instances > 1:
            matrix[:3, :3] = random_rotation(rng) * rng.uniform(0.4, 1.5, 3)
            matrix[:3, 3] = rng.uniform(-3.0, 3.0, 3)
        first = 2 * i
        placed.append(
            BvhInstance(i % blas_count, matrix, first_object=first, custom_index=i, name=f"i{i}")
        )
    scene = assemble(blases, [f"surface {i}" for i in range(blas_count)], placed, options)
    reach = 4.0 if instances > 1 else 1.0
    origin = rng.normal(size=(RAY_COUNT, 3)) * 2.0 * reach
    # At something that is placed, as a rule.
    centre = np.array([x.transform[:3, 3] for x in placed])[np.arange(RAY_COUNT) % instances]
    target = centre + rng.uniform(-0.8, 0.8, (RAY_COUNT, 3))
    return Subject(name, scene, make_rays(origin, target - origin, 0.0, FARTHEST))


def build_surface(rng: np.random.Generator, count: int, options: BuildOptions) -> Blas:
    """A BLAS of about `count` triangles in two geometries, the second not opaque."""
    rings = max(3, int(np.sqrt(count / 4)))
    columns = 2 * rings
    theta = np.linspace(0.0, np.pi, rings + 1)[:, None]
    phi = np.linspace(0.0, 2.0 * np.pi, columns + 1)[None, :-1]
    radius = 0.8 + 0.15 * rng.random((rings + 1, columns))
    radius[0], radius[-1] = radius[0, 0], radius[-1, 0]
    points = np.stack(
        [
            radius * np.sin(theta) * np.cos(phi),
            radius * np.sin(theta) * np.sin(phi),
            radius * np.cos(theta) * np.ones_like(phi),
        ],
        axis=-1,
    )
    after = np.roll(points, -1, axis=1)
    quads = np.stack([points[:-1], after[:-1], points[1:], after[1:]], axis=2)
    corners = np.concatenate([quads[:, :, [0, 1, 2]], quads[:, :, [1, 3, 2]]]).reshape(-1, 3, 3)
    loose = rng.uniform(-1, 1, (count // 12, 1, 3)) + 0.1 * rng.normal(size=(count // 12, 3, 3))
    corners = np.concatenate([corners, loose]).astype(np.float32)
    # Fans want neighbours of one geometry: runs of quads, both triangles of each.
    number = np.arange(len(corners)) % (rings * columns)
    number = number // 12 if options.leaf == 4 else np.arange(len(corners))
    geometry = (number % 5 == 0).astype(np.uint32)
    primitive = np.arange(len(corners), dtype=np.uint32)
    return build_blas(corners, geometry, primitive, np.array([True, False]), options)


def random_rotation(rng: np.random.Generator) -> F64:
    matrix, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    return np.asarray(matrix)
