"""Contract traversal on the GPU: bit for bit the definition's walk, the hits of fast mode up to
explained ties, the same rules for masks, flags and facing, and an end for every corrupt buffer."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.differential import Kernels, closed_mesh, compare_scene, edge_rays, watertight
from bvh import layout
from bvh.build import BuildOptions
from bvh.contract.cases import RULES, Rules
from bvh.contract.descriptor import Descriptor
from bvh.contract.memory import GuestMemory
from bvh.contract.pointer import GuestAddress, NodePointer
from bvh.contract.traverse import Options, traverse
from bvh.gpu.trace_rays import RayTracer, Variant, traversal_slots
from bvh.oracle import trace
from bvh.rays import MISS_ID, RayFlags, make_rays
from bvh.scene_bvh import SceneBvh, assemble
from bvh.tlas import BvhInstance
from engine.gpu.errors import UserError
from passes.hybrid import FrameOptions, HybridFrame
from passes.prepare import PreparedScene, prepare
from treeline.scenes import load

CONTRACT = Variant("contract", traversal="contract", has_alpha=False)


@pytest.fixture(scope="module")
def hall() -> PreparedScene:
    return prepare(load(), BuildOptions(reinsertion=0))


@pytest.fixture(scope="module")
def soup(built: Any) -> SceneBvh:
    """Three instances, stretched, turned and mirrored, of two meshes; masks and opacity differ."""
    rng = np.random.default_rng(8)
    blases = [
        built.blas(rng.normal(size=(60, 1, 3)) + rng.normal(size=(60, 3, 3)) / 2, opaque=opaque)
        for opaque in (True, False)
    ]
    transforms = [np.eye(4) for _ in range(3)]
    transforms[1][:3, :3] = [[0, -2, 0], [1, 0, 0], [0.5, 0, 1]]
    transforms[2][:3, :3] = np.diag([-1, 0.25, 3])
    transforms[2][:3, 3] = (1, 2, 3)
    instances = [
        BvhInstance(i % 2, transform, mask=1 << i, first_object=10 * i)
        for i, transform in enumerate(transforms)
    ]
    return assemble(blases, ["opaque", "not opaque"], instances)


def any_rays(count: int = 600, seed: int = 5) -> Any:
    rng = np.random.default_rng(seed)
    origin = rng.normal(size=(count, 3)) * 4
    rays = make_rays(origin, rng.normal(size=(count, 3)) - origin)
    rays["direction"][:50, 0] = 0  # zeros of both signs, whose inverses are infinite
    rays["direction"][25:75, 1] = -0.0
    rays["t_min"][::7] = 0.5
    rays["t_max"][::5] = 3
    return rays


@pytest.mark.parametrize(("rules", "growth"), [("chapter", 6), ("gpurt", 2)])
def test_equals_the_definition_bit_for_bit(
    device: Any, soup: SceneBvh, rules: Rules, growth: int
) -> None:
    words, rays = soup.words, any_rays()
    scene = Descriptor(GuestAddress(0), len(words) // 16 - 1, growth=growth, sort=True)
    expected = traverse(
        GuestMemory.from_words(words, GuestAddress(0)),
        scene,
        NodePointer(layout.ROOT_POINTER),
        *(rays[name] for name in ("origin", "direction", "t_min", "t_max")),
        Options(rules=rules),
    )
    assert expected.error_count == 0
    got = RayTracer(device, words, replace(CONTRACT, rules=rules, growth=growth)).trace(rays)
    assert got.failures == ()
    hit = expected.primitive != MISS_ID
    assert 0.2 < hit.mean() < 0.9
    assert np.array_equal(got.hits["primitive"], expected.primitive)
    assert np.array_equal(got.hits["instance"], expected.instance)
    for name in ("t", "u", "v"):
        bits = got.hits[name][hit].view(np.uint32)
        assert np.array_equal(bits, getattr(expected, name)[hit].view(np.uint32))


@pytest.mark.parametrize(
    "settings",
    [
        {"any_hit": True, "sort": False, "mask": 0b101},
        {"flags": RayFlags.CULL_BACK_FACING | RayFlags.CULL_OPAQUE},
        {"flags": RayFlags.CULL_FRONT_FACING | RayFlags.CULL_NON_OPAQUE, "sort": False},
        {"flags": RayFlags.REJECT},
    ],
)
def test_masks_flags_and_order_mean_the_same(
    device: Any, soup: SceneBvh, settings: dict[str, Any]
) -> None:
    settings = {**settings, "flags": int(settings.get("flags", 0)), "has_alpha": True}
    fast = RayTracer(device, soup.words, Variant("fast", **settings)).trace(any_rays())
    exact = RayTracer(device, soup.words, Variant("exact", traversal="contract", **settings)).trace(
        any_rays()
    )
    assert fast.failures == exact.failures == ()
    hit = fast.hits["object"] != MISS_ID
    assert np.array_equal(hit, exact.hits["object"] != MISS_ID)
    truth = trace(
        soup.words,
        any_rays(),
        mask=settings.get("mask", 0xFF),
        flags=RayFlags(settings["flags"]),
        accept=lambda objects, *_: np.ones(len(objects), np.bool_),
    )
    assert np.array_equal(hit, truth.hit)
    if not settings.get("any_hit"):
        for name in ("object", "primitive", "instance"):
            assert np.array_equal(fast.hits[name], exact.hits[name])
        for name in ("t", "u", "v"):
            assert np.allclose(fast.hits[name][hit], exact.hits[name][hit], rtol=1e-3, atol=1e-4)


def test_counted_runs_count_the_same_nodes_of_a_ray(device: Any, soup: SceneBvh) -> None:
    rays = any_rays()
    plain = RayTracer(device, soup.words, CONTRACT).trace(rays)
    counted = RayTracer(device, soup.words, CONTRACT, counted=True).trace(rays)
    assert np.array_equal(plain.hits, counted.hits)
    assert counted.counters is not None and counted.nodes is not None
    assert counted.counters["nodes"] == counted.nodes.sum() > len(rays)
    assert counted.counters["triangle_tests"] > counted.counters["triangle_hits"] > 0


def test_the_frame_gives_the_same_picture(device: Any, hall: PreparedScene) -> None:
    options = FrameOptions(64, 36, gbuffer="rays")
    frames = [
        HybridFrame(device, hall, replace(options, traversal=traversal))
        for traversal in ("fast", "contract")
    ]
    stats = [frame.run(0) for frame in frames]
    assert all(s.valid for s in stats)
    assert stats[0].rays["shadow"].rays == stats[1].rays["shadow"].rays
    first, second = (frame.image().astype(int) for frame in frames)
    assert (np.abs(first - second).max(-1) > 2).mean() < 2e-3
    with pytest.raises(UserError, match="no traversal is named 'exact'; there are fast, contract"):
        traversal_slots("exact")


@pytest.fixture(scope="module")
def kernels() -> Kernels:
    """Compiled once for all scenes."""
    return {}


def check_rows(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        listing = [item["text"] for item in row["listed"] if item["reason"] == "unexplained"]
        assert row["failures"] == [] and listing == [], row["rays"]
        # Ties are rare: a slip of one of the two would be everywhere.
        assert row["differ"] <= 2 + row["count"] * 2e-3
        assert row["differ"] == len(row["listed"]) == sum(row["reasons"].values())


def test_fast_and_contract_agree_in_the_hall(
    device: Any, hall: PreparedScene, kernels: Kernels
) -> None:
    rows = compare_scene(device, "hall", hall, (64, 36), kernels=kernels)
    assert len(rows) == 4 * len(RULES)
    assert all(row["hits"] > 0 for row in rows)
    check_rows(rows)


@pytest.mark.parametrize("name", ["pine.glb", "spaceship.glb"])
def test_fast_and_contract_agree_on_real_scenes(
    device: Any, shared_scenes: Path, kernels: Kernels, name: str
) -> None:
    prepared = prepare(load(shared_scenes / name), BuildOptions(reinsertion=0))
    check_rows(compare_scene(device, name, prepared, (64, 36), kernels=kernels))


def test_watertight_in_fast_mode_and_chapter(device: Any) -> None:
    """At the default growth. Less loses rays in the box test, but never hits twice."""
    tight, lossy, loose = ("fast", "chapter, growth 6"), "chapter, growth 1", "gpurt, growth 6"
    rows = {row["mode"]: row for row in watertight(device, 3000, [*tight, lossy, loose])}
    for mode in tight:
        assert (rows[mode]["leaks"], rows[mode]["double_hits"]) == (0, 0), mode
        assert rows[mode]["failures"] == []
    assert rows[lossy]["leaks"] < 10 and rows[lossy]["double_hits"] == 0
    assert rows[loose]["leaks"] > 100
    assert rows[loose]["double_hits"] > 600


def test_corrupt_bytes_end_a_ray_and_are_reported(device: Any) -> None:
    corners, bvh = closed_mesh()
    rays = edge_rays(corners, 64)
    root = int(bvh.blas_bases[0]) // 4 + layout.HEADER_BYTES // 4
    tracer = RayTracer(device, bvh.words, CONTRACT)

    def failures(change: Any) -> tuple[str, ...]:
        words = bvh.words.copy()
        change(words)
        tracer.bind(words)
        return tracer.trace(rays).failures

    def children(value: int) -> Any:
        def change(words: Any) -> None:
            words[root : root + 4] = value

        return change

    def instance_base(words: Any) -> None:
        words[(int(words[32]) >> 3) * 16 + layout.INSTANCE_BLAS_BASE_WORD] = 0x0FFFFFF0

    assert failures(lambda words: None) == ()
    past_the_end = (len(bvh.words) // 16) << 3
    for kind in (0, 1, 4, 5):
        assert failures(children(past_the_end | kind)) == ("a node pointer left the buffer",)
    circle = failures(children(0x15))  # the root is its own child
    assert circle and set(circle) <= {"a stack overflowed", "the step limit ran out"}
    assert failures(children(0x12)) == ("an unknown node type was met",)
    assert failures(children(0x17)) == ("an unknown node type was met",)
    assert failures(instance_base) == ("a node pointer left the buffer",)
    rays["origin"][::2, 1] = np.nan
    tracer.bind(bvh.words)
    trace = tracer.trace(rays)
    assert trace.failures == ()
    assert np.array_equal(trace.hits["object"] == MISS_ID, np.arange(64) % 2 == 0)
