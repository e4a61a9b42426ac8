"""Hidden instances: in no hit of any ray type, in no pixel, and back to the same bytes."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bvh.build import BuildOptions
from bvh.gpu.trace_rays import HIT, Variant, fit_variant, only_instance
from bvh.header import unpack_header
from bvh.oracle import trace as oracle_trace
from bvh.rays import MISS_ID, make_rays
from engine.gpu.errors import UserError
from passes.frame_options import FrameOptions
from passes.gpu_scene import GpuScene
from passes.hidden import hidden_objects, hide
from passes.hybrid import HybridFrame
from passes.prepare import PreparedScene, prepare
from passes.rays import REFLECTION
from treeline.scenes import load

QUICK = BuildOptions(builder="lbvh", reinsertion=0)
SIZE = (96, 54)


@pytest.fixture(scope="module")
def many() -> PreparedScene:
    """The hall with a BLAS a mesh: hundreds of instances, alpha-tested ones too."""
    return prepare(load(), QUICK, "object")


@pytest.fixture(scope="module")
def one(kit: Any) -> PreparedScene:
    """A room as one instance, so that kernels start inside it."""
    prepared = prepare(kit.room(), QUICK, "all")
    assert only_instance(prepared.bvh) is not None
    assert not fit_variant(Variant("x"), prepared.bvh).two_level
    return prepared


def make(device: Any, prepared: PreparedScene, **options: Any) -> HybridFrame:
    return HybridFrame(device, prepared, FrameOptions(*SIZE, **options))


def make_from(frame: HybridFrame, **options: Any) -> HybridFrame:
    """Another frame of the same scene."""
    return HybridFrame(
        frame.device, frame.scene.prepared, FrameOptions(*SIZE, **options), frame.scene
    )


def held(frame: HybridFrame) -> tuple[Any, Any]:
    """(scene buffer, tables) as they are on the GPU."""
    scene = frame.scene
    words = frame.device.read(scene.buffers["bvh"], np.uint32)[: len(scene.prepared.bvh.words)]
    tables = frame.device.read(scene.buffers["tables"], np.uint32)
    return words, tables[: scene.arrays["tables"].size]


def most_seen(frame: HybridFrame, count: int) -> list[int]:
    """The instances that cover the most pixels."""
    objects = frame.aov("object")
    bvh = frame.scene.prepared.bvh
    covered = [np.isin(objects, hidden_objects(bvh, [i])).sum() for i in range(len(bvh.instances))]
    return np.argsort(covered)[::-1][:count].tolist()


@pytest.mark.parametrize("options", [{}, {"gbuffer": "rays"}])
def test_a_hidden_instance_is_in_no_hit(
    device: Any, many: PreparedScene, options: dict[str, Any]
) -> None:
    frame = make(device, many, count=True, **options)
    before_stats = frame.run()
    before, seen, buffers = frame.result_hash(), frame.aov("object"), held(frame)
    hidden = most_seen(frame, 3)
    gone = hidden_objects(many.bvh, hidden)
    names = {many.object_names[i] for i in hidden}
    others = {name for i, name in enumerate(many.object_names) if i not in hidden}
    assert np.isin(seen, gone).sum() > 200
    assert any(name in names for name, _ in before_stats.objects)

    frame.scene.set_hidden(hidden)
    stats = frame.run()
    assert stats.valid
    assert not np.isin(frame.aov("object"), gone).any()
    sent = frame.data.read_records(REFLECTION)
    hits = device.read(frame.data.resources[REFLECTION.results], HIT.dtype, count=len(sent))
    assert len(hits) > 200 and not np.isin(hits["object"], gone).any()
    assert not np.isin(hits["instance"], hidden).any()
    # Nothing was spent inside them by any ray type.
    assert not {name for name, _ in stats.objects} & (names - others)
    # What is not behind a hidden one is seen as before.
    rest = ~np.isin(seen, gone)
    np.testing.assert_array_equal(frame.aov("object")[rest], seen[rest])
    words, tables = held(frame)
    np.testing.assert_array_equal(words, frame.scene.prepared.bvh.words)
    np.testing.assert_array_equal(tables, frame.scene.arrays["tables"].reshape(-1))
    assert (words != buffers[0]).sum() == 3

    frame.scene.set_hidden(hidden[1:])
    frame.run()
    assert np.isin(frame.aov("object"), hidden_objects(many.bvh, hidden[:1])).any()

    frame.scene.set_hidden([])
    assert frame.scene.prepared is many
    frame.run()
    assert frame.result_hash() == before
    np.testing.assert_array_equal(frame.aov("object"), seen)
    for now, then in zip(held(frame), buffers, strict=True):
        np.testing.assert_array_equal(now, then)


@pytest.mark.parametrize("options", [{}, {"gbuffer": "rays"}])
def test_the_only_instance(device: Any, one: PreparedScene, options: dict[str, Any]) -> None:
    frame = make(device, one, count=True, **options)
    frame.run()
    before = frame.result_hash()
    assert (frame.aov("object") >= 0).mean() > 0.5
    frame.scene.set_hidden([0])
    stats = frame.run()
    assert stats.valid and (frame.aov("object") == -1).all()
    assert all(rays.rays == 0 for rays in stats.rays.values())
    frame.scene.set_hidden([])
    frame.run()
    assert frame.result_hash() == before


def test_raster_twin_and_oracle_agree(device: Any, many: PreparedScene) -> None:
    """The same pixels by the rasteriser, by primary rays, by the twins and by the oracle."""
    raster, rays = make(device, many), make(device, many, gbuffer="rays")
    raster.run()
    hidden = most_seen(raster, 2)
    pictures = []
    for frame in (raster, rays):
        frame.scene.set_hidden(hidden)
        frame.run()
        pictures.append(frame.aov("object"))
    twin = rays.run_cpu(until="gbuffer")["ids"][..., 0].astype(np.int64)
    pictures.append(np.where(twin == MISS_ID, -1, twin).reshape(SIZE[::-1]))
    for other in pictures[1:]:
        assert (other != pictures[0]).mean() < 0.01  # alpha-tested edges
    assert not np.isin(pictures[2], hidden_objects(many.bvh, hidden)).any()


def test_the_oracle_never_enters_it(many: PreparedScene, rng: Any) -> None:
    count = 400
    box = many.scene.bounds()
    origin = rng.uniform(*box, (count, 3)).astype(np.float32)
    rays = make_rays(origin, rng.normal(size=(count, 3)).astype(np.float32))
    seen = oracle_trace(many.bvh.words, rays).instance
    hidden = int(np.bincount(seen[seen != MISS_ID]).argmax())
    trace = oracle_trace(hide(many, [hidden]).bvh.words, rays)
    assert (seen == hidden).sum() > 5 and not (trace.instance == hidden).any()


def test_bytes_that_change(many: PreparedScene, one: PreparedScene) -> None:
    hidden = hide(many, [5, 7])
    places = np.flatnonzero(hidden.bvh.words != many.bvh.words)
    assert len(places) == 2
    assert (hidden.bvh.words[places] == many.bvh.words[places] & 0x00FFFFFF).all()
    end = unpack_header(many.bvh.words).size_bytes // 4
    assert (places < end).all()
    moved = (hidden.pack.objects != many.pack.objects).nonzero()[0]
    np.testing.assert_array_equal(moved, hidden_objects(many.bvh, [5, 7]))
    assert not hidden.pack.objects["object_to_world"][moved].any()
    assert hide(many, []) is many
    root = (int(one.bvh.blas_bases[0]) + 128) // 4
    assert (hide(one, [0]).bvh.words[root : root + 4] == 0xFFFFFFFF).all()


def test_an_unknown_instance_is_named(device: Any, many: PreparedScene) -> None:
    scene = GpuScene(device, many)
    for wrong in (-1, len(many.bvh.instances)):
        with pytest.raises(UserError, match=f"no instance {wrong}, there are"):
            scene.set_hidden([3, wrong])
    assert scene.hidden == frozenset() and scene.prepared is many


def test_in_a_scene_that_moves(device: Any, shared_scenes: Any) -> None:
    """Hidden at rest and in every pose, whether or not it moves; shown again, all is as it was."""
    scene = load(shared_scenes / "CesiumMilkTruck.glb")
    assert scene.animation is not None
    clip = scene.animation.clips[0].name
    prepared = prepare(scene, QUICK, "object")
    frame = make(device, prepared, gbuffer="rays")

    def seen(time: float | None) -> Any:
        posed = None if time is None else clip
        frame.run(0, 1, replace(frame.inputs, clip=posed, time=time or 0.0))
        return frame.aov("object")

    times = (None, 0.2, 0.7, None)
    before = [seen(time) for time in times]
    instances = range(len(prepared.bvh.instances))
    for index in instances:
        gone = hidden_objects(prepared.bvh, [index])
        frame.scene.set_hidden([index])
        for time, then in zip(times, before, strict=True):
            now = seen(time)
            assert not np.isin(now, gone).any()
            rest = ~np.isin(then, gone)
            assert (now[rest] == then[rest]).all()
        raster = make_from(frame, gbuffer="raster")
        raster.run(0, 1, replace(raster.inputs, clip=clip, time=0.7))
        assert not np.isin(raster.aov("object"), gone).any()
        seen(0.2)  # shown again in a pose
        frame.scene.set_hidden([])
        for time, then in zip(times[1:], before[1:], strict=True):
            np.testing.assert_array_equal(seen(time), then)
    words, tables = held(frame)
    np.testing.assert_array_equal(words, prepared.bvh.words)
    np.testing.assert_array_equal(tables, frame.scene.arrays["tables"].reshape(-1))
    covered = [np.isin(before[1], hidden_objects(prepared.bvh, [i])).sum() for i in instances]
    assert min(covered) > 0


def test_the_only_instance_that_deforms_is_refused(device: Any, shared_scenes: Any) -> None:
    prepared = prepare(load(shared_scenes / "Fox.glb"), QUICK, "object")
    assert only_instance(prepared.bvh) is not None
    scene = GpuScene(device, prepared)
    with pytest.raises(UserError, match="deforms and is the only instance"):
        scene.set_hidden([0])
    assert scene.prepared is prepared
