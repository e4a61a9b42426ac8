"""A loose scene buffer becomes the one that a tight assembly gives, byte for byte."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from bvh import oracle
from bvh.build import Blas, BuildOptions, build_blas
from bvh.encode import encode
from bvh.gpu.compaction import (
    Container,
    GpuCompaction,
    copy_containers,
    patch_instances,
    plan_compaction,
)
from bvh.header import pack_header, unpack_header
from bvh.layout import HEADER_BYTES, INVALID_POINTER
from bvh.rays import make_rays
from bvh.scene_bvh import SceneBvh, assemble
from bvh.tlas import BvhInstance, build_tlas
from bvh.validate import validate

OPTIONS = BuildOptions(reinsertion=0)
GARBAGE = np.uint32(0xDEADBEEF)


def _blas(rng: np.random.Generator, count: int, **options: Any) -> Blas:
    corners = rng.random((count, 1, 3)) + 0.1 * rng.normal(size=(count, 3, 3))
    ids = np.arange(count, dtype=np.uint32)
    given = (corners.astype(np.float32), np.zeros_like(ids), ids, np.ones(1, np.bool_))
    return build_blas(*given, replace(OPTIONS, **options))


def _scene(rng: np.random.Generator, sizes: list[int], **options: Any) -> SimpleNamespace:
    """BLASes, two instances of each, and names."""
    blases = [_blas(rng, size, **options) for size in sizes]
    instances = []
    for i in rng.permutation(2 * len(sizes)) % max(len(sizes), 1):
        transform = np.eye(4)
        transform[:3, 3] = 3 * rng.normal(size=3)
        instances.append(BvhInstance(int(i), transform))
    names = [f"blas {i}" for i in range(len(sizes))]
    return SimpleNamespace(blases=blases, instances=instances, names=names)


def _loosely(scene: SimpleNamespace, room: float, order: Any = None) -> SimpleNamespace:
    """The scene with every BLAS in `room` times its size, in any order, garbage in between."""
    tlas_words, _ = encode(build_tlas(scene.blases, np.zeros(99, int), scene.instances, OPTIONS))
    bases = np.zeros(len(scene.blases), np.int64)
    rooms = [-(-int(room * 4 * len(b.words)) // 256) * 256 for b in scene.blases]
    end = -(-4 * len(tlas_words) // 256) * 256 + 512
    for i in range(len(scene.blases)) if order is None else order:
        bases[i] = end
        end += rooms[i]
    words = np.full(end // 4, GARBAGE)
    links = np.full(end // 64, GARBAGE)
    tlas = encode(build_tlas(scene.blases, bases, scene.instances, OPTIONS))
    words[: len(tlas[0])], links[: len(tlas[1])] = tlas
    for base, blas in zip(bases, scene.blases, strict=True):
        words[base // 4 :][: len(blas.words)] = blas.words
        header = replace(unpack_header(blas.words), base_bytes=int(base))
        words[base // 4 :][: HEADER_BYTES // 4] = pack_header(header)
        links[base // 64 :][: len(blas.parents)] = blas.parents
    containers = [Container("TLAS", 0, 4 * len(tlas[0]), 4 * len(tlas[0]))]
    for i, blas in enumerate(scene.blases):
        used = 4 * len(blas.words)
        containers.append(Container(scene.names[i], int(bases[i]), used, rooms[i]))
    return SimpleNamespace(words=words, links=links, containers=containers, bytes=end)


def _compact(device: Any, loose: SimpleNamespace, instances: int) -> SimpleNamespace:
    """On the GPU; the twins have to give the same."""
    plan = plan_compaction(loose.containers, loose.bytes)
    stage = GpuCompaction(device, plan)
    buffers = {
        "loose": device.upload("loose", loose.words),
        "loose_links": device.upload("loose links", loose.links),
    }
    encoder = device.wgpu.create_command_encoder()
    scope = encoder.begin_compute_pass()
    stage.encode(scope, buffers, instances)
    scope.end()
    device.wgpu.queue.submit([encoder.finish()])
    words = device.read(stage.tight, count=plan.target_bytes // 4)
    links = device.read(stage.tight_links, count=plan.target_bytes // 64)
    twin = SimpleNamespace(words=np.zeros_like(words), links=np.zeros_like(links))
    parameters = np.zeros(1, [("moves", "u4"), ("tlas_unit", "u4")])
    parameters["moves"] = len(plan.moves)
    lost = np.zeros(1, np.uint32)
    copy_containers(parameters, plan.moves, loose.words, loose.links, twin.words, twin.links)
    patch_instances(parameters, plan.moves, twin.words, lost)
    assert (words == twin.words).all() and (links == twin.links).all()
    assert stage.lost() == lost[0]
    return SimpleNamespace(words=words, links=links, plan=plan, lost=stage.lost())


@pytest.mark.parametrize(
    "sizes, options",
    [
        ([1], {}),
        ([0, 3], {}),
        ([400, 2, 77, 1500], {"leaf": 2}),
        ([90, 700], {"nodes": "fp32", "leaf": 1}),
        ([300, 20], {"leaf": 4}),
    ],
)
def test_equals_a_tight_assembly(device: Any, rng: Any, sizes: Any, options: Any) -> None:
    scene = _scene(rng, sizes, **options)
    loose = _loosely(scene, 1.7, rng.permutation(len(sizes)))
    tight = assemble(scene.blases, scene.names, scene.instances, OPTIONS)
    got = _compact(device, loose, len(scene.instances))
    assert got.lost == 0
    assert got.plan.bases[1:] == tuple(tight.blas_bases)
    used = got.links[: len(tight.parents)] != 0  # gaps are zero here, INVALID_POINTER there
    assert (got.words == tight.words).all()
    assert (got.links == tight.parents)[used].all()
    assert (tight.parents[~used] == INVALID_POINTER).all()
    assert validate(replace(tight, words=got.words, parents=got.links)) == []


def test_hits_are_those_of_before(device: Any, rng: Any) -> None:
    scene = _scene(rng, [500, 60, 240])
    loose = _loosely(scene, 1.3)
    got = _compact(device, loose, len(scene.instances))
    origin = (8 * rng.normal(size=(3000, 3))).astype(np.float32)
    rays = make_rays(origin, (rng.normal(size=(3000, 3)) - origin).astype(np.float32))
    before, after = oracle.trace(loose.words, rays), oracle.trace(got.words, rays)
    assert before.hit.sum() > 100
    for name in ("t", "object", "primitive", "instance"):
        assert (getattr(before, name) == getattr(after, name)).all()


def test_what_moves_keeps_its_room(device: Any, rng: Any) -> None:
    scene = _scene(rng, [300, 300, 300])
    loose = _loosely(scene, 2.0)
    for i, lifetime in ((2, "deforming"), (3, "rigid")):
        loose.containers[i] = replace(loose.containers[i], lifetime=lifetime)
    got = _compact(device, loose, len(scene.instances))
    spans = np.diff([*got.plan.bases, got.plan.target_bytes])
    used = [-(-c.used_bytes // 256) * 256 for c in loose.containers]
    assert list(spans[:2]) == used[:2]
    assert spans[2] == loose.containers[2].room_bytes > 1.9 * loose.containers[2].used_bytes
    assert spans[3] == loose.containers[3].used_bytes
    bvh = SceneBvh(
        got.words,
        got.links,
        np.array(got.plan.bases[1:], np.uint32),
        tuple(blas.stats for blas in scene.blases),
        tuple(scene.names),
        tuple(scene.instances),
        OPTIONS,
    )
    assert validate(bvh) == []
    plan = got.plan
    assert plan.before_bytes == loose.bytes + loose.bytes // 16
    assert plan.after_bytes == plan.target_bytes + plan.target_bytes // 16
    assert plan.peak_bytes == plan.before_bytes + plan.after_bytes
    assert f"{plan.after_bytes:,} after" in str(plan)


def test_an_instance_of_what_was_left_behind_is_counted(device: Any, rng: Any) -> None:
    scene = _scene(rng, [30, 40, 50])
    loose = _loosely(scene, 1.2)
    del loose.containers[2]
    assert _compact(device, loose, len(scene.instances)).lost == 2


def test_containers_that_are_not_there_are_refused() -> None:
    good = Container("x", 256, 128, 256)
    for change in (
        {"source_bytes": 64},
        {"used_bytes": 100},
        {"used_bytes": 512},
        {"used_bytes": 1024, "room_bytes": 2048},
    ):
        with pytest.raises(ValueError, match="no container"):
            plan_compaction([replace(good, **change)], 1024)
    assert plan_compaction([good], 1024).target_bytes == 128
