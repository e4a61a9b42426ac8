from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from bvh import oracle
from bvh.brute_force import closest
from bvh.build import BuildOptions
from bvh.gpu.build_records import BUILD_STATE
from bvh.gpu.cluster_encode import cluster_encode
from bvh.gpu.cluster_records import (
    CLUSTER_NODE,
    CLUSTER_SEGMENT,
    TREE_RECORD,
    node_capacity,
)
from bvh.gpu.cluster_tree import cluster_tree
from bvh.gpu.small_blas import (
    MOST_TRIANGLES,
    GpuSmallBlas,
    SmallBlasReport,
    SmallMesh,
    small_blas_bytes,
)
from bvh.gpu.small_blas_records import SMALL_MESH, SMALL_PARAMETERS
from bvh.gpu.small_blas_stages import small_leaves, small_places, small_segments, small_sizes
from bvh.gpu.small_sort import small_sort
from bvh.gpu.tlas import GpuTlas
from bvh.gpu.tlas_records import BLAS_RECORD
from bvh.header import unpack_header
from bvh.rays import make_rays
from bvh.scene_bvh import SceneBvh
from bvh.tlas import BvhInstance
from bvh.validate import validate
from engine.gpu.errors import LimitError, UserError
from engine.gpu.stage import Stage

MESHES, TRIANGLES = 24, 3000


def _sheet(rng: np.random.Generator, count: int) -> np.ndarray:
    """`count` triangles of a bumpy grid, two a cell, so that there is something to pair."""
    side = int(np.sqrt(max(count, 1) / 2)) + 1
    x, y = np.meshgrid(*2 * [np.linspace(0, 1, side + 1)])
    points = np.stack([x, y, 0.3 * rng.random(x.shape)], axis=-1).astype(np.float32)
    a, b, c, d = points[:-1, :-1], points[1:, :-1], points[1:, 1:], points[:-1, 1:]
    cells = np.stack([np.stack([a, b, c], axis=2), np.stack([a, c, d], axis=2)], axis=2)
    return cells.reshape(-1, 3, 3)[:count]


def _mesh(rng: np.random.Generator, count: int, kind: str = "sheet") -> SmallMesh:
    corners = _sheet(rng, count)
    if kind == "soup":
        corners = (rng.random((count, 3, 3)) ** 2).astype(np.float32)
    if kind == "copies":
        corners = np.repeat(corners[:1], count, axis=0)
    geometry = rng.integers(0, 2, count).astype(np.uint32)
    if kind == "bad":
        corners = corners.copy()
        corners[0::3, 1, 0] = np.nan
        corners[1::6, 2] = corners[1::6, 0]
    primitive = rng.permutation(count).astype(np.uint32)
    return SmallMesh(corners, geometry, primitive, np.array([True, False]), kind)


class Rig:
    """A builder with dirty scratch, a TLAS in front of its containers, and both their twins."""

    def __init__(self, device: Any, nodes: str, leaf: int) -> None:
        self.device = device
        self.small = GpuSmallBlas(device, MESHES, TRIANGLES, nodes=nodes, leaf=leaf)
        self.leaf = leaf
        self.tlas = GpuTlas(device, MESHES, self.small.resources["blases"], MESHES)
        self.base = self.tlas.reserved_bytes
        self.end = self.base + small_blas_bytes([TRIANGLES // MESHES] * MESHES) + 256 * MESHES
        self.buffers = {
            "words": device.buffer("words", self.end),
            "parents": device.buffer("parents", self.end // 16),
        }
        self.small.set_output(self.base, self.end)

    def submit(self, *encodes: Callable[[Any, Any], None]) -> None:
        encoder = self.device.wgpu.create_command_encoder()
        scope = encoder.begin_compute_pass()
        for encode in encodes:
            encode(scope, self.buffers)
        scope.end()
        self.device.wgpu.queue.submit([encoder.finish()])

    def build(
        self, meshes: list[SmallMesh], instances: list[BvhInstance]
    ) -> tuple[SceneBvh, SmallBlasReport]:
        """Both levels in one pass."""
        self.small.upload(meshes)
        self.tlas.upload(instances)
        self.submit(self.small.encode, self.tlas.encode)
        report = self.small.read()
        words = self.device.read(self.buffers["words"])[: self.end // 4]
        scene = SceneBvh(
            words,
            self.device.read(self.buffers["parents"])[: self.end // 64],
            report.bases.astype(np.uint32),
            (),
            tuple(mesh.name for mesh in meshes),
            tuple(instances),
            BuildOptions(),
        )
        return scene, report

    def twin(self, meshes: list[SmallMesh]) -> tuple[np.ndarray, np.ndarray]:
        """(words, parents) of the containers by the stages' twins."""
        parameters, segment_parameters = (r for _, r in self.small.parameter_records())
        counts = np.array([len(mesh.triangles) for mesh in meshes])
        number = len(meshes)
        geometries = np.array([len(mesh.opaque) for mesh in meshes])
        record = np.zeros(number, SMALL_MESH.dtype)
        record["first"], record["count"] = np.cumsum(counts) - counts, counts
        record["first_geometry"] = np.cumsum(geometries) - geometries
        record["geometries"] = geometries

        # Pairs have their own twins (tests/bvh/gpu/test_pairing.py); the batch starts from them.
        def read(name: str, dtype: Any = np.uint32) -> Any:
            return self.device.read(self.small.resources[name], dtype)

        state = read("state", BUILD_STATE.dtype)[:1]
        kept = int(state["kept"][0])
        blocks, starts = read("blocks"), read("starts")
        corners, ids = read("triangles"), read("triangle_ids")
        flat = np.append(read("boxes", np.float32)[: 6 * kept], np.zeros(6, np.float32))
        leaves = np.zeros(16 * kept + 16, np.uint32)
        segments = np.zeros(number + 1, CLUSTER_SEGMENT.dtype)
        trees = np.zeros(number, TREE_RECORD.dtype)
        small_leaves(state, blocks, corners, ids, leaves)
        small_segments(parameters, record, starts, state, leaves, segments, trees)
        order, leaf_parents = np.zeros((2, kept + 1), np.uint32)
        nodes = np.zeros(node_capacity(kept, number), CLUSTER_NODE.dtype)
        small_sort(segment_parameters, segments, flat, order)
        cluster_tree(segment_parameters, order, flat, segments, nodes, leaf_parents,
                     np.zeros(kept + 1, np.int32))  # fmt: skip
        sizes = np.zeros(number, np.uint32)
        sums, total = np.zeros(number, np.uint32), np.zeros(1, np.uint32)
        small_sizes(parameters, segments, nodes, sizes, sums)
        small_places(parameters, segments, nodes, sizes, sums, trees,
                     np.zeros(number, BLAS_RECORD.dtype), total)  # fmt: skip
        words, parents = np.zeros(self.end // 4, np.uint32), np.zeros(self.end // 64, np.uint32)
        cluster_encode(segment_parameters, segments, trees, nodes, leaf_parents, flat, leaves,
                       words, parents)  # fmt: skip
        return words, parents


@pytest.fixture(scope="module", params=[("auto", 2), ("fp16", 1), ("fp32", 2)])
def rig(device: Any, request: pytest.FixtureRequest) -> Rig:
    return Rig(device, *request.param)


def _batch(rng: np.random.Generator) -> list[SmallMesh]:
    sizes = [0, 1, 2, 3, 40, 0, 200, 255, 256, 257, MOST_TRIANGLES]
    kinds = ["soup", "copies", "bad"]
    return [_mesh(rng, n) for n in sizes] + [_mesh(rng, 97, kind) for kind in kinds]


def _spread(rng: np.random.Generator, count: int) -> list[BvhInstance]:
    out = []
    for i in range(count):
        matrix = np.eye(4)
        matrix[:3, :3] = np.linalg.qr(rng.normal(size=(3, 3)))[0]
        matrix[:3, 3] = [1.7 * (i % 4), 1.7 * (i // 4), 0]
        out.append(BvhInstance(i, matrix, first_object=2 * i))
    return out


def test_bytes_of_the_twins_valid_and_hits_of_brute_force(rig: Rig, rng: Any) -> None:
    meshes = _batch(rng)
    scene, report = rig.build(meshes, _spread(rng, len(meshes)))
    assert [str(fault) for fault in validate(scene)] == []
    words, parents = rig.twin(meshes)
    assert (scene.words[rig.base // 4 : report.end_bytes // 4]
            == words[rig.base // 4 : report.end_bytes // 4]).all()  # fmt: skip
    links = slice(rig.base // 64, report.end_bytes // 64)
    assert (scene.parents[links] == parents[links]).all()
    # Tight: each container begins at the first multiple of 256 behind the one before.
    sizes = [unpack_header(scene.words[int(b) // 4 :]).size_bytes for b in scene.blas_bases]
    ends = rig.base + np.cumsum([-(-size // 256) * 256 for size in sizes])
    assert report.bases.tolist() == [rig.base, *ends[:-1].tolist()]
    assert report.end_bytes == ends[-1]
    for bounds, base in zip(report.bounds, scene.blas_bases, strict=True):
        header = unpack_header(scene.words[int(base) // 4 :])
        expected = header.bounds if header.leaf_count else np.array([[1.0] * 3, [-1.0] * 3])
        assert (bounds == expected).all()
    assert report.dropped.tolist() == [0] * (len(meshes) - 1) + [33 + 16]
    paired = report.blocks.sum() < 0.8 * report.triangles.sum()
    assert paired == (rig.leaf == 2)

    # A far mesh's triangles in world space, in float64.
    rays = make_rays(*_rays(rng, 1200))
    trace = oracle.trace(scene.words, rays)
    corners, owner = [], []
    for i, (mesh, instance) in enumerate(zip(meshes, scene.instances, strict=True)):
        kept = np.isfinite(mesh.triangles).all(axis=(1, 2))
        forward = instance.transform.astype(np.float32).astype(np.float64)
        corners.append(mesh.triangles[kept] @ forward[:3, :3].T + forward[:3, 3])
        owner += [(i, 2 * i + g, p) for g, p in zip(mesh.geometry[kept], mesh.primitive[kept],
                                                    strict=True)]  # fmt: skip
    brute = closest(np.concatenate(corners), rays)
    hit = brute.triangle >= 0
    assert hit.sum() > 100 and (hit == ~trace.missed).mean() > 0.998  # edges are inclusive there
    both = hit & ~trace.missed
    assert np.allclose(trace.t[both], brute.t[both], rtol=1e-5, atol=1e-6)
    expected = np.array(owner)[brute.triangle[both]]
    same = np.stack([trace.instance, trace.object, trace.primitive], axis=1)[both] == expected
    tie = [mesh.name for mesh in meshes].index("copies")
    assert same[expected[:, 0] != tie].all(axis=1).mean() > 0.998


def _rays(rng: np.random.Generator, count: int) -> np.ndarray:
    origin = rng.uniform([-1, -1, -5], [7, 7, 5], (count, 3))
    target = rng.uniform([0, 0, -1], [6, 6, 1], (count, 3))
    return np.stack([origin, target - origin]).astype(np.float32)


def test_again_the_same_bytes(rig: Rig, rng: Any) -> None:
    meshes, other = _batch(rng), [_mesh(rng, 150, "soup") for _ in range(20)]
    first, report = rig.build(meshes, _spread(rng, len(meshes)))
    rig.build(other, _spread(rng, len(other)))
    again, _ = rig.build(meshes, list(first.instances))
    end = report.end_bytes // 4
    assert (first.words[rig.base // 4 : end] == again.words[rig.base // 4 : end]).all()
    used = unpack_header(first.words).size_bytes // 4
    assert (first.words[:used] == again.words[:used]).all()


def test_no_meshes(rig: Rig) -> None:
    scene, report = rig.build([], [])
    assert validate(scene) == [] and report.end_bytes == rig.base


def test_no_pair_joins_two_meshes(rig: Rig, rng: Any) -> None:
    """Two meshes that have the same triangles and the same edges."""
    mesh = _mesh(rng, 2)
    halves = [
        SmallMesh(x, np.zeros(1, np.uint32), np.zeros(1, np.uint32), np.array([True]))
        for x in (mesh.triangles[:1], mesh.triangles[1:])
    ]
    scene, report = rig.build(halves, _spread(rng, 2))
    assert validate(scene) == []
    assert report.blocks.tolist() == [1, 1] and report.triangles.tolist() == [1, 1]


def test_refusals(rig: Rig, device: Any, rng: Any) -> None:
    large = _mesh(rng, MOST_TRIANGLES + 1, "soup")
    with pytest.raises(UserError, match="mesh 1 'soup': 513 triangles, a small BLAS takes 512"):
        rig.small.upload([_mesh(rng, 3), large])
    with pytest.raises(ValueError, match="made for 24"):
        rig.small.upload([_mesh(rng, 1)] * (MESHES + 1))
    with pytest.raises(UserError, match="nodes 'fp8'"):
        GpuSmallBlas(device, 1, 1, nodes="fp8")


def test_no_room_is_an_error_with_both_sizes(rig: Rig, rng: Any) -> None:
    meshes = [_mesh(rng, 100) for _ in range(3)]
    instances = _spread(rng, 3)
    scene, report = rig.build(meshes, instances)
    try:
        rig.small.set_output(rig.base, report.end_bytes)
        rig.device.write(rig.buffers["words"], np.full(rig.end // 4, 7, np.uint32))
        exact, _ = rig.build(meshes, instances)
        end = report.end_bytes // 4
        assert (exact.words[rig.base // 4 : end] == scene.words[rig.base // 4 : end]).all()
        rig.small.set_output(rig.base, report.end_bytes - 256)
        rig.device.write(rig.buffers["words"], np.full(rig.end // 4, 7, np.uint32))
        with pytest.raises(
            LimitError, match=rf"3 small BLASes need {report.end_bytes - rig.base:,}"
        ):
            rig.build(meshes, instances)
        words = rig.device.read(rig.buffers["words"])
        last = int(report.bases[2]) // 4
        assert (words[last : report.end_bytes // 4] == 7).all()
        assert (words[rig.base // 4 : last] == scene.words[rig.base // 4 : last]).all()
    finally:
        rig.small.set_output(rig.base, rig.end)


def test_a_mesh_alone_is_a_whole_scene(rig: Rig, built: SimpleNamespace, rng: Any) -> None:
    """Hits are those of the host's build of the same mesh."""
    mesh = _mesh(rng, 300)
    mesh = SmallMesh(mesh.triangles, np.zeros(300, np.uint32), np.arange(300, dtype=np.uint32),
                     np.array([True]))  # fmt: skip
    scene, _ = rig.build([mesh], [BvhInstance(0)])
    host = built.scene(mesh.triangles, reinsertion=0)
    rays = make_rays(*(_rays(rng, 1500) * np.array([[[0.2]], [[0.2]]], np.float32)))
    a, b = oracle.trace(host.words, rays), oracle.trace(scene.words, rays)
    for name in ("t", "u", "v", "object", "primitive", "instance"):
        assert (getattr(a, name) == getattr(b, name)).all(), name
    assert (~a.missed).sum() > 100


@pytest.mark.parametrize("number", [1, 256, 257, 700])
def test_sizes_and_places_of_many_meshes(device: Any, rng: Any, number: int) -> None:
    parameters = np.zeros(1, SMALL_PARAMETERS.dtype)
    parameters["meshes"], parameters["base_unit"] = number, 16
    nodes = np.zeros(900, CLUSTER_NODE.dtype)
    nodes["units"], nodes["leaves"] = rng.integers(1, 300, (900, 3)), rng.integers(0, 200, 900)
    nodes["shares"] = rng.integers(0, 256, 900)
    segments = np.zeros(number, CLUSTER_SEGMENT.dtype)
    segments["root"] = rng.integers(0, 900, number)
    cpu = {
        "parameters": parameters,
        "segments": segments,
        "nodes": nodes,
        "sizes": rng.integers(0, 2**32, number, np.uint32),
        "size_sums": rng.integers(0, 2**32, 3, np.uint32),
        "trees": np.zeros(number, TREE_RECORD.dtype),
        "blases": np.zeros(number, BLAS_RECORD.dtype),
        "total_units": np.zeros(1, np.uint32),
    }
    gpu = {
        name: device.upload(name, value, "UNIFORM|COPY_DST" if name == "parameters" else
                            "STORAGE|COPY_SRC|COPY_DST")
        for name, value in cpu.items()
    }  # fmt: skip
    for twin in (small_sizes, small_places):
        name = twin.__name__
        stage = Stage(device, name, f"bvh/gpu/shaders/{name}.wgsl", twin=twin)
        stage.run(gpu, -(-number // 256))
        stage.run_cpu(cpu)
    for name in ("sizes", "size_sums", "trees", "blases", "total_units"):
        want = np.ascontiguousarray(cpu[name]).reshape(-1).view(np.uint32)
        assert (device.read(gpu[name], count=len(want)) == want).all(), name
    ends = cpu["trees"]["base_unit"] + cpu["sizes"]
    assert (cpu["trees"]["base_unit"] == np.append(16, ends[:-1])).all()
    assert ends[-1] == 16 + cpu["total_units"][0]
