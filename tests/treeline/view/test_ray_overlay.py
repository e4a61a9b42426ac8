"""Rays and boxes in the picture: where the segments are and what their colours say."""

from collections import Counter
from typing import Any

import numpy as np
import pytest

from engine.view.lines import LineRenderer
from passes.hybrid import HybridFrame
from treeline.view.pick import Pick, pick
from treeline.view.ray_overlay import (
    DIM_ALPHA,
    STATE_COLOURS,
    RayDrawing,
    box_edges,
    ray_colour,
    ray_segments,
    step_segments,
)
from treeline.view.ray_walk import RayWalk


@pytest.fixture(scope="module")
def picked(counted: HybridFrame) -> Pick:
    """A pixel that sends all four rays."""
    return pick(counted, 52, 34)


@pytest.fixture(scope="module")
def walks(picked: Pick) -> dict[int, RayWalk]:
    return {number: RayWalk(ray) for number, ray in enumerate(picked.rays)}


def test_segments_join_at_hits(picked: Pick, walks: dict[int, RayWalk]) -> None:
    found = ray_segments(picked.rays, 1, walks)
    count = len(picked.rays)
    assert count >= 4 and found.points.shape == (count, 2, 3) and found.rgba.shape == (count, 4)
    for ray, (begin, end) in zip(picked.rays, found.points, strict=True):
        assert np.allclose(begin, ray.origin)
        if ray.parent >= 0:
            assert np.linalg.norm(found.points[ray.parent, 1] - begin) < 1e-3
        if not ray.any_hit:
            assert np.allclose(end, ray.point(ray.t), atol=1e-4)
        elif not ray.hit:
            assert np.allclose(end, ray.point(ray.t_max), atol=1e-4)
    alphas = [1.0 if number == 1 else DIM_ALPHA for number in range(count)]
    assert found.rgba[:, 3].tolist() == pytest.approx(alphas)
    assert np.allclose(found.rgba[1, :3], ray_colour("reflection"))
    types = {ray.ray_type for ray in picked.rays}
    assert len({ray_colour(name) for name in types}) == len(types) >= 3


def test_occluded_rays_end_where_their_steps_say(counted: HybridFrame) -> None:
    shadow = next(
        (rays, number)
        for x in range(64)
        for rays in [pick(counted, x, 20).rays]
        for number, ray in enumerate(rays)
        if ray.any_hit and ray.hit
    )
    rays, number = shadow
    walk = RayWalk(rays[number])
    known = ray_segments(rays, 0, {number: walk}).points[number, 1]
    assert np.allclose(known, rays[number].point(walk.steps[walk.hit].t), atol=1e-4)
    unknown = ray_segments(rays, 0).points[number, 1]
    assert np.allclose(unknown, rays[number].point(rays[number].t_max), atol=1e-4)


def test_rays_meet_the_boxes_where_they_enter(walks: dict[int, RayWalk]) -> None:
    """Inside instances, too: the boxes are those of the world."""
    inside = outside = 0
    for walk in walks.values():
        for number, step in enumerate(walk.steps):
            if step.kind != "box":
                continue
            segments = step_segments(walk, number)
            states = [s.state for s in walk.slots(number)]
            order = [k for s in ("culled", "pushed", "next") for k in range(4) if states[k] == s]
            assert len(segments.points) == 12 * len(order) == len(segments.rgba)
            for place, slot in enumerate(order):
                edges = segments.points[12 * place :][:12].astype(np.float64)
                colour = segments.rgba[12 * place, :3]
                assert np.allclose(colour, STATE_COLOURS[states[slot]])
                entry = step.entry[slot]
                if not step.hit[slot] or entry <= 0:
                    continue
                # Edges 0, 4 and 8 leave corner 0 along x, y and z.
                axes = np.stack([edges[k, 1] - edges[k, 0] for k in (0, 4, 8)], axis=1)
                if abs(np.linalg.det(axes)) < 1e-9:
                    continue
                local = np.linalg.solve(axes, walk.ray.point(entry) - edges[0, 0])
                slack = 1e-4 * (1 + entry / np.linalg.norm(axes, axis=0).min())
                assert (local > -slack).all() and (local < 1 + slack).all()
                assert np.minimum(np.abs(local), np.abs(local - 1)).min() < slack
                if walk.places[number][1] >= 0:
                    inside += 1
                else:
                    outside += 1
    assert inside > 10 and outside > 10


def test_hit_triangle_and_instances(walks: dict[int, RayWalk]) -> None:
    counts: Counter[str] = Counter()
    for walk in walks.values():
        for number, step in enumerate(walk.steps):
            segments = step_segments(walk, number)
            counts[step.kind] += len(segments.points)
            if step.kind == "triangle" and number == walk.hit:
                corners = segments.points[:, 0].astype(np.float64)
                normal = np.cross(corners[1] - corners[0], corners[2] - corners[0])
                at = walk.ray.point(step.t) - corners[0]
                assert abs(at @ normal) < 1e-3 * np.linalg.norm(normal)
                assert np.allclose(segments.rgba[:, :3], STATE_COLOURS["hit"])
            if step.kind in ("leave", "end"):
                assert len(segments.points) == 0
    assert counts["triangle"] % 3 == 0 and counts["triangle"] and counts["instance"] % 12 == 0


def test_box_edges_are_twelve() -> None:
    edges = box_edges(np.array([[0, 0, 0], [1, 2, 3]], np.float32), np.eye(3, 4, dtype=np.float32))
    lengths = np.linalg.norm(edges[:, 1] - edges[:, 0], axis=1)
    assert sorted(lengths.tolist()) == [1] * 4 + [2] * 4 + [3] * 4
    assert len({tuple(sorted(map(tuple, e.tolist()))) for e in edges}) == 12


def test_drawing_changes_only_with_what_is_shown(
    device: Any, picked: Pick, walks: dict[int, RayWalk]
) -> None:
    drawing = RayDrawing(LineRenderer(device))
    drawing.update(None, 0, {}, 0)
    assert drawing.batches == []
    drawing.update(picked, 1, walks, 0)
    version = drawing.version
    assert [batch.count for batch in drawing.batches] == [48, len(picked.rays)]
    drawing.update(picked, 1, walks, 0)
    assert drawing.version == version
    drawing.update(picked, 1, walks, len(walks[1]) - 1)
    assert drawing.version == version + 1
    assert [batch.count for batch in drawing.batches] == [len(picked.rays)]
    drawing.update(None, 1, {}, 0)
    assert drawing.batches == []
