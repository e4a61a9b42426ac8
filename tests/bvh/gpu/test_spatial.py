"""Every stage that splits references against its twin, and whole builds with splits."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bvh.build import BuildOptions, build_blas
from bvh.builders.spatial import SpatialConfig, split
from bvh.cover import TOLERANCE, uncovered
from bvh.decode import decode
from bvh.encode import encode
from bvh.gpu.binned_sah_records import TILE, ordered, value_of
from bvh.gpu.build_records import BUILD_STATE
from bvh.gpu.pair_records import CORNER_SHIFT, NONE
from bvh.gpu.spatial import GpuSpatialSplits, spatial_corners
from bvh.gpu.spatial_clip import clip_block, is_box, reciprocal
from bvh.gpu.spatial_records import CORNER_WORDS, level_count
from bvh.gpu.spatial_twins import (
    LEVEL_STAGES,
    budget_share,
    level_names,
    make_arrays,
    make_parameters,
    most_references,
    pack_corners,
    split_by_twins,
)
from bvh.gpu.validate import CHECK_PARAMETERS, GpuValidate, check_units, empty_findings, judge
from bvh.header import unpack_header
from bvh.scene_bvh import assemble
from bvh.tlas import BvhInstance
from bvh.triangles import triangle_bounds
from bvh.validate import validate
from engine.gpu.errors import LimitError, UserError
from engine.gpu.stage import submit_pass

CAPACITY = 3000
CONFIG = SpatialConfig()


@pytest.fixture(scope="module")
def splits(device: Any) -> GpuSpatialSplits:
    """For the whole file: every use after the first finds dirty scratch."""
    return GpuSpatialSplits(device, CAPACITY, CONFIG)


def _triangles(rng: np.random.Generator, count: int) -> np.ndarray:
    centre = rng.random((count, 1, 3)) * 4 - 1
    size = np.where(rng.random((count, 1, 1)) < 0.1, 1.5, 0.04)
    return (centre + size * rng.normal(size=(count, 3, 3))).astype(np.float32)


def _corners(triangles: np.ndarray) -> np.ndarray:
    return triangles[:, [0, 1, 2, 2, 2]]


@pytest.mark.parametrize("count", [0, 1, 64, 65, 300, 2 * TILE + 7])
@pytest.mark.parametrize("budget", [0.02, 0.3])
def test_stages_equal_their_twins(
    splits: Any, rng: Any, count: int, budget: float, same_as_twin: Any
) -> None:
    """Level by level; three groups where the stage strides, so that each takes several turns."""
    triangles = _triangles(rng, count)
    share = budget_share(budget)
    arrays = make_arrays(pack_corners(_corners(triangles)), triangle_bounds(triangles), share)
    for name in ("bins", "space", "cuts", "sums", "split_state", "extents", "done"):
        arrays[name].view(np.uint8)[:] = 77  # the last build's leavings
    levels = level_count(count, 3)
    for level in range(max(levels, 1)):
        named = level_names(arrays, level)
        named["parameters"] = make_parameters(level, share)
        first = ("spatial_clear", "spatial_start") if level == 0 else ()
        for name in (*first, *LEVEL_STAGES):
            same_as_twin(splits.stages[name], named, 1 if name == "spatial_list" else 3)
    named = level_names(arrays, levels)
    named["parameters"] = make_parameters(0, share)
    same_as_twin(splits.stages["spatial_finish"], named, 3)
    assert count <= arrays["new_state"][0] <= most_references(count, share)


def _run(device: Any, item: GpuSpatialSplits, triangles: np.ndarray) -> tuple[Any, Any]:
    count = len(triangles)
    state = np.zeros(1, BUILD_STATE.dtype)
    state.view(np.uint32)[0] = count
    blocks = np.stack([np.arange(count), np.full(count, NONE)], axis=1).astype(np.uint32)
    inputs = {
        "state": device.upload("state", state),
        "boxes": device.upload("boxes", triangle_bounds(triangles)),
        "blocks": device.upload("blocks", blocks),
        "triangles": device.upload("triangles", triangles),
    }
    submit_pass(device, lambda scope: item.encode(scope, inputs))
    total = int(device.read(item.buffers["state"], np.uint32, count=1)[0])
    block = device.read(item.buffers["blocks"], np.uint32, count=2 * total)[::2]
    boxes = device.read(item.buffers["boxes"], np.float32, count=6 * total)
    return block, boxes.reshape(total, 2, 3)


@pytest.mark.parametrize("kind", ["room", "equal", "plane", "zeros", "strip", "huge", "few"])
def test_references_are_those_of_the_twins(device: Any, splits: Any, rng: Any, kind: str) -> None:
    triangles = _triangles(rng, 3 if kind == "few" else 2000)
    if kind == "equal":
        triangles[:] = triangles[7]
    elif kind == "plane":
        triangles[:, :, 2] = 5
    elif kind == "zeros":
        triangles[:, :, 1] = np.where(rng.random((2000, 3)) < 0.5, 0.0, -0.0)
    elif kind == "strip":
        triangles *= np.array([1e6, 1e-6, 1e-6], np.float32)
    elif kind == "huge":
        triangles *= np.float32(1e37)
    block, boxes = _run(device, splits, triangles)
    corners, bounds = _corners(triangles), triangle_bounds(triangles)
    expected = split(corners, bounds, CONFIG, CAPACITY)
    assert np.array_equal(block, expected[0])
    assert np.array_equal(boxes.view(np.uint32), expected[1].view(np.uint32))
    assert (len(block) > len(triangles)) == (kind in ("room", "plane", "zeros", "strip"))


@pytest.mark.parametrize("levels", [0, 1, 10, 11])
def test_few_blocks_keep_their_boxes_whatever_the_levels(rng: Any, levels: int) -> None:
    """A root that is small from the start: the work of odd and of even levels lies apart."""
    for count in (1, 3, 64):
        triangles = _triangles(rng, count)
        bounds = triangle_bounds(triangles)
        block, boxes = split_by_twins(pack_corners(_corners(triangles)), bounds, 76, levels)
        assert sorted(block) == list(range(count))
        assert np.array_equal(boxes, bounds[block])


def test_a_level_short_is_still_whole(rng: Any) -> None:
    """What is large after the last level is handed on as it is."""
    triangles = _triangles(rng, 1000)
    bounds = triangle_bounds(triangles)
    for levels in (1, 2, 3):
        block, boxes = split_by_twins(pack_corners(_corners(triangles)), bounds, 76, levels)
        assert (np.bincount(block, minlength=1000) >= 1).all() and len(block) > 1000
        order = np.argsort(block, kind="stable")
        count = np.bincount(block)
        first = np.cumsum(count) - count
        assert (uncovered(triangles, boxes[order], first, count) <= TOLERANCE).all()


def test_budget_is_kept_to_the_last_reference(rng: Any) -> None:
    triangles = _triangles(rng, 2500)
    bounds = triangle_bounds(triangles)
    totals = []
    for share in (0, 1, 2, 5, 20, 76, 256):
        block, _ = split_by_twins(pack_corners(_corners(triangles)), bounds, share, 12)
        totals.append(len(block))
        assert 2500 <= len(block) <= most_references(2500, share)
    assert totals[0] == 2500 and totals == sorted(totals) and totals[-1] > totals[2] > 2500


def test_clipped_parts_hold_all_points(rng: Any) -> None:
    """Random points of triangles, in float64, against the part on their side of the plane."""
    triangles = _triangles(rng, 400) * np.float32(7)
    bounds = triangle_bounds(triangles)
    axis = rng.integers(0, 3, 400)
    every = np.arange(400)
    t = rng.random(400)
    plane = bounds[every, 0, axis] * (1 - t) + bounds[every, 1, axis] * t
    plane = plane.astype(np.float32)
    low, high = ordered(bounds[:, 0]), ordered(bounds[:, 1])
    parts = clip_block(_corners(triangles), low, high, axis, plane)
    assert is_box(parts[0], parts[1]).all() and is_box(parts[2], parts[3]).all()
    weights = rng.dirichlet([1, 1, 1], (400, 300))
    points = np.einsum("nkc,ncx->nkx", weights, triangles.astype(np.float64))
    place = points[every[:, None], np.arange(300), axis[:, None]]
    for side, inside in ((0, place <= plane[:, None]), (2, place >= plane[:, None])):
        reached = (points >= value_of(parts[side])[:, None]).all(axis=2)
        reached &= (points <= value_of(parts[side + 1])[:, None]).all(axis=2)
        # A point's own rounding, where it is on a corner of the triangle's box.
        assert (reached | ~inside).mean() > 0.9999
    area = 0.0
    for side in (0, 2):
        size = value_of(parts[side + 1]).astype(np.float64) - value_of(parts[side])
        area += np.prod(size, axis=1)
    assert (area <= 1.001 * np.prod(bounds[:, 1].astype(np.float64) - bounds[:, 0], axis=1)).all()


def test_reciprocal_is_close(rng: Any) -> None:
    value = np.ldexp(1 + rng.random(5000), rng.integers(-100, 100, 5000)).astype(np.float32)
    assert (np.abs(reciprocal(value) * value.astype(np.float64) - 1) < 2.0**-21).all()


def test_corners_of_pairs(splits: Any, rng: Any, same_as_twin: Any) -> None:
    triangles = _triangles(rng, 300)
    first, second = np.arange(0, 300, 2), np.arange(1, 300, 2)
    blocks = np.empty((150, 2), np.uint32)
    blocks[:, 0] = first | rng.integers(0, 3, 150) << CORNER_SHIFT
    blocks[:, 1] = second | rng.integers(0, 3, 150) << CORNER_SHIFT
    blocks[::4, 1] = NONE
    named = {
        "state": np.array([150], np.uint32),
        "blocks": blocks.reshape(-1),
        "triangles": triangles.reshape(-1),
        "corners": np.full(150 * CORNER_WORDS, 7, np.float32),
    }
    same_as_twin(splits.stages["spatial_corners"], named, 2)
    corners = named["corners"].reshape(-1, CORNER_WORDS)[:, :15].reshape(-1, 5, 3)
    alone = np.flatnonzero(blocks[:, 1] == NONE)
    assert np.array_equal(
        np.sort(corners[alone, :3], axis=1), np.sort(triangles[first[alone]], axis=1)
    )
    assert np.array_equal(corners[alone, 3], corners[alone, 2])
    spatial_corners(*named.values())


@pytest.mark.parametrize("leaf", [1, 2])
@pytest.mark.parametrize("reinsertion", [0, 2])
def test_guest_bytes_are_those_of_the_host(
    device: Any, rng: Any, leaf: int, reinsertion: int
) -> None:
    triangles = _triangles(rng, 900)
    triangles[1::3] = triangles[::3][:, [1, 0, 2]]
    triangles[1::3, 2] += np.float32(0.3)
    triangles[5::50] = np.nan
    every, zeros = np.arange(900, dtype=np.uint32), np.zeros(900, np.uint32)
    options = BuildOptions("spatial", leaf=leaf, reinsertion=reinsertion, pairing="near")
    opaque = np.ones(1, np.bool_)
    ours = build_blas(triangles, zeros, every, opaque, options, device=device)
    host = build_blas(triangles, zeros, every, opaque, options)
    assert np.array_equal(ours.words, host.words) and np.array_equal(ours.parents, host.parents)
    assert ours.stats.duplicates == host.stats.duplicates > 0
    assert validate(assemble([ours], ["mesh"], [BvhInstance(0, np.eye(4))])) == []


def test_refusals(device: Any) -> None:
    with pytest.raises(LimitError, match="bytes"):
        GpuSpatialSplits(device, 1 << 28, CONFIG)
    options = BuildOptions("spatial", leaf=4, pairing="near")
    triangles, zeros = np.eye(3, dtype=np.float32)[None], np.zeros(1, np.uint32)
    with pytest.raises(UserError, match="spatial"):
        build_blas(triangles, zeros, zeros, np.ones(1, np.bool_), options, device=device)


@pytest.mark.parametrize("nodes", ["fp32", "auto"])
def test_the_gpu_validates_repeated_blocks(device: Any, rng: Any, nodes: str) -> None:
    """Sound as built; a box moved away and a triangle that is gone are found by both."""
    triangles = _triangles(rng, 900)
    every, zeros = np.arange(900, dtype=np.uint32), np.zeros(900, np.uint32)
    options = BuildOptions("spatial", leaf=1, nodes=nodes, reinsertion=0)
    blas = build_blas(triangles, zeros, every, np.ones(1, np.bool_), options)
    validator = GpuValidate(device, 900, most_uses=900)
    image = decode(blas.words)
    leaf = int(np.flatnonzero(np.bincount(image.leaves[:, 13])[image.leaves[:, 13]] > 1)[0])
    node, slot = np.argwhere(image.children == ~leaf)[0]
    boxes, leaves = image.boxes.copy(), image.leaves.copy()
    boxes[node, slot] += 10
    leaves[image.leaves[:, 13] == 7, 13] = 8
    cases = (
        (image, []),
        (replace(image, boxes=boxes), ["box"]),
        (replace(image, leaves=leaves), ["triangles, 900 in the header"]),
    )
    for changed, kinds in cases:
        words, links = encode(changed)
        found = validator.check(device.upload("words", words), device.upload("links", links))
        assert [f.kind for f in found] == kinds
        header = unpack_header(words)
        record = np.zeros(1, CHECK_PARAMETERS.dtype)
        record["units"], record["leaf_unit"] = header.size_units, header.leaf_unit
        record["most_uses"] = 900
        findings = empty_findings()
        check_units(record, words, links, np.zeros(900, np.uint32), findings)
        assert [str(f) for f in judge(findings, header)] == [str(f) for f in found]
