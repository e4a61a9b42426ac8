from collections.abc import Callable, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from bvh import oracle
from bvh.build import BuildOptions
from bvh.gpu.build_records import BUILD_STATE
from bvh.gpu.cluster_encode import cluster_encode
from bvh.gpu.cluster_records import (
    CLUSTER_NODE,
    CLUSTER_SEGMENT,
    SEGMENT,
    TREE_RECORD,
    node_capacity,
)
from bvh.gpu.cluster_tree import cluster_tree
from bvh.gpu.small_sort import small_sort
from bvh.gpu.sorted_boxes import SortedBoxes, sort_boxes
from bvh.gpu.tlas import GRID_BITS, MOST_INSTANCES, SIZE_BITS, GpuTlas, tlas_bytes
from bvh.gpu.tlas_records import (
    INSTANCE_GROUP,
    PLACED_INSTANCE,
    TLAS_REPORT,
    blas_records,
    pack_instance_records,
)
from bvh.gpu.tlas_setup import instance_compact, instance_setup
from bvh.header import pack_header, unpack_header
from bvh.layout import InstanceFlags
from bvh.rays import make_rays
from bvh.scene_bvh import SceneBvh, assemble
from bvh.tlas import BvhInstance, instance_matrices, world_bounds
from bvh.tree import MAX_DEPTH, STACK_LIMIT
from bvh.validate import validate
from engine.gpu.errors import LimitError

CAPACITY = 1700


class Rig:
    """Three BLASes (one empty) behind room for a TLAS, and one builder with dirty scratch."""

    def __init__(self, device: Any, built: Any) -> None:
        rng = np.random.default_rng(5)
        self.device = device
        corners = rng.random((52, 3, 3)).astype(np.float32)
        self.blases = [built.blas(x, reinsertion=0) for x in (corners[:40], corners[40:], [])]
        end = tlas_bytes(CAPACITY)
        self.bases = []
        for blas in self.blases:
            self.bases.append(end)
            end += -(-4 * len(blas.words) // 256) * 256
        words = np.zeros(end // 4, np.uint32)
        parents = np.full(end // 64, 0xFFFFFFFF, np.uint32)
        for base, blas in zip(self.bases, self.blases, strict=True):
            words[base // 4 :][: len(blas.words)] = blas.words
            header = replace(unpack_header(blas.words), base_bytes=base)
            words[base // 4 :][:32] = pack_header(header)
            parents[base // 64 :][: len(blas.parents)] = blas.parents
        self.start = words.copy(), parents.copy()
        self.table = blas_records([unpack_header(b.words) for b in self.blases], self.bases)
        self.tlas = GpuTlas(device, CAPACITY, device.upload("blases", self.table), 3)
        self.buffers = {
            "words": device.upload("words", words),
            "parents": device.upload("parents", parents),
        }

    def submit(self, encode: Callable[[Any], None]) -> None:
        encoder = self.device.wgpu.create_command_encoder()
        scope = encoder.begin_compute_pass()
        encode(scope)
        scope.end()
        self.device.wgpu.queue.submit([encoder.finish()])

    def build(self, instances: Sequence[BvhInstance], buffers: Any = None) -> SceneBvh:
        self.tlas.upload(instances)
        self.submit(lambda scope: self.tlas.encode(scope, {**self.buffers, **(buffers or {})}))
        return SceneBvh(
            self.device.read(self.buffers["words"]),
            self.device.read(self.buffers["parents"])[: len(self.start[1])],
            np.array(self.bases, np.uint32),
            (),
            ("a", "b", "empty"),
            tuple(instances),
            BuildOptions(),
        )

    def twin(self, instances: Sequence[BvhInstance]) -> dict[str, np.ndarray]:
        """The same by the stages' twins."""
        n, segments = len(instances), self.tlas.segments
        words, parents = (x.copy() for x in self.start)
        parameters, segment_parameters, top_parameters = (
            record for _, record in self.tlas.parameter_records()
        )
        placed = np.zeros(n, PLACED_INSTANCE.dtype)
        summaries = np.zeros(n // 256 + 1, INSTANCE_GROUP.dtype)
        report, state = np.zeros(1, TLAS_REPORT.dtype), np.zeros(1, BUILD_STATE.dtype)
        boxes, leaves = np.zeros(6 * n + 6, np.float32), np.zeros(32 * n + 32, np.uint32)
        cut = np.zeros(segments + 1, CLUSTER_SEGMENT.dtype)
        nodes = np.zeros(node_capacity(n, segments), CLUSTER_NODE.dtype)
        trees = np.zeros(1, TREE_RECORD.dtype)
        trees["limit_unit"] = tlas_bytes(CAPACITY) // 64
        given = pack_instance_records(instances)
        instance_setup(parameters, np.array([n]), given, self.table, placed, summaries, report)
        instance_compact(parameters, placed, summaries, boxes, leaves, state, cut, report)
        kept = int(state["kept"][0])
        order = np.zeros(max(n, 1), np.uint32)
        if segments == 1:
            small_sort(segment_parameters, cut, boxes, order)
        elif kept:
            order = sort_boxes(boxes[: 6 * kept].reshape(-1, 2, 3), GRID_BITS, SIZE_BITS)[3]
        roots, leaf_parents = np.zeros(n + 1, np.int32), np.zeros(n + 1, np.uint32)
        for record in [segment_parameters, top_parameters][: 1 + (segments > 1)]:
            cluster_tree(record, order, boxes, cut, nodes, leaf_parents, roots)
        cluster_encode(
            top_parameters, cut, trees, nodes, leaf_parents, boxes, leaves, words, parents
        )
        return dict(words=words, parents=parents, placed=placed, report=report, segments=cut)


@pytest.fixture(scope="module")
def rig(device: Any, built: SimpleNamespace) -> Rig:
    return Rig(device, built)


def _transform(rng: np.random.Generator, spread: float = 20.0) -> np.ndarray:
    matrix = np.eye(4)
    matrix[:3, :3] = np.linalg.qr(rng.normal(size=(3, 3)))[0] * rng.uniform(0.1, 3, 3)
    matrix[:3, 3] = rng.uniform(-spread, spread, 3)
    return matrix


def _instances(rng: np.random.Generator, count: int) -> list[BvhInstance]:
    return [
        BvhInstance(
            int(rng.integers(0, 3)),
            _transform(rng),
            int(rng.integers(1, 256)),
            int(rng.integers(0, 1 << 24)),
            int(rng.integers(0, 1 << 24)),
            InstanceFlags(int(rng.integers(0, 16))),
        )
        for _ in range(count)
    ]


def _same_hits(got: SceneBvh, rig: Rig, rng: np.random.Generator, count: int = 1500) -> int:
    """Hits of a TLAS of the host's over the same instances; how many there are."""
    host = assemble(rig.blases, got.blas_names, got.instances, BuildOptions(reinsertion=0))
    points = rng.uniform(-25, 25, (2, count, 3))
    rays = make_rays(points[0], points[1] - points[0])
    a, b = oracle.trace(host.words, rays), oracle.trace(got.words, rays)
    for name in ("t", "u", "v", "object", "primitive", "instance"):
        assert (getattr(a, name) == getattr(b, name)).all(), name
    assert not b.overflows.any()
    return int((~a.missed).sum())


@pytest.mark.parametrize("count", [0, 1, 2, 3, 5, 255, 290, SEGMENT, SEGMENT + 1, 1600])
def test_bytes_of_the_twins_valid_and_hits_of_the_host(rig: Rig, rng: Any, count: int) -> None:
    instances = _instances(rng, count)
    got = rig.build(instances)
    assert [str(fault) for fault in validate(got)] == []
    twin = rig.twin(instances)
    size = unpack_header(got.words).size_bytes
    assert size <= tlas_bytes(count)
    assert (got.words[: size // 4] == twin["words"][: size // 4]).all()
    assert (got.parents[: size // 64] == twin["parents"][: size // 64]).all()
    segments = rig.device.read(rig.tlas.resources["segments"], CLUSTER_SEGMENT.dtype)
    segments = segments[: len(twin["segments"])]
    for name in ("first", "count", "roots", "levels", "created"):
        assert (segments[name] == twin["segments"][name]).all(), name
    if count:
        placed = rig.device.read(rig.tlas.resources["placed"], PLACED_INSTANCE.dtype, count=count)
        assert (placed == twin["placed"]).all()
    report = rig.tlas.read(rig.buffers["words"])
    empty = sum(x.blas == 2 for x in instances)
    assert (report.kept, report.removed["its BLAS is empty"]) == (count - empty, empty)
    assert report.messages == [] and report.bytes == size
    hits = _same_hits(got, rig, rng)
    assert hits > 20 or count < 200


def test_again_the_same_bytes(rig: Rig, rng: Any) -> None:
    instances = _instances(rng, 1100)
    first = rig.build(instances)
    rig.build(_instances(rng, 900))
    again = rig.build(instances)
    used = unpack_header(first.words).size_bytes // 4
    assert (first.words[:used] == again.words[:used]).all()
    assert (first.parents[: used // 16] == again.parents[: used // 16]).all()


def test_many_are_sorted_by_digits_to_the_same_bytes(
    rig: Rig, rng: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    instances = _instances(rng, 1300)
    by_tiles = rig.build(instances)
    rig.build(_instances(rng, 1200))
    monkeypatch.setattr("bvh.gpu.tlas.MOST_TILES", 2)
    rig.tlas._sort = SortedBoxes(rig.device, CAPACITY, GRID_BITS, SIZE_BITS)
    by_digits = rig.build(instances)
    used = unpack_header(by_tiles.words).size_bytes // 4
    assert (by_tiles.words[:used] == by_digits.words[:used]).all()


@pytest.mark.parametrize("count", [2, 30, 1500])
def test_all_at_one_place(rig: Rig, rng: Any, count: int) -> None:
    got = rig.build([BvhInstance(0)] * count)
    assert [str(fault) for fault in validate(got)] == []
    assert unpack_header(got.words).depth <= 2 + np.log2(count)
    report = rig.tlas.read(rig.buffers["words"])
    assert report.kept == count
    if count > 30:
        return
    points = rng.uniform(-1, 2, (2, 4, 3))
    trace = oracle.trace(got.words, make_rays(points[0], points[1] - points[0]), count_all=True)
    assert not trace.overflows.any() and int(trace.counters.stack_max.max()) <= STACK_LIMIT


def test_a_chain_of_growing_distances_keeps_to_the_levels(rig: Rig) -> None:
    """Every round has one mutual pair; segments and the workgroup above share the levels."""
    instances = []
    for i in range(1300):
        matrix = np.eye(4)
        matrix[0, 3] = 1.06**i
        instances.append(BvhInstance(0, matrix))
    got = rig.build(instances)
    segments = rig.device.read(rig.tlas.resources["segments"], CLUSTER_SEGMENT.dtype)
    top = segments[rig.tlas.segments]
    assert int(top["roots"]) == 1 and int(top["levels"]) <= MAX_DEPTH
    assert (segments["levels"][: rig.tlas.segments] < top["levels"]).all()
    size = unpack_header(got.words).size_bytes
    assert (got.words[: size // 4] == rig.twin(instances)["words"][: size // 4]).all()
    assert [str(fault) for fault in validate(got)] == []


def test_the_world_box_is_the_hosts_and_a_little_more(rig: Rig, rng: Any) -> None:
    instances = [replace(x, blas=i % 2) for i, x in enumerate(_instances(rng, 300))]
    for i, scale in enumerate([1e-12, 1e-6, 1e6, 1e12]):
        instances[i] = replace(
            instances[i], transform=np.diag([scale, 1, 1 / scale, 1]) @ instances[i].transform
        )
    instances[4] = BvhInstance(0, np.diag([-1.0, 1, 1, 1]))
    instances[5] = BvhInstance(1)
    rig.build(instances)
    placed = rig.device.read(rig.tlas.resources["placed"], PLACED_INSTANCE.dtype, count=300)
    forward, backward = instance_matrices(instances)
    bounds = np.array([rig.blases[x.blas].bounds for x in instances])
    host = world_bounds(bounds, forward, backward).astype(np.float64)
    assert (placed["removed"] == 0).all()
    assert (placed["low"] <= host[:, 0]).all() and (placed["high"] >= host[:, 1]).all()
    size = np.einsum("nij,nj->ni", np.abs(forward[:, :, :3]), np.abs(bounds).max(axis=1))
    size = size + np.abs(forward[:, :, 3])
    assert (host[:, 0] - placed["low"] <= 2e-6 * size).all()
    assert (placed["high"] - host[:, 1] <= 2e-6 * size).all()
    assert (placed["low"][5] == rig.blases[1].bounds[0]).all()  # an identity keeps its bounds
    stored = np.ascontiguousarray(placed["node"][:, 4:16]).view(np.float32).reshape(-1, 3, 4)
    assert (stored == backward).mean() > 0.999
    close = np.abs(stored - backward) <= 2.0**-23 * np.abs(backward)
    assert close.all()


def test_mirrored_and_scaled(rig: Rig, rng: Any) -> None:
    scales = [(-1, 1, 1), (-2, -3, 0.5), (1e-3, 1, 5), (30, 0.01, 1), (-1, -1, -1)]
    instances = [
        BvhInstance(i % 2, _transform(rng) @ np.diag([*scale, 1.0]))
        for i, scale in enumerate(scales * 30)
    ]
    got = rig.build(instances)
    assert [str(fault) for fault in validate(got)] == []
    assert _same_hits(got, rig, rng) > 20


BAD = {
    "transform is not finite": np.diag([1.0, np.nan, 1.0, 1.0]),
    "singular transform": np.array([[1, 2, 3, 0], [2, 4, 6, 0], [0, 0, 1, 0], [0, 0, 0, 1.0]]),
    "reaches beyond float32's range (3e38) in world space": np.array(
        [[5e37, 0, 0, 2.9e38], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1.0]]
    ),
}


@pytest.mark.parametrize("reason", [*BAD, "no such BLAS"])
def test_bad_ones_are_left_out_counted_and_named(rig: Rig, rng: Any, reason: str) -> None:
    good = [replace(x, blas=i % 2) for i, x in enumerate(_instances(rng, 300))]
    bad = BvhInstance(0, BAD[reason]) if reason in BAD else BvhInstance(7)
    instances = [*good[:77], bad, *good[77:200], bad, *good[200:]]
    got = rig.build(instances)
    report = rig.tlas.read(rig.buffers["words"])
    assert report.kept == 300 and report.removed[reason] == 2 and report.first[reason] == 77
    assert report.messages == [f"instance 77: {reason} (and 1 more)"]
    ids = [i for i in range(302) if i not in (77, 201)]
    rows = got.words[unpack_header(got.words).leaf_unit * 16 :].reshape(-1)[: 300 * 32]
    assert sorted(rows.reshape(300, 32)[:, 16].tolist()) == ids
    assert (rig.twin(instances)["report"] == rig.device.read(
        rig.tlas.resources["report"], TLAS_REPORT.dtype, count=1)).all()  # fmt: skip


@pytest.mark.parametrize(
    "matrix",
    [
        np.diag([1.0, 0.0, 1.0, 1.0]),
        np.diag([1e-39, 1.0, 1.0, 1.0]),
        np.array([[1, 1, 0, 0], [1, 1, 1e-7, 0], [0, 0, 1, 0], [0, 0, 0, 1.0]]),
        np.zeros((4, 4)),
    ],
)
def test_singular_ones(rig: Rig, matrix: np.ndarray) -> None:
    rig.build([BvhInstance(0), BvhInstance(0, matrix)])
    report = rig.tlas.read(rig.buffers["words"])
    assert report.kept == 1 and report.first["singular transform"] == 1


def test_instances_that_an_earlier_stage_wrote(rig: Rig, rng: Any) -> None:
    instances = [replace(x, blas=i % 2) for i, x in enumerate(_instances(rng, 700))]
    mine = rig.device.upload("mine", pack_instance_records(instances))
    count = rig.device.upload("count", np.array([650], np.uint32))
    got = rig.build([BvhInstance(2)] * 700, {"instances": mine, "instance_count": count})
    got = replace(got, instances=tuple(instances[:650]))
    assert [str(fault) for fault in validate(got)] == []
    assert rig.tlas.read(rig.buffers["words"]).kept == 650
    assert _same_hits(got, rig, rng) > 20


def test_over_capacity(rig: Rig, device: Any) -> None:
    with pytest.raises(ValueError, match="1701 instances, made for 1700"):
        rig.tlas.upload([BvhInstance(0)] * (CAPACITY + 1))
    with pytest.raises(LimitError, match=f"one TLAS takes {MOST_INSTANCES:,}"):
        GpuTlas(device, MOST_INSTANCES + 1, rig.tlas.resources["blases"], 3)
