"""The BLASes of a scene: where they are built, what they share, what the cache saves."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import passes.build_blases as module
from bvh.blas_cache import BlasCache
from bvh.build import Blas, BuildOptions, build_blas
from bvh.validate import validate
from engine.gpu.errors import LimitError
from engine.scene.load import load_scene
from engine.scene.scene import Scene
from passes.build_blases import BlasRequest, SharedBuilder, build_blases
from passes.opacity import scene_opacity
from passes.prepare import prepare

NEAR = BuildOptions(builder="ploc", reinsertion=1, pairing="near")


@pytest.fixture(scope="module")
def truck(shared_scenes: Path) -> Scene:
    """Several meshes of 1,000 triangles and fewer."""
    return load_scene(shared_scenes / "CesiumMilkTruck.glb")


def _requests(scene: Scene) -> list[BlasRequest]:
    opacity = scene_opacity(scene, "triangle")
    return [BlasRequest(m.name, (m,), (o,)) for m, o in zip(scene.meshes, opacity, strict=True)]


@pytest.mark.parametrize("builder", ["sah", "ploc"])
@pytest.mark.parametrize("nodes", ["auto", "fp32"])
def test_a_device_makes_the_same_bytes(device: Any, truck: Scene, builder: str, nodes: str) -> None:
    options = BuildOptions(builder=builder, nodes=nodes, reinsertion=1, pairing="near")
    shared = SharedBuilder(device, all_there=True)
    on_gpu = prepare(truck, options, "object", build=shared.build)
    on_cpu = prepare(truck, options, "object")
    assert shared.places == {"gpu"}
    assert len(on_gpu.bvh.blas_names) > 1 and validate(on_gpu.bvh) == []
    assert on_gpu.bvh.blas_names == on_cpu.bvh.blas_names
    assert on_gpu.bvh.words.tobytes() == on_cpu.bvh.words.tobytes()
    assert on_gpu.bvh.parents.tobytes() == on_cpu.bvh.parents.tobytes()
    for one, other in zip(on_gpu.bvh.blas_stats, on_cpu.bvh.blas_stats, strict=True):
        assert (one.triangles, one.pairs, one.sah) == (other.triangles, other.pairs, other.sah)


def test_best_pairing_stays_on_the_cpu(
    device: Any, truck: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "GpuBlasBuilder", None)
    options = BuildOptions(builder="lbvh", reinsertion=0)
    with_device, without = (prepare(truck, options, device=d) for d in (device, None))
    assert with_device.bvh.words.tobytes() == without.bvh.words.tobytes()


def test_meshes_of_one_size_share_a_builder(device: Any) -> None:
    shared = SharedBuilder(device)
    first = shared.builder(10, NEAR)
    assert shared.builder(1000, NEAR) is first
    larger = shared.builder(1025, NEAR)
    assert larger is not first and larger.capacity == 4096
    assert shared.builder(1025, BuildOptions(builder="lbvh", pairing="near")) is not larger


def test_small_meshes_are_not_worth_a_cpu_drivers_dispatches(
    device: Any, rng: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SMALL_ON_CPU_DRIVERS", 50)
    shared = SharedBuilder(device)
    for count in (50, 51):
        corners = rng.random((count, 3, 3)).astype(np.float32)
        ids = np.arange(count, dtype=np.uint32)
        given = (corners, 0 * ids, ids, np.ones(1, np.bool_), NEAR)
        made = shared.build(*given)
        assert made.words.tobytes() == build_blas(*given).words.tobytes()
        if count == 50:
            assert shared.places == ({"cpu"} if device.info.is_cpu else {"gpu"})
    assert "gpu" in shared.places


def test_large_ones_first_and_each_in_its_place(truck: Scene) -> None:
    sizes: list[int] = []
    told: list[tuple[int, str, int, int]] = []

    def build(triangles: Any, *rest: Any) -> Blas:
        sizes.append(len(triangles))
        return build_blas(triangles, *rest)

    requests = _requests(truck)
    options = BuildOptions(builder="lbvh", reinsertion=0)
    blases = build_blases(requests, options, build, told=lambda *call: told.append(call))
    assert sizes == sorted(sizes, reverse=True) and len(sizes) == len(requests) > 2
    counts = [b.stats.triangles + b.stats.dropped_degenerate for b in blases]
    assert counts == [request.triangles for request in requests]
    assert [call[2:] for call in told] == [(i, len(requests)) for i in range(len(requests))]
    assert [requests[index].name for index, *_ in told] == [name for _, name, *_ in told]


def test_what_the_cache_has_needs_no_builder(
    device: Any, truck: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = BlasCache(tmp_path)
    shared = SharedBuilder(device, all_there=True)
    first = prepare(truck, NEAR, "object", cache, build=shared.build)
    assert cache.counts.misses == len(first.bvh.blas_names)
    monkeypatch.setattr(module, "GpuBlasBuilder", None)
    again = prepare(truck, NEAR, "object", cache, device)
    assert again.bvh.words.tobytes() == first.bvh.words.tobytes()
    # The CPU's are the same bytes, and so the same entries.
    prepare(truck, NEAR, "object", cache)
    assert cache.counts.hits == 2 * cache.counts.misses


def test_what_deforms_is_cached_as_it_lies_at_rest(truck: Scene, tmp_path: Path) -> None:
    """With the leaves that it can be refitted by, too, which not every build has."""
    cache, built = BlasCache(tmp_path), []
    requests = [replace(_requests(truck)[0], lasting=False)]

    def build(*given: Any) -> Blas:
        built.append(given[-1].leaf)
        return build_blas(*given)

    def fits(index: int, blas: Blas) -> bool:
        return blas.stats.pairs == 0

    first = build_blases(requests, NEAR, build, cache, fits=fits)
    assert built == [2, 1] and first[0].stats.pairs == 0
    again = build_blases(requests, NEAR, build, cache, fits=fits)
    assert built == [2, 1] and cache.counts.hits == 2
    assert again[0].words.tobytes() == first[0].words.tobytes()
    assert (
        build_blases(requests, NEAR, build, cache)[0].stats.pairs > 0
    )  # nobody asks whether it fits
    assert built == [2, 1]


def test_what_does_not_fit_is_named(truck: Scene) -> None:
    def build(*given: Any) -> Blas:
        raise LimitError("no room for 9 bytes")

    request = _requests(truck)[0]
    expected = f"{request.name}, {request.triangles:,} triangles: no room for 9 bytes"
    with pytest.raises(LimitError) as caught:
        build_blases([request], NEAR, build)
    assert str(caught.value) == expected
