"""Every builder, on the CPU and on the GPU, over input that tempts one into a wrong structure: each
build ends in a valid one that loses no hit, or in an error that says what it cannot do.

What a ray has to hit is asked of the tracers' own triangle test over all triangles.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from bvh import oracle
from bvh.blas import Blas, BuildOptions
from bvh.brute_force import closest_watertight
from bvh.build import build_blas
from bvh.builders import BUILDERS
from bvh.coordinate_range import LARGEST, SMALLEST, check_range, scale_into_range
from bvh.decode import decode
from bvh.gpu.blas_builder import GpuBlasBuilder
from bvh.gpu.trace_rays import RayTracer, Variant
from bvh.gpu.validate import GpuValidate
from bvh.rays import Rays, make_rays
from bvh.scene_bvh import assemble
from bvh.tlas import BvhInstance
from bvh.tree import EMPTY
from bvh.validate import validate
from engine.gpu.errors import LimitError, UserError

CAPACITY = 400
RAYS = 48
LEAVES = (1, 2, 4)
NAMES = [builder.name for builder in BUILDERS]
ON_GPU = [
    (builder.name, leaf)
    for builder in BUILDERS
    for leaf in LEAVES
    if builder.gpu is not None and not (builder.gpu_split is not None and leaf == 4)
]
ONE = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0]], np.float32)
Build = Callable[[np.ndarray], Blas]


def _soup(rng: np.random.Generator, count: int, size: float = 1.0) -> np.ndarray:
    return (rng.random((count, 1, 3)) * 4 + 0.3 * rng.normal(size=(count, 3, 3))) * size


def _strip(length: float, width: float, quads: int) -> np.ndarray:
    x = np.linspace(0, length, quads + 1)
    near, far = np.zeros((quads, 3)), np.zeros((quads, 3))
    near[:, 0], far[:, 0] = x[:-1], x[1:]
    up = np.array([0, width, 0])
    pairs = [np.stack([near, far, far + up], 1), np.stack([near, far + up, near + up], 1)]
    return np.stack(pairs, 1).reshape(-1, 3, 3)


def _make(name: str) -> np.ndarray:
    rng = np.random.default_rng(len(name))
    if name == "equal centroids":
        soup = rng.normal(size=(150, 3, 3))
        return soup - soup.mean(axis=1, keepdims=True)
    if name == "one plane":
        return rng.random((150, 3, 3)) * [1, 0, 1] + [0, 0.25, 0]
    if name == "copies":
        return np.repeat(ONE[None], 300, axis=0)
    if name == "strip":
        return _strip(1e6, 1e-6, 150)
    if name == "not finite":
        soup = _soup(rng, 100)
        soup[3, 1, 1], soup[7, 0, 0], soup[9, 2, 2] = np.nan, np.inf, -np.inf
        return soup
    if name == "nothing finite":
        return np.full((5, 3, 3), np.nan)
    if name == "beyond halves":
        return _soup(rng, 100, 1e5)
    if name == "near and far":
        return np.concatenate([_soup(rng, 60, 1e-3), _soup(rng, 60, 1e5)])
    if name == "largest":
        return _soup(rng, 100, LARGEST / 8)
    if name == "smallest":
        return _soup(rng, 100, SMALLEST)
    return _soup(rng, 3)[: int(name)]


SHAPES = (
    "0",
    "1",
    "2",
    "3",
    "equal centroids",
    "one plane",
    "copies",
    "strip",
    "not finite",
    "nothing finite",
    "beyond halves",
    "near and far",
    "largest",
    "smallest",
)


def _aimed(triangles: np.ndarray, rng: np.random.Generator) -> Rays:
    """At points of triangles, from about as far off as these are long: float32 resolves such rays.
    A thin strip is only hit straight from above."""
    wide = triangles[:60].astype(np.float64)  # of "near and far", those that are near
    chosen = wide[rng.integers(0, len(wide), RAYS)]
    target = (rng.dirichlet((2, 2, 2), RAYS)[:, :, None] * chosen).sum(axis=1)
    length = np.linalg.norm(chosen[:, 1] - chosen[:, 0], axis=1, keepdims=True)
    thin = 0 < 1e6 * np.ptp(chosen[:, :, 1]) < length.max()
    way = rng.normal(size=(RAYS, 3)) * ([0, 0, 1] if thin else [1, 1, 1]) * length
    return make_rays(target - way, way / np.linalg.norm(way, axis=1, keepdims=True))


def _ids(count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return np.zeros(count, np.uint32), np.arange(count, dtype=np.uint32), np.ones(1, np.bool_)


def _check(triangles: np.ndarray, build: Build, rng: np.random.Generator) -> Blas:
    """Builds, validates, traces."""
    triangles = triangles.astype(np.float32)
    blas = build(triangles)
    scene = assemble([blas], ["mesh"], [BvhInstance(0, np.eye(4))])
    assert validate(scene) == []
    finite = np.isfinite(triangles).all(axis=(1, 2))
    assert blas.stats.dropped_nonfinite == (~finite).sum()
    assert blas.stats.triangles == finite.sum() and blas.stats.dropped_degenerate == 0
    if finite.any():
        rays = _aimed(triangles[finite], rng)
        expected, _ = closest_watertight(triangles[finite], rays)
        got = oracle.trace(scene.words, rays)
        assert not got.overflows.any() and np.isfinite(expected).sum() > RAYS // 2
        assert (got.hit == np.isfinite(expected)).all()
        assert got.t[got.hit] == pytest.approx(expected[got.hit], rel=1e-6)
    return blas


@pytest.mark.parametrize("leaf", LEAVES)
@pytest.mark.parametrize("builder", NAMES)
@pytest.mark.parametrize("shape", SHAPES)
def test_on_the_cpu(rng: Any, shape: str, builder: str, leaf: int) -> None:
    options = BuildOptions(builder=builder, leaf=leaf, reinsertion=2 * (leaf == 2))
    _check(_make(shape), lambda t: build_blas(t, *_ids(len(t)), options), rng)


@pytest.fixture(scope="module")
def gpu_builds(device: Any) -> Callable[[BuildOptions], Build]:
    """Builders kept for the whole file: every build after the first finds dirty scratch. What they
    make is checked on the GPU, too."""
    made: dict[BuildOptions, GpuBlasBuilder] = {}
    validators = {uses: GpuValidate(device, CAPACITY, uses) for uses in (1, CAPACITY)}

    def get(options: BuildOptions) -> Build:
        if options not in made:
            made[options] = GpuBlasBuilder(device, CAPACITY, options)
        item = made[options]
        validator = validators[1 if item.splits is None else CAPACITY]

        def build(triangles: np.ndarray) -> Blas:
            blas = item.build(triangles, *_ids(len(triangles)))
            buffers = item.resources
            assert validator.check(buffers["words"], buffers["parent_links"]) == []
            return blas

        return build

    return get


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("builder", "leaf"), ON_GPU)
def test_on_the_gpu(rng: Any, gpu_builds: Any, shape: str, builder: str, leaf: int) -> None:
    rounds = 2 * (leaf == 2)
    options = BuildOptions(builder=builder, leaf=leaf, reinsertion=rounds, pairing="near")
    _check(_make(shape), gpu_builds(options), rng)


@pytest.mark.parametrize("where", ["cpu", "gpu"])
@pytest.mark.parametrize("nodes", ["auto", "fp16"])
def test_halves_never_overflow(rng: Any, gpu_builds: Any, nodes: str, where: str) -> None:
    """A node with a bound beyond binary16 stays FP32, whatever was asked for; the others do not."""
    options = BuildOptions(builder="ploc", nodes=nodes, reinsertion=0, pairing="near")

    def on_cpu(triangles: Any) -> Any:
        return build_blas(triangles, *_ids(len(triangles)), options)

    build = on_cpu if where == "cpu" else gpu_builds(options)
    for shape, some in (("beyond halves", False), ("near and far", True)):
        blas = _check(_make(shape), build, rng)
        image = decode(blas.words)
        used = image.children != EMPTY
        far = (np.abs(image.boxes) > 65504).any(axis=(2, 3)) & used
        assert far.any() and np.isfinite(image.boxes[used]).all()
        assert not (far.any(axis=1) & image.half).any()
        assert image.half.any() == some


@pytest.mark.parametrize("where", ["cpu", "gpu"])
def test_many_copies_end_or_are_flagged(device: Any, where: str) -> None:
    """Every box is hit at the same distance, so that nothing can be skipped."""
    copies = np.repeat(ONE[None], 20_000, axis=0)
    options = BuildOptions(builder="ploc", reinsertion=0, pairing="near", leaf=4)
    on = device if where == "gpu" else None
    blas = build_blas(copies, *_ids(len(copies)), options, device=on)
    scene = assemble([blas], ["mesh"], [BvhInstance(0, np.eye(4))])
    assert validate(scene) == []
    place = np.random.default_rng(3).random((64, 2)) * 0.45 + 0.01
    rays = make_rays(np.column_stack([place, np.ones(64)]), [0, 0, -1])
    got = RayTracer(device, scene.words, Variant("copies", has_fans=True)).trace(rays)
    assert got.failures == () and (got.hits["t"] == 1).all()
    capped = oracle.trace(scene.words, rays, step_limit=300)
    assert (capped.overflows > 0).all() and not capped.missed.any()


@pytest.mark.parametrize("size", [1e15, 1e37, 1e-15, 1e-38])
def test_triangles_out_of_range_are_refused(size: float) -> None:
    triangles = _soup(np.random.default_rng(1), 20, size).astype(np.float32)
    triangles[4, 1, 1] = np.nan  # is dropped, and hides nothing
    with pytest.raises(UserError, match=r"triangle \d+ of geometry 0: .* 9.1e-13 to 1.1e\+12"):
        build_blas(triangles, *_ids(20), BuildOptions())


def test_the_range_and_its_scale() -> None:
    nothing = np.zeros((2, 3, 3), np.float32)
    for fine in (nothing, nothing[:0], nothing * np.nan, nothing + np.float32(SMALLEST)):
        check_range(fine)
    assert [scale_into_range(x) for x in (0.0, SMALLEST, 1.0, LARGEST)] == [1.0] * 4
    for largest in (1e-38, SMALLEST / 2, LARGEST * 1.01, 3e38):
        scale = scale_into_range(largest)
        assert 0.5 <= largest * scale < 1 and np.frexp(scale)[0] == 0.5


@pytest.mark.parametrize(("builder", "leaf"), [(n, 2) for n in NAMES] + [("ploc", 4)])
def test_a_mesh_for_no_binding_allocates_nothing(
    device: Any, monkeypatch: Any, builder: str, leaf: int
) -> None:
    """Whatever the limit is: a builder is whole, or refused before its first buffer."""
    options = BuildOptions(builder=builder, leaf=leaf, reinsertion=2, pairing="near")
    refused, count = 0, 1 << 15
    for a_triangle in (35, 40, 64):
        limit = a_triangle * count
        monkeypatch.setitem(device.limits, "max-storage-buffer-binding-size", limit)
        before = device.allocated_bytes
        try:
            GpuBlasBuilder(device, count, options)
        except LimitError as error:
            refused += 1
            assert device.allocated_bytes == before
            assert f"{count:,} triangles needs" in str(error) and f"most {limit:,} " in str(error)
    assert 1 <= refused <= 2
