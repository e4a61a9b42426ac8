"""Triangles to guest bytes on the GPU: the bytes of the twins on the CPU, valid and traceable."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bvh import oracle
from bvh.blas import BuildOptions
from bvh.brute_force import closest
from bvh.build import build_blas, build_by_twins
from bvh.builders import BUILDERS
from bvh.gpu.blas_builder import GpuBlasBuilder
from bvh.rays import make_rays
from bvh.scene_bvh import assemble
from bvh.tlas import BvhInstance
from bvh.validate import validate
from engine.gpu.errors import LimitError, UserError
from engine.scene.load import load_scene

CAPACITY = 3000
HALL = Path(__file__).resolve().parents[3] / "assets" / "hall.glb"
NAMES = [builder.name for builder in BUILDERS if builder.gpu is not None]
LBVH = BuildOptions(builder="lbvh", reinsertion=0, pairing="near")


@pytest.fixture(scope="module")
def builders(device: Any) -> Any:
    """One a set of options, for the whole file: every use after the first finds dirty scratch."""
    made: dict[BuildOptions, GpuBlasBuilder] = {}

    def get(options: BuildOptions) -> GpuBlasBuilder:
        if options not in made:
            made[options] = GpuBlasBuilder(device, CAPACITY, options)
        return made[options]

    return get


def _soup(rng: np.random.Generator, count: int) -> np.ndarray:
    """Quads of many sizes in two triangles each, some of them broken."""
    size = 10.0 ** rng.uniform(-4, -0.5, (count, 1, 1))
    triangles = rng.random((count, 1, 3)) * 20 - 4 + size * rng.normal(size=(count, 3, 3))
    other = triangles[: count // 2 * 2 : 2]
    triangles[1::2] = other[:, [0, 2, 1]]
    triangles[1::2, 0] = other[:, 1] + other[:, 2] - other[:, 0]
    triangles = triangles.astype(np.float32)
    triangles[9::37, 0] = triangles[9::37, 1]
    triangles[12::41, 1, 2] = np.nan
    triangles[14::43, 2, 0] = np.inf
    return triangles


def _ids(count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    every = np.arange(count, dtype=np.uint32)
    return every // 2 % 3, every[::-1].copy(), np.array([True, False, True])


def _same(blas: Any, expected: Any) -> None:
    assert blas.words.tobytes() == expected.words.tobytes()
    assert blas.parents.tobytes() == expected.parents.tobytes()
    assert blas.bounds.tobytes() == expected.bounds.tobytes()
    assert blas.geometry_count == expected.geometry_count
    assert replace(blas.stats, build_ms=0.0) == replace(expected.stats, build_ms=0.0)
    assert validate(assemble([blas], ["mesh"], [BvhInstance(0, np.eye(4))])) == []


def _check(builders: Any, triangles: np.ndarray, options: BuildOptions) -> Any:
    """Both ways of the same build; the reading of the GPU's. SAH on the GPU knows its capacity, so
    that the twins need it too."""
    blas = builders(options).build(triangles, *_ids(len(triangles)))
    _same(blas, build_by_twins(triangles, *_ids(len(triangles)), options, CAPACITY))
    return blas


@pytest.mark.parametrize("builder", NAMES)
@pytest.mark.parametrize("count", [0, 1, 2, 3, 4, 257, CAPACITY])
def test_bytes_are_those_of_the_twins(builders: Any, rng: Any, builder: str, count: int) -> None:
    blas = _check(builders, _soup(rng, count), replace(LBVH, builder=builder))
    if count == CAPACITY:
        assert blas.stats.dropped_degenerate > 50 and blas.stats.dropped_nonfinite > 100
        assert blas.stats.triangles_per_block > 1.7
        assert 0.1 < blas.stats.nodes_fp16 / blas.stats.nodes_fp32 < 10


@pytest.mark.parametrize(
    "options",
    [
        replace(LBVH, leaf=1),
        replace(LBVH, nodes="fp32"),
        replace(LBVH, nodes="fp16", collapse="greedy"),
        replace(LBVH, reinsertion=2),
    ],
    ids=["leaf 1", "fp32", "greedy fp16", "reinsertion"],
)
def test_every_option(builders: Any, rng: Any, options: BuildOptions) -> None:
    _check(builders, _soup(rng, 1500), options)


def _awkward() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(8)
    flat = rng.random((700, 3, 3)).astype(np.float32)
    flat[:, :, 1] = 0.25
    strip = np.zeros((600, 3, 3), np.float32)
    strip[:, :, 0] = (np.arange(600)[:, None] + [0, 1, 0]) * (1e6 / 600)
    strip[:, 2, 1] = 1e-6
    far = rng.random((500, 3, 3)) * 4e5
    spread = rng.normal(size=(500, 3, 3)) * 10.0 ** rng.uniform(-20, 20, (500, 1, 1))
    return {
        "all equal": np.repeat(np.eye(3, dtype=np.float32)[None], 900, axis=0),
        "one plane": flat,
        "a strip": strip,
        "beyond halves": far.astype(np.float32),
        "every scale": spread.astype(np.float32),
        "nothing usable": np.full((300, 3, 3), np.nan, np.float32),
        "on a line": np.repeat(rng.random((300, 3, 1)).astype(np.float32), 3, axis=2),
        "negative zeros": flat * np.float32([-1, 0, -1]),
    }


@pytest.mark.parametrize("builder", NAMES)
@pytest.mark.parametrize("name", list(_awkward()))
def test_awkward_input(builders: Any, name: str, builder: str) -> None:
    _check(builders, _awkward()[name], replace(LBVH, builder=builder))


def test_meshes_of_the_hall(device: Any) -> None:
    scene = load_scene(HALL)
    meshes = sorted(scene.meshes, key=lambda mesh: len(mesh.triangles))
    chosen = [mesh for mesh in meshes if len(mesh.triangles) <= 12_000][-1]
    triangles = chosen.positions[chosen.triangles].astype(np.float32)
    ids = _ids(len(triangles))
    blas = build_blas(triangles, *ids, LBVH, device=device)
    _same(blas, build_blas(triangles, *ids, LBVH))


def test_a_part_of_the_bunny(device: Any, shared_scenes: Any) -> None:
    mesh = load_scene(shared_scenes / "stanford-bunny.obj").meshes[0]
    triangles = mesh.positions[mesh.triangles[:9000]].astype(np.float32)
    blas = build_blas(triangles, *_ids(9000), LBVH, device=device)
    _same(blas, build_blas(triangles, *_ids(9000), LBVH))


@pytest.mark.parametrize("builder", NAMES)
def test_hits_equal_brute_force(builders: Any, rng: Any, builder: str) -> None:
    centre = rng.random((600, 1, 3)) * 4
    triangles = (centre + 0.3 * rng.normal(size=(600, 3, 3))).astype(np.float32)
    every = np.arange(600, dtype=np.uint32)
    item = builders(replace(LBVH, builder=builder))
    blas = item.build(triangles, np.zeros_like(every), every, np.ones(1, np.bool_))
    scene = assemble([blas], ["mesh"], [BvhInstance(0, np.eye(4))])
    rays = make_rays(rng.random((300, 3)) * 4, rng.normal(size=(300, 3)))
    expected = closest(triangles, rays)
    got = oracle.trace(scene.words, rays)
    hit = np.isfinite(expected.t)
    assert 100 < hit.sum() < 300
    assert (np.isfinite(got.t) == hit).all()
    assert np.allclose(got.t[hit], expected.t[hit], rtol=1e-4)


def test_same_input_same_bytes(builders: Any, rng: Any) -> None:
    triangles = _soup(rng, CAPACITY)
    triangles[100:900] = triangles[100]
    item = builders(LBVH)
    first = item.build(triangles, *_ids(CAPACITY))
    second = item.build(triangles, *_ids(CAPACITY))
    assert first.words.tobytes() == second.words.tobytes()


def test_one_pass_for_many_dispatches(builders: Any, rng: Any) -> None:
    """Fewer than 220, and the phases are the whole build."""
    item = builders(LBVH)
    item.upload(_soup(rng, 500), *_ids(500))

    class Scope:
        dispatches = 0

        def set_pipeline(self, _: Any) -> None: ...
        def set_bind_group(self, *_: Any) -> None: ...
        def dispatch_workgroups(self, *_: int) -> None:
            self.dispatches += 1

    whole, parts = Scope(), Scope()
    item.encode(whole)
    for encode_phase in item.phases().values():
        encode_phase(parts)
    assert 50 < whole.dispatches == parts.dispatches < 220
    assert list(item.phases())[:4] == ["set-up", "pairs", "morton", "sort"]
    assert list(item.phases())[-3:] == ["order", "collapse", "encode"]


def test_refusals(device: Any, builders: Any, rng: Any) -> None:
    with pytest.raises(UserError, match="pairs near triangles"):
        GpuBlasBuilder(device, 10, BuildOptions(builder="lbvh", pairing="best"))
    with pytest.raises(UserError, match="unknown pairing"):
        BuildOptions(pairing="far")
    with pytest.raises(ValueError, match="made for"):
        builders(LBVH).upload(_soup(rng, CAPACITY + 1), *_ids(CAPACITY + 1))
    small = GpuBlasBuilder(device, 300, LBVH, output_bytes=4096)
    with pytest.raises(LimitError, match="has room for 4,096"):
        small.build(_soup(rng, 300), *_ids(300))
    limit = min(device.limits["max-storage-buffer-binding-size"], device.limits["max-buffer-size"])
    if limit // 24 < 1 << 29:
        with pytest.raises(LimitError, match="needs .* bytes, but .* binds at most"):
            GpuBlasBuilder(device, limit // 24 + 1, LBVH)
