"""A skinned figure, posed and refitted on the GPU, traces as one built anew."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bvh import oracle
from bvh.blas_cache import BlasCache
from bvh.build import BuildOptions, build_blas
from bvh.gpu.compaction import Container, GpuCompaction, plan_compaction
from bvh.gpu.refit_table import refit_table
from bvh.gpu.tlas import GpuTlas, tlas_bytes
from bvh.gpu.tlas_records import BLAS_RECORD, blas_records
from bvh.header import unpack_header
from bvh.rays import make_rays
from bvh.validate import validate
from engine.gpu.errors import UserError
from engine.scene.load import load_scene
from engine.scene.records import VERTEX
from engine.scene.scene import Scene
from engine.scene.skinning import skin
from passes.deforming import DeformingObjects, deforming_blases
from passes.gpu_scene import GpuScene
from passes.prepare import prepare
from passes.rigid import RigidObjects
from treeline.scenes import load

FRAMES = 4
WORDS = VERTEX.size // 4


def _only_deforming(scene: Scene) -> Scene:
    kept = [i for i, item in enumerate(scene.instances) if item.lifetime == "deforming"]
    assert scene.animation is not None
    same = {i: i for i in range(len(scene.meshes))}
    return replace(
        scene,
        instances=tuple(scene.instances[i] for i in kept),
        animation=scene.animation.renumbered(same, kept),
    )


@pytest.fixture(scope="module")
def fox(shared_scenes: Any) -> Scene:
    return load_scene(shared_scenes / "Fox.glb")


@pytest.fixture(scope="module")
def figure() -> Scene:
    return _only_deforming(load())


def _submit(device: Any, encode: Callable[[Any], None]) -> None:
    encoder = device.wgpu.create_command_encoder()
    scope = encoder.begin_compute_pass()
    encode(scope)
    scope.end()
    device.wgpu.queue.submit([encoder.finish()])


def _check_frames(device: Any, scene: Scene, clip_name: str, options: BuildOptions) -> None:
    rng = np.random.default_rng(3)
    prepared = prepare(scene, options)
    gpu = GpuScene(device, prepared)
    moving = DeformingObjects(device, prepared, gpu.bases[2])
    assert scene.animation is not None
    clip = scene.animation.clip(clip_name)
    (number, triangles), *others = deforming_blases(prepared).items()
    assert others == []
    flat = np.concatenate(triangles)
    counts = [len(part) for part in triangles]
    geometry = np.repeat(np.arange(len(counts), dtype=np.uint32), counts)
    primitive = np.concatenate([np.arange(count, dtype=np.uint32) for count in counts])
    seen = []
    for frame in range(FRAMES):
        time = 1.7 * clip.duration * frame / FRAMES
        moving.pose(clip, time)
        _submit(device, lambda scope: moving.encode(scope, gpu.buffers))
        words = device.read(gpu.buffers["bvh"], count=len(prepared.bvh.words))
        geometry_words = device.read(gpu.buffers["geometry"])[gpu.bases[2] :]
        records = geometry_words[: WORDS * len(prepared.pack.vertices)].reshape(-1, WORDS)
        expected = np.ascontiguousarray(prepared.pack.vertices).view(np.uint32).copy()
        skin(
            moving.skinning.parameters(0),
            moving.table.bind_vertices,
            moving.table.influences,
            moving.table.matrices(prepared.scene.animation, scene.animation.worlds(clip, time)),
            expected,
        )
        assert (records[:, :3] == expected.reshape(-1, WORDS)[:, :3]).all()
        positions = records[:, :3].copy().view(np.float32)
        seen.append(positions)
        fresh = build_blas(
            positions[flat], geometry, primitive, np.ones(len(counts), bool), options
        )
        start = int(prepared.bvh.blas_bases[number]) // 4
        refitted = words[start : start + len(prepared.bvh.blas_words(number))]
        assert (words[:start] == prepared.bvh.words[:start]).all()
        assert (unpack_header(refitted).bounds == fresh.bounds).all()
        low, high = fresh.bounds
        origin = low + (high - low) * (3 * rng.random((3000, 3)) - 1)
        target = low + (high - low) * rng.random((3000, 3))
        rays = make_rays(origin.astype(np.float32), (target - origin).astype(np.float32))
        moved, built = oracle.trace(refitted, rays), oracle.trace(fresh.words, rays)
        assert built.hit.sum() > 500
        assert (moved.t == built.t).all()
        same = (moved.object == built.object) & (moved.primitive == built.primitive)
        assert same.mean() > 0.999  # the others lie one on the other: both are hit at one t
        assert all(refit.counts() == (0, 0) for refit in moving.refits.values())
    assert all((seen[0] != other).any() for other in seen[1:])


@pytest.mark.parametrize("leaf", [1, 4])
def test_fox(device: Any, fox: Scene, leaf: int) -> None:
    _check_frames(device, fox, "Run", BuildOptions(leaf=leaf, reinsertion=2))


def test_figure_of_the_hall(device: Any, figure: Scene) -> None:
    _check_frames(device, figure, "walk", BuildOptions(builder="lbvh", reinsertion=0))


def test_the_files_pose_gives_the_built_bytes(device: Any, figure: Scene) -> None:
    """Up to the float32 skinning of vertices that the build had from double precision."""
    prepared = prepare(figure, BuildOptions(builder="lbvh", reinsertion=0))
    gpu = GpuScene(device, prepared)
    moving = DeformingObjects(device, prepared, gpu.bases[2])
    moving.pose(None, 0.0)
    _submit(device, lambda scope: moving.encode(scope, gpu.buffers))
    words = device.read(gpu.buffers["bvh"], count=len(prepared.bvh.words))
    for number in moving.refits:
        start = int(prepared.bvh.blas_bases[number]) // 4
        now, then = unpack_header(words[start:]), unpack_header(prepared.bvh.blas_words(number))
        np.testing.assert_allclose(now.bounds, then.bounds, atol=1e-6)


def test_tlas_follows_in_the_same_submission(device: Any, fox: Scene) -> None:
    """Skinning, refit, table and TLAS in one pass, in a buffer with room for the TLAS."""
    options = BuildOptions(builder="lbvh", reinsertion=0)
    prepared = prepare(fox, options)
    gpu, bvh = GpuScene(device, prepared), prepared.bvh
    containers = [Container("TLAS", 0, 4 * len(bvh.tlas_words), tlas_bytes(4), "deforming")]
    for base, stats in zip(bvh.blas_bases, bvh.blas_stats, strict=True):
        containers.append(Container("BLAS", int(base), stats.bytes, stats.bytes))
    plan = plan_compaction(containers, 4 * len(bvh.words))
    roomy = GpuCompaction(device, plan)
    loose = {"loose": gpu.buffers["bvh"], "loose_links": device.upload("links", bvh.parents)}
    _submit(device, lambda scope: roomy.encode(scope, loose, len(bvh.instances)))

    triangles = deforming_blases(prepared)[0]
    rest = build_blas(
        prepared.pack.vertices["position"][np.concatenate(triangles)],
        np.zeros(len(triangles[0]), np.uint32),
        np.arange(len(triangles[0]), dtype=np.uint32),
        np.ones(1, np.bool_),
        options,
    )
    table = device.upload("blases", blas_records([unpack_header(rest.words)], plan.bases[1:]))
    tlas = GpuTlas(device, 4, table, 1)
    tlas.upload(bvh.instances)
    moving = DeformingObjects(device, prepared, gpu.bases[2], plan.bases[1:])
    assert fox.animation is not None
    moving.pose(fox.animation.clip("Run"), 0.5)

    def frame(scope: Any) -> None:
        buffers = {"bvh": roomy.tight, "geometry": gpu.buffers["geometry"], "blases": table}
        moving.encode(scope, buffers)
        tlas.encode(scope, {"words": roomy.tight, "parents": roomy.tight_links})

    _submit(device, frame)
    words = device.read(roomy.tight, count=plan.target_bytes // 4)
    links = device.read(roomy.tight_links, count=plan.target_bytes // 64)
    bases = np.array(plan.bases[1:], np.uint32)
    moved = replace(bvh, words=words, parents=links, blas_bases=bases)
    assert validate(moved) == []
    bounds = unpack_header(words[int(bases[0]) // 4 :]).bounds
    record = device.read(table, BLAS_RECORD.dtype, count=1)[0]
    assert (np.stack([record["low"], record["high"]]) == bounds).all()
    assert (bounds != rest.bounds).any()
    twin = blas_records([unpack_header(rest.words)], plan.bases[1:])
    refit_table(moving.bounds.numbers, words, twin)
    assert twin[0] == record


@pytest.mark.parametrize("group", ["static", "object", "all"])
def test_numbers_follow_the_groups(fox: Scene, group: str) -> None:
    prepared = prepare(fox, BuildOptions(reinsertion=0), group)
    animation = prepared.scene.animation
    assert animation is not None and len(animation.skinned) == 1
    mesh = prepared.scene.meshes[animation.skinned[0].mesh]
    assert len(mesh.positions) == len(animation.skinned[0].positions)
    assert list(deforming_blases(prepared)) == [0]


def test_nothing_skinned_is_refused(device: Any, shared_scenes: Any) -> None:
    prepared = prepare(load_scene(shared_scenes / "spot.obj"), BuildOptions(reinsertion=0))
    with pytest.raises(UserError, match="skinned"):
        DeformingObjects(device, prepared, 0)


@pytest.mark.parametrize("name", ["Fox.glb", "CesiumMilkTruck.glb"])
def test_what_deforms_is_cached_at_rest_as_what_does_not(
    shared_scenes: Any, tmp_path: Any, name: str
) -> None:
    scene, options = load_scene(shared_scenes / name), BuildOptions(builder="lbvh", reinsertion=0)
    cache = BlasCache(tmp_path)
    first, again = prepare(scene, options, cache=cache), prepare(scene, options, cache=cache)
    assert cache.counts.hits == cache.counts.misses == len(first.bvh.blas_bases) > 0
    assert (first.bvh.words == again.bvh.words).all()
    assert (first.bvh.words == prepare(scene, options).bvh.words).all()


@pytest.mark.parametrize("nodes", ["auto", "fp32"])  # recentred or not
def test_wheels_of_the_truck_turn(shared_scenes: Any, nodes: str) -> None:
    truck = load_scene(shared_scenes / "CesiumMilkTruck.glb")
    prepared = prepare(truck, BuildOptions(builder="lbvh", reinsertion=0, nodes=nodes))
    animation = prepared.scene.animation
    assert animation is not None
    clip = animation.clip()
    worlds = animation.worlds(clip, 0.4 * clip.duration)
    rigid, moved = RigidObjects(prepared), list(prepared.bvh.instances)
    for i, transform in zip(rigid.instances, rigid.transforms(clip, worlds), strict=True):
        moved[i] = replace(moved[i], transform=transform)
    turned = 0
    for now, then in zip(moved, prepared.bvh.instances, strict=True):
        first = prepared.scene.instances[now.first_object]
        if first.lifetime != "rigid":
            assert now == then
            continue
        turned += 1
        loaded = next(x for x in truck.instances if x.name == first.name)
        points = truck.meshes[loaded.mesh].positions
        world = worlds[animation.instance_nodes[now.first_object]]
        recentred = prepared.scene.meshes[first.mesh].positions
        np.testing.assert_allclose(
            recentred @ now.transform[:3, :3].T + now.transform[:3, 3],
            points @ world[:3, :3].T + world[:3, 3],
            atol=1e-5,
        )
        assert np.abs(now.transform - then.transform).max() > 1e-3
    assert turned == 2
