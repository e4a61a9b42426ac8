"""What a pixel sees, and the path of nodes to the triangle, against the bytes and brute force."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from bvh.brute_force import closest
from bvh.build import BuildOptions
from bvh.decode import decode_triangles
from bvh.fan_blocks import unpack_fan_table
from bvh.header import unpack_header
from bvh.layout import (
    INSTANCE_BLAS_BASE_WORD,
    INSTANCE_ID_WORD,
    INVALID_POINTER,
    NODE_INSTANCE,
    ROOT_POINTER,
    UNIT_BYTES,
    UNIT_WORDS,
    unpack_pointer,
)
from bvh.scene_bvh import SceneBvh
from engine.gpu.errors import UserError
from passes.gpu_scene import GpuScene
from passes.hybrid import FrameOptions, HybridFrame
from passes.prepare import PreparedScene, prepare
from treeline.scenes import baked_triangles, load
from treeline.view.node_ref import WHOLE_TLAS, NodeRef
from treeline.view.node_search import find_triangle
from treeline.view.pick import Pick, pick, pick_source
from treeline.view.pixel_rays import PixelRay, trace_steps
from treeline.view.structure_tree import StructureTree


@pytest.fixture(scope="module")
def boxes(device: Any, box: Path) -> HybridFrame:
    """A box before the background, one instance, blocks of up to four triangles."""
    prepared = prepare(load(box), BuildOptions(leaf=4))
    frame = HybridFrame(device, prepared, FrameOptions(48, 27))
    frame.run()
    return frame


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fan of six triangles about the origin on the floor, and a wall."""
    rim = [(np.cos(a), 0.0, np.sin(a)) for a in np.arange(6) * np.pi / 3]
    points = [(0.0, 0.0, 0.0), *rim, (-1, 0, -1), (1, 0, -1), (1, 1, -1), (-1, 1, -1)]
    faces = [(1, 2 + (i + 1) % 6, 2 + i) for i in range(6)] + [(8, 9, 10), (8, 10, 11)]
    lines = [f"v {x} {y} {z}" for x, y, z in points] + [f"f {a} {b} {c}" for a, b, c in faces]
    path = tmp_path_factory.mktemp("scenes") / "fan.obj"
    path.write_text("\n".join(lines))
    return path


def words_at(bvh: SceneBvh, node: NodeRef) -> Any:
    words = bvh.words if node.container == WHOLE_TLAS else bvh.blas_words(node.container)
    return words[unpack_pointer(node.pointer)[0] // 4 :]


def held_triangles(bvh: SceneBvh, node: NodeRef) -> list[tuple[int, int]]:
    """(geometry, primitive) of the leaf's triangles, by the decoder."""
    words = bvh.blas_words(node.container)
    header = unpack_header(words)
    leaf = unpack_pointer(node.pointer)[0] // UNIT_BYTES - header.leaf_unit
    fans = unpack_fan_table(words, header)
    rows = decode_triangles(
        words_at(bvh, node)[:UNIT_WORDS].reshape(1, -1),
        np.array([node.pointer & 7], np.uint8),
        None if fans is None else fans[leaf : leaf + 1],
    )
    return list(zip(rows.geometry.tolist(), rows.primitive.tolist(), strict=True))


def check_path(bvh: SceneBvh, picked: Pick) -> None:
    """Every node points at the next one; the instance node at the BLAS; the leaf has it."""
    path = picked.path
    assert (path[0].container, path[0].pointer) == (WHOLE_TLAS, ROOT_POINTER)
    for upper, lower in zip(path[:-2], path[1:-1], strict=True):
        raw = words_at(bvh, upper)
        if upper.container == lower.container:
            assert lower.pointer in raw[:4] and lower.pointer != INVALID_POINTER
            assert lower.instance == upper.instance
            continue
        assert upper.pointer & 7 == NODE_INSTANCE
        assert (lower.container, lower.pointer) == (picked.blas, ROOT_POINTER)
        assert raw[INSTANCE_ID_WORD] == lower.instance == picked.instance
        assert UNIT_BYTES * raw[INSTANCE_BLAS_BASE_WORD] == bvh.blas_bases[picked.blas]
    geometry = picked.object - bvh.instances[picked.instance].first_object
    block, triangle = path[-2:]
    assert replace(block, triangle=triangle.triangle) == triangle
    assert held_triangles(bvh, block)[triangle.triangle] == (geometry, picked.primitive)


def test_pick_against_brute_force(
    counted: HybridFrame, hall: PreparedScene, rng: np.random.Generator
) -> None:
    triangles = baked_triangles(hall.scene)
    counts = [len(hall.scene.meshes[i.mesh].triangles) for i in hall.scene.instances]
    first = np.concatenate([[0], np.cumsum(counts)])
    pixels = [(int(rng.integers(64)), int(rng.integers(36))) for _ in range(14)]
    picks = [pick(counted, x, y) for x, y in pixels]
    nearest = closest(triangles, np.stack([picked.rays[0].ray for picked in picks]))
    opaque = [
        hall.scene.materials[hall.scene.meshes[i.mesh].material].opaque
        for i in hall.scene.instances
    ]
    checked = 0
    for number, picked in enumerate(picks):
        check_path(hall.bvh, picked)
        surface = picked.surface
        assert surface is not None and picked.pixel == pixels[number]
        corners = triangles[first[picked.object] + picked.primitive].astype(np.float64)
        normal = np.cross(corners[1] - corners[0], corners[2] - corners[0])
        normal /= np.linalg.norm(normal)
        assert abs((surface.position - corners[0]) @ normal) < 1e-3
        assert abs(surface.normal @ normal) > 0.999
        assert surface.normal @ picked.rays[0].direction < 0
        u, v = surface.weights
        at = corners[0] + u * (corners[1] - corners[0]) + v * (corners[2] - corners[0])
        assert np.linalg.norm(at - surface.position) < 1e-3
        assert surface.material_name == hall.scene.materials[surface.material].name
        # Unless leaves lie before it, or raster and ray disagree about an edge.
        triangle = int(nearest.triangle[number])
        if not picked.note and opaque[int(np.searchsorted(first, triangle, side="right")) - 1]:
            assert abs(nearest.t[number] - surface.depth) < 1e-4 * surface.depth
            assert triangle == first[picked.object] + picked.primitive
            checked += 1
    assert checked >= 7


def test_ids_lead_to_the_same_triangle(
    counted: HybridFrame, hall: PreparedScene, rng: np.random.Generator
) -> None:
    tree = StructureTree(hall.bvh)
    for _ in range(12):
        picked = pick(counted, int(rng.integers(64)), int(rng.integers(36)))
        geometry = picked.object - hall.bvh.instances[picked.instance].first_object
        found = find_triangle(tree, picked.instance, geometry, picked.primitive)
        assert found == picked.path[-1]


def test_every_pixel_has_a_path(counted: HybridFrame, hall: PreparedScene) -> None:
    """Those too that the rasteriser decides otherwise than the ray."""
    noted = 0
    for x in range(0, 64, 2):
        for y in range(1, 36, 6):
            picked = pick(counted, x, y)
            check_path(hall.bvh, picked)
            noted += bool(picked.note)
    assert noted < 8


def test_raster_may_see_another_triangle_than_the_ray(
    monkeypatch: pytest.MonkeyPatch, counted: HybridFrame
) -> None:
    picked = pick(counted, 20, 20)
    # The ray's own answer is lost: the links have to do.
    monkeypatch.setattr("treeline.view.pick.trace_steps", _meets_nothing)
    again = pick(counted, 20, 20)
    assert again.path == picked.path
    assert again.note == "the ray through the pixel's centre meets nothing"


def _meets_nothing(ray: PixelRay) -> Any:
    steps, result = trace_steps(ray)
    result.object[:], result.primitive[:], result.t[:] = 0xFFFFFFFF, 0xFFFFFFFF, np.inf
    return steps, result


def test_fans_and_background(boxes: HybridFrame) -> None:
    bvh = boxes.scene.prepared.bvh
    assert unpack_header(bvh.blas_words(0)).fan_count > 0
    seen = set()
    for x in range(0, 48, 2):
        for y in range(0, 27, 2):
            picked = pick(boxes, x, y)
            if picked.surface is None:
                assert (picked.object, picked.primitive, picked.instance) == (-1, -1, -1)
                assert picked.path == () and len(picked.rays) == 1 and not picked.rays[0].hit
                seen.add("background")
                continue
            check_path(bvh, picked)
            seen.add(picked.path[-1].pointer & 7)
    assert seen >= {"background", 1, 2}


def test_every_triangle_of_a_fan_scene_is_found(boxes: HybridFrame) -> None:
    bvh = boxes.scene.prepared.bvh
    tree = StructureTree(bvh)
    for primitive in range(8):
        found = find_triangle(tree, 0, 0, primitive)
        assert found is not None
        assert held_triangles(bvh, found)[found.triangle] == (0, primitive)
    assert find_triangle(tree, 0, 0, 8) is None and find_triangle(tree, 0, 1, 0) is None


def test_no_frame_yet_and_outside(counted: HybridFrame) -> None:
    for frames in ((None, None), (None, counted)):
        with pytest.raises(UserError, match="no whole frame to pick from"):
            pick(shown(*frames), 0, 0)
    with pytest.raises(UserError, match="outside the 64x36"):
        pick(counted, 64, 0)


def shown(frame: HybridFrame | None, counted: HybridFrame | None) -> Any:
    """A session that shows `frame`."""
    return SimpleNamespace(frame=frame, frame_for=lambda counts: counted if counts else frame)


def test_a_half_drawn_frame_is_not_read(device: Any, hall: PreparedScene) -> None:
    """The counted frame of the same view is, where there is one."""
    scene = GpuScene(device, hall)
    timed = HybridFrame(device, hall, FrameOptions(32, 18), scene)
    counted = HybridFrame(device, hall, FrameOptions(32, 18, count=True), scene)
    other = HybridFrame(device, hall, FrameOptions(32, 18), scene)
    inputs = timed.inputs
    for frame in (timed, counted):
        frame.run(0, 1, inputs)
    assert pick_source(shown(timed, counted)) is timed
    parts = timed.steps(1, 2, inputs, budget_ms=20.0)
    next(parts)
    assert not timed.whole
    assert pick_source(shown(timed, counted)) is counted
    assert pick_source(shown(timed, None)) is None
    with pytest.raises(UserError, match="no whole frame"):
        pick(timed, 3, 3)
    # Of another view it is not.
    other.run(0, 1, replace(inputs, camera=replace(inputs.camera)))
    assert pick_source(shown(timed, other)) is None
    for _ in parts:
        pass
    assert timed.whole and pick_source(shown(timed, counted)) is timed
    assert timed.submit(2, 3, inputs) and timed.whole
    assert pick(timed, 3, 3).pixel == (3, 3)
