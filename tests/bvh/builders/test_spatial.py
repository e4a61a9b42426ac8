"""Spatial splits on the CPU: references cover their blocks, keep to the budget, lose no hit."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bvh import oracle
from bvh.brute_force import closest
from bvh.build import BuildOptions, build_blas
from bvh.builders import BUILDERS
from bvh.builders.spatial import SpatialConfig, split
from bvh.container import load, save
from bvh.cover import TOLERANCE, uncovered
from bvh.decode import decode
from bvh.encode import encode
from bvh.rays import make_rays
from bvh.sah import sah_cost
from bvh.scene_bvh import SceneBvh, assemble
from bvh.tlas import BvhInstance
from bvh.tree import check_tree, fit_bounds
from bvh.triangles import triangle_bounds
from bvh.validate import validate

CONFIG = SpatialConfig()


def _room(rng: np.random.Generator, count: int) -> np.ndarray:
    """Long splinters at odd angles through a cloud of small triangles."""
    centre = rng.random((count, 1, 3)) * 4
    size = np.where(rng.random((count, 1, 1)) < 0.15, 1.5, 0.05)
    triangles = centre + size * rng.normal(size=(count, 3, 3))
    thin = rng.random(count) < 0.1
    triangles[thin, 2] = triangles[thin, 1] + 0.01
    return triangles.astype(np.float32)


def _corners(triangles: np.ndarray) -> np.ndarray:
    return triangles[:, [0, 1, 2, 2, 2]]


def _covered(triangles: np.ndarray, block: np.ndarray, boxes: np.ndarray) -> np.ndarray:
    order = np.argsort(block, kind="stable")
    count = np.bincount(block, minlength=len(triangles))
    first = np.cumsum(count) - count
    return uncovered(triangles, boxes[order], first, count) <= TOLERANCE


def _build(triangles: np.ndarray, options: BuildOptions) -> Any:
    every = np.arange(len(triangles), dtype=np.uint32)
    zeros = np.zeros(len(triangles), np.uint32)
    return build_blas(triangles, zeros, every, np.ones(1, np.bool_), options)


def _scene(blas: Any) -> SceneBvh:
    return assemble([blas], ["mesh"], [BvhInstance(0, np.eye(4))])


@pytest.mark.parametrize("count", [0, 1, 2, 3, 64, 65, 700, 3000])
@pytest.mark.parametrize("budget", [0.0, 0.03, 0.3])
def test_references_cover_their_blocks(rng: Any, count: int, budget: float) -> None:
    triangles = _room(rng, count)
    bounds = triangle_bounds(triangles)
    block, boxes = split(_corners(triangles), bounds, replace(CONFIG, budget=budget))
    assert count <= len(block) <= count + int(budget * count)
    assert (np.bincount(block, minlength=count) >= 1).all()
    assert (boxes[:, 0] >= bounds[block, 0]).all() and (boxes[:, 1] <= bounds[block, 1]).all()
    assert (boxes[:, 0] <= boxes[:, 1]).all()
    assert _covered(triangles, block, boxes).all()
    assert len(block) > count or not budget or count < 700


def test_whole_blocks_keep_their_boxes(rng: Any) -> None:
    triangles = _room(rng, 1000)
    bounds = triangle_bounds(triangles)
    block, boxes = split(_corners(triangles), bounds, CONFIG)
    alone = np.bincount(block)[block] == 1
    assert 100 < alone.sum() < 1000
    assert (boxes[alone] == bounds[block[alone]]).all()


def test_splits_pay(rng: Any) -> None:
    """Against binned SAH over whole triangles; parts of triangles are smaller, and apart."""
    triangles = _room(rng, 2000)
    bounds = triangle_bounds(triangles)
    spatial = next(b for b in BUILDERS if b.name == "spatial")
    block, boxes = split(_corners(triangles), bounds, CONFIG)
    plain = sah_cost(spatial.build(bounds, CONFIG), bounds)
    tree = spatial.build(boxes, CONFIG)
    assert check_tree(tree, boxes) == []
    assert sah_cost(tree, boxes) < 0.93 * plain


@pytest.mark.parametrize("kind", ["equal", "plane", "strip", "copies", "huge", "tiny", "offset"])
def test_awkward_triangles(rng: Any, kind: str) -> None:
    triangles = _room(rng, 600)
    if kind == "equal":
        triangles = triangles - triangles.mean(axis=1, keepdims=True)
    elif kind == "plane":
        triangles[:, :, 1] = 3
    elif kind == "strip":
        x = np.linspace(0, 1e6, 601, dtype=np.float32)
        triangles = np.zeros((600, 3, 3), np.float32)
        triangles[:, 0, 0], triangles[:, 1, 0], triangles[:, 2, 0] = x[:-1], x[1:], x[1:]
        triangles[:, 2, 1] = 1e-6
        triangles[::9, 1, 0] = 1e6
    elif kind == "copies":
        triangles[:] = triangles[3]
    elif kind == "huge":
        triangles *= np.float32(1e37)
    elif kind == "tiny":
        triangles *= np.float32(1e-37)
    elif kind == "offset":
        triangles += np.float32(1e5)
    triangles = triangles.astype(np.float32)
    bounds = triangle_bounds(triangles)
    block, boxes = split(_corners(triangles), bounds, CONFIG)
    assert 600 <= len(block) <= 780
    assert (np.bincount(block, minlength=600) >= 1).all()
    if kind not in ("huge", "tiny"):  # their areas are out of range
        assert _covered(triangles, block, boxes).all()


@pytest.mark.parametrize("leaf", [1, 2, 4])
@pytest.mark.parametrize("nodes", ["fp32", "auto"])
def test_hits_equal_brute_force(rng: Any, leaf: int, nodes: str) -> None:
    triangles = _room(rng, 900)
    # Pairs and fans need shared edges.
    triangles[1::3] = triangles[::3][:, [1, 0, 2]]
    triangles[1::3, 2] += np.float32(0.3)
    blas = _build(triangles, BuildOptions("spatial", nodes=nodes, leaf=leaf, reinsertion=0))
    stats = blas.stats
    assert 0 < stats.duplicates <= 0.3 * (stats.blocks - stats.duplicates)
    assert 1 < stats.duplication <= 1.3
    scene = _scene(blas)
    assert validate(scene) == []
    rays = make_rays(rng.random((1500, 3)) * 4, rng.normal(size=(1500, 3)))
    expected = closest(triangles, rays)
    got = oracle.trace(scene.words, rays)
    hit = np.isfinite(expected.t)
    assert 300 < hit.sum()
    assert (np.isfinite(got.t) == hit).all()
    assert np.allclose(got.t[hit], expected.t[hit], rtol=1e-4)


def test_rays_through_the_cuts_hit(rng: Any) -> None:
    """At points of triangles where their references meet, from all around."""
    triangles = _room(rng, 800)
    block, boxes = split(_corners(triangles), triangle_bounds(triangles), CONFIG)
    targets = []
    for which in np.flatnonzero(np.bincount(block) == 2):
        a, b = boxes[block == which]
        for axis in range(3):
            plane = a[1, axis] if a[1, axis] == b[0, axis] else a[0, axis]
            if plane not in (b[0, axis], b[1, axis]):
                continue
            p, q = triangles[which].astype(np.float64), triangles[which][[1, 2, 0]]
            t = (plane - p[:, axis]) / (q[:, axis] - p[:, axis])
            crossing = (p + (q - p) * t[:, None])[(t > 0) & (t < 1)]
            if len(crossing) == 2:
                targets.append(crossing.mean(axis=0))
    assert len(targets) > 20
    target = np.repeat(targets, 20, axis=0)
    direction = rng.normal(size=target.shape)
    rays = make_rays(target - 0.01 * direction, direction)
    blas = _build(triangles, BuildOptions("spatial", leaf=1, reinsertion=0))
    assert blas.stats.blocks == len(block)
    expected = closest(triangles, rays)
    got = oracle.trace(_scene(blas).words, rays)
    assert np.isfinite(expected.t).mean() > 0.95
    assert (np.isfinite(got.t) == np.isfinite(expected.t)).all()
    hit = np.isfinite(expected.t)
    assert np.allclose(got.t[hit], expected.t[hit], rtol=1e-3)


def test_container_goes_round(rng: Any, tmp_path: Any) -> None:
    blas = _build(_room(rng, 500), BuildOptions("spatial", reinsertion=3))
    scene = _scene(replace(blas, stats=blas.stats))
    save(tmp_path / "s.npz", scene)
    back = load(tmp_path / "s.npz")
    assert (back.words == scene.words).all() and back.blas_stats == scene.blas_stats
    image = decode(blas.words)
    assert (encode(image)[0] == blas.words).all()
    assert image.primitive_count == 500 < len(image.leaves) * 2
    assert validate(back) == []


def test_validate_sees_what_no_box_covers(rng: Any) -> None:
    """A reference's box in its parent made smaller, without a box around it that says otherwise."""
    blas = _build(_room(rng, 500), BuildOptions("spatial", nodes="fp32", leaf=1, reinsertion=0))
    image = decode(blas.words)
    primitive = image.leaves[:, 13]
    often = np.flatnonzero(np.bincount(primitive) > 1)
    found = 0
    for which in often[:20]:
        leaf = np.flatnonzero(primitive == which)[0]
        node, slot = np.argwhere(image.children == ~leaf)[0]
        boxes = image.boxes.copy()
        axis = int(np.argmax(boxes[node, slot, 1] - boxes[node, slot, 0]))
        boxes[node, slot, 1, axis] = boxes[node, slot].mean(axis=0)[axis]
        words, parents = encode(replace(image, boxes=boxes))
        faults = validate(_scene(replace(blas, words=words, parents=parents)))
        found += any("references leave" in str(fault) for fault in faults)
    assert found >= 15


def test_validate_wants_repeated_blocks_to_be_equal(rng: Any) -> None:
    blas = _build(_room(rng, 500), BuildOptions("spatial", leaf=1, reinsertion=0))
    image = decode(blas.words)
    primitive = image.leaves[:, 13]
    leaf = np.flatnonzero(np.bincount(primitive)[primitive] > 1)[0]
    leaves = image.leaves.copy()
    leaves[leaf, 0:3] = leaves[leaf, 3:6]
    words, parents = encode(replace(image, leaves=leaves))
    faults = validate(_scene(replace(blas, words=words, parents=parents)))
    assert any("a second time" in str(fault) for fault in faults)
    counted = replace(image, primitive_count=499)
    words, parents = encode(counted)
    faults = validate(_scene(replace(blas, words=words, parents=parents)))
    assert any("the header counts" in str(fault) for fault in faults)


def test_boxes_cover_by_hand() -> None:
    triangle = np.array([[[0, 0, 0], [4, 0, 0], [0, 4, 0]]], np.float32)
    box = np.array([[[0, 0, 0], [4, 2, 0]], [[0, 2, 0], [2, 4, 0]]], np.float32)
    first, two, one = np.zeros(1, int), np.full(1, 2), np.ones(1, int)
    assert uncovered(triangle, box, first, two)[0] <= TOLERANCE
    assert np.isclose(uncovered(triangle, box, first, one)[0], 0.25)
    box[1, 0, 1] = 2.1
    assert 0.0 < uncovered(triangle, box, first, two)[0] < 0.05
    assert uncovered(triangle, box + 10, first, two)[0] == 1.0


def test_budget_is_a_share() -> None:
    with pytest.raises(ValueError, match="share"):
        SpatialConfig(budget=1.5)


def test_tree_over_references_is_exact(rng: Any) -> None:
    triangles = _room(rng, 400)
    _, boxes = split(_corners(triangles), triangle_bounds(triangles), CONFIG)
    spatial = next(b for b in BUILDERS if b.name == "spatial")
    tree = spatial.build(boxes, CONFIG)
    assert np.array_equal(tree.bounds, fit_bounds(tree.children, boxes).bounds)
