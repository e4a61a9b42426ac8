"""Counts over rays: percentiles and histograms of what each ray counted, bounces, bytes, and the
lanes that work together."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bvh.gpu.trace_rays import RayTracer, Variant, fit_variant
from bvh.rays import make_rays
from passes.bytes_read import bytes_read
from passes.frame_stats import RayStats
from passes.ray_spread import PERCENTS, octave_bounds, ray_spread, slot_bounce, spread
from passes.rays import OCCLUSION, RAY_TYPES, REFLECTION, SHADOW
from passes.slot_counts import SLOT_COUNTS

Rng = np.random.Generator


def test_percentiles_and_octaves_of_known_counts(rng: Rng) -> None:
    values = rng.integers(0, 300, 1000).astype(np.uint32)
    values[:2] = 0, 256
    found = spread(values)
    assert found.percentiles == pytest.approx(np.percentile(values, PERCENTS))
    assert (found.mean, found.largest) == (pytest.approx(values.mean()), values.max())
    assert sum(found.octaves) == 1000
    for index, rays in enumerate(found.octaves):
        low, high = octave_bounds(index)
        assert rays == ((values >= low) & (values <= high)).sum()
    assert octave_bounds(len(found.octaves) - 1)[1] >= values.max()


def test_bounces_by_where_rays_start() -> None:
    assert [slot_bounce(REFLECTION, 0), slot_bounce(OCCLUSION, 0)] == [1, 1]
    assert [slot_bounce(SHADOW, kind) for kind in range(2)] == [1, 2]
    nodes = np.array([5, 0, 5, 7, 0, 1], np.uint32)  # of three pixels, two shadow rays each
    found = ray_spread(SHADOW, dict.fromkeys(SLOT_COUNTS, nodes))
    assert found.bounces == (2, 2) and found.rays == 4 and found.mean_bounce == 1.5
    assert found.counts["nodes"].mean == 4.5
    none = ray_spread(SHADOW, dict.fromkeys(SLOT_COUNTS, np.zeros(6, np.uint32)))
    assert none.rays == 0 and none.mean_bounce is None and not none.counts


def test_bytes_by_hand() -> None:
    of_queue = dict(rays=10, dropped=0, payload_bytes=32, replaced=0, lost=0, failed=0)
    stats = RayStats(**of_queue, nodes=8, nodes_fp16=5, leaf_blocks=4, instance_hits=2)
    assert bytes_read(REFLECTION, stats) is None  # nobody counted any-hit calls
    stats = replace(stats, any_hits=3, alpha_samples=2, texture_fetches=1)
    expected = 10 * REFLECTION.record.size + 5 * 64 + 3 * 128 + 4 * 64 + 2 * 128 + 3 * 64 + 3 * 16
    assert bytes_read(REFLECTION, stats) == expected


@pytest.fixture(scope="module")
def lanes(draw: Any, room: Any, kit: Any) -> Any:
    """A counted frame that tells of lanes."""
    return draw(room, 61, 40, gbuffer="rays", count=True, count_lanes=True, **kit.every_ray)


def test_spreads_of_a_frame_add_up_to_its_totals(lanes: Any) -> None:
    found = lanes.frame.ray_spreads()
    assert list(found) == [ray.name for ray in RAY_TYPES]
    for name, of_type in found.items():
        stats = lanes.stats.rays[name]
        assert of_type.rays == stats.rays == stats.hits + stats.misses
        for count, values in of_type.counts.items():
            assert sum(values.octaves) == stats.rays
            if count == "stack_max":
                assert values.largest == stats.stack_max
            else:
                assert values.mean * stats.rays == pytest.approx(getattr(stats, count))
        nodes = of_type.counts["nodes"]
        wanted = (stats.nodes_p50, stats.nodes_p95, stats.nodes_p99)
        assert nodes.percentiles == pytest.approx(wanted) and nodes.largest == stats.nodes_max
        assert nodes.octaves == stats.nodes_octaves


def test_lanes_of_a_frame(device: Any, lanes: Any, draw: Any, room: Any, kit: Any) -> None:
    assert "subgroup" in device.features
    for stats in lanes.stats.rays.values():
        steps, size = stats.subgroup_steps, stats.subgroup_lanes
        assert size in (4, 8, 16, 32, 64)
        # A step has one lane at least, and as many different nodes as lanes at most.
        assert steps <= stats.subgroup_nodes <= stats.nodes <= steps * size
        assert 0 < stats.nodes / (steps * size) < 1
        assert 0 < stats.nodes_fp16 < stats.nodes
        assert 0 < stats.leaf_blocks <= stats.triangle_tests <= 2 * stats.leaf_blocks
    without = draw(room, 61, 40, gbuffer="rays", count=True, **kit.every_ray)
    for name, stats in without.stats.rays.items():
        assert stats.subgroup_steps is stats.subgroup_nodes is stats.subgroup_lanes is None
        told = dict.fromkeys(("subgroup_steps", "subgroup_nodes", "subgroup_lanes"))
        assert stats == replace(lanes.stats.rays[name], **told)
    assert without.frame.result_hash() == lanes.frame.result_hash()


def spent(device: Any, room: Any, directions: Any) -> dict[str, int]:
    """Counters of rays from one point."""
    variant = fit_variant(Variant("lanes"), room.bvh, has_alpha=False)
    origins = np.tile(np.float32([0.1, 0.9, 0.2]), (len(directions), 1))
    tracer = RayTracer(device, room.bvh.words, variant, counted=True, lanes=True)
    counters = tracer.trace(make_rays(origins, directions)).counters
    assert counters is not None
    return dict(counters)


def test_equal_rays_in_full_groups_keep_every_lane_at_work(device: Any, room: Any) -> None:
    one = spent(device, room, np.tile(np.float32([0.3, -0.5, 0.8]), (128, 1)))
    assert one["nodes"] == one["subgroup_steps"] * one["subgroup_lanes"] > 0
    assert one["subgroup_nodes"] == one["subgroup_steps"]
    # One ray alone: the same steps in one subgroup, the other lanes idle.
    alone = spent(device, room, np.float32([[0.3, -0.5, 0.8]]))
    assert alone["subgroup_steps"] == alone["nodes"] == one["nodes"] // 128


def test_two_kinds_of_rays_fetch_two_nodes_at_once(device: Any, room: Any) -> None:
    a, b = np.float32([0.3, -0.5, 0.8]), np.float32([-0.7, 0.4, -0.2])
    mixed = spent(device, room, np.tile(np.stack([a, b]), (64, 1)))
    nodes = [spent(device, room, ray[None])["nodes"] for ray in (a, b)]
    assert mixed["nodes"] == 64 * sum(nodes) and nodes[0] != nodes[1]
    groups = 128 // mixed["subgroup_lanes"]
    steps, distinct = mixed["subgroup_steps"] / groups, mixed["subgroup_nodes"] / groups
    assert max(nodes) <= steps <= sum(nodes)
    assert steps < distinct <= sum(nodes)  # the root, at least, is one for both
