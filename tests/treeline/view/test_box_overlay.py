"""Which boxes the overlay draws: against a full decode, and corners projected one by one."""

import threading
from typing import Any

import numpy as np
import pytest

from bvh.build import BuildOptions, build_blas
from bvh.decode import decode
from bvh.encode import stored_boxes
from bvh.scene_bvh import SceneBvh, assemble
from bvh.tlas import BvhInstance
from bvh.tree import EMPTY, tree_levels
from engine.scene.camera import look_at
from engine.view.lines import LineRenderer
from treeline.view import box_levels, box_overlay
from treeline.view.box_choice import SMALLEST_PIXELS, DrawBudget, affordable, pixels_across
from treeline.view.box_levels import BoxLevels
from treeline.view.box_overlay import BoxDrawing, legend
from treeline.view.structure_tree import TLAS_ROOT, StructureTree
from treeline.view.view_state import WHOLE_TLAS, BoxOverlay, NodeRef

SIZE = (160, 90)
CAMERA = look_at(np.array([4.0, 3.0, 6.0]), np.array([0.5, 0.0, 0.0]), 0.7)
MOVE = np.array([[0, -3.6, 0, 1], [2.4, 0, 0, -1], [0, 0.3, 3, 0.5], [0, 0, 0, 1]])


@pytest.fixture(scope="module")
def bvh() -> SceneBvh:
    rng = np.random.default_rng(3)
    walk = np.cumsum(rng.normal(0, 0.1, (902, 3)), axis=0)
    walk -= walk.mean(axis=0)
    triangles = np.stack([walk[:-2], walk[1:-1], walk[2:]], axis=1).astype(np.float32)
    count = np.arange(len(triangles), dtype=np.uint32)
    options = BuildOptions(builder="lbvh", reinsertion=0)
    blas = build_blas(triangles, np.zeros_like(count), count, np.array([True]), options)
    return assemble([blas], ("walk",), [BvhInstance(0, MOVE), BvhInstance(0)], options)


@pytest.fixture(scope="module")
def tree(bvh: SceneBvh) -> StructureTree:
    return StructureTree(bvh)


@pytest.fixture
def drawing(device: Any) -> BoxDrawing:
    return BoxDrawing(LineRenderer(device))


def decoded_levels(words: Any) -> list[tuple[Any, Any]]:
    """(boxes, node types) of levels 1 and on, by a full decode."""
    image = decode(words)
    boxes = stored_boxes(image)
    found = []
    for level in tree_levels(image.children):
        slots = image.children[level]
        used = slots != EMPTY
        inner = np.where(slots >= 0, 5 - image.half[np.maximum(slots, 0)], 0)
        leaf = image.leaf_types[np.where((slots < 0) & used, ~slots, 0)]
        found.append((boxes[level][used], np.where(slots >= 0, inner, leaf)[used]))
    return found


def rows(boxes: Any, types: Any) -> list[Any]:
    """Boxes with their types, in an order that does not depend on where they stand."""
    return sorted(map(tuple, np.column_stack([boxes.reshape(-1, 6), types]).tolist()))


@pytest.mark.parametrize("nodes_a_step", [7, 30_000])
def test_levels_are_those_of_a_full_decode(
    bvh: SceneBvh, tree: StructureTree, monkeypatch: Any, nodes_a_step: int
) -> None:
    monkeypatch.setattr(box_levels, "STEP_NODES", nodes_a_step)
    for container, words in ((0, bvh.blas_words(0)), (WHOLE_TLAS, bvh.tlas_words)):
        known = BoxLevels(tree, container)
        while not known.complete:
            known.step()
        first, *others = known.levels
        np.testing.assert_array_equal(first.boxes, tree.header(container).bounds[None])
        assert first.types.tolist() == [5]
        expected = decoded_levels(words)
        assert len(others) == len(expected)
        for level, (boxes, types) in zip(others, expected, strict=True):
            assert rows(level.boxes, level.types) == rows(boxes, types)
    assert len(expected[0][0]) == 2  # the instances


def test_an_empty_scene_has_no_level() -> None:
    known = BoxLevels(StructureTree(assemble([], [], [])), WHOLE_TLAS)
    while not known.complete:
        known.step()
    assert known.levels == []


def settled(
    tree: StructureTree, drawing: BoxDrawing, overlay: BoxOverlay, selected: Any, **more: Any
) -> Any:
    for _ in range(100):
        drawing.update(tree, overlay, selected, CAMERA, SIZE, **more)
        if not drawing.stats.reading:
            return drawing.stats
    raise AssertionError("still reading")


def seen_corners(boxes: Any, matrix: Any) -> tuple[Any, Any]:
    """(whether any corner of each box is in the view, pixels across the box's corners)."""
    pick = np.array(list(np.ndindex(2, 2, 2)))
    corners = np.stack([boxes[:, pick[:, axis], axis] for axis in range(3)], axis=-1)
    world = corners @ matrix[:3, :3].T + matrix[:3, 3]
    full = np.concatenate([world, np.ones((*world.shape[:2], 1))], axis=-1)
    clip = full @ (CAMERA.projection(SIZE[0] / SIZE[1]) @ CAMERA.view_matrix()).T
    flat = clip[..., :2] / clip[..., 3:]
    inside = (clip[..., 3] > 0) & (np.abs(flat) < 1).all(axis=-1)
    pixels = (flat + 1) / 2 * SIZE
    across = np.linalg.norm(pixels.max(axis=1) - pixels.min(axis=1), axis=-1)
    return inside.any(axis=1), across


def test_what_is_drawn_and_what_is_not(
    device: Any, bvh: SceneBvh, tree: StructureTree, drawing: BoxDrawing, monkeypatch: Any
) -> None:
    """Everything that has a corner in view and is clearly large; nothing that is clearly small."""
    monkeypatch.setattr(drawing, "budget", DrawBudget(1e6, 1e6, 1.0, 0.0))
    root = NodeRef(0, 0x15, 0)
    overlay = BoxOverlay(True, 2, 5, "level")
    stats = settled(tree, drawing, overlay, root)
    levels = decoded_levels(bvh.blas_words(0))[1:5]
    assert stats.total == sum(len(boxes) for boxes, _ in levels)
    batch = drawing.batches[0]
    chosen = device.read(batch.chosen, np.uint32, count=batch.count)
    assert stats.drawn == batch.count == len(set(chosen.tolist()))
    assert 0 < stats.drawn < stats.total
    items = device.read(batch.items, np.float32, count=8 * stats.total).reshape(-1, 8)
    boxes = np.stack([items[:, :3], items[:, 4:7]], axis=1)
    wanted = np.concatenate([boxes for boxes, _ in levels])
    assert rows(boxes, np.zeros(len(boxes))) == rows(wanted, np.zeros(len(wanted)))
    inside, across = seen_corners(boxes.astype(float), MOVE)
    drawn = np.zeros(len(boxes), bool)
    drawn[chosen] = True
    assert drawn[inside & (across > 2 * SMALLEST_PIXELS)].all()
    # A sphere around a box is up to sqrt(3) wider than the box looks.
    assert not drawn[across < SMALLEST_PIXELS / 3].any()
    assert (drawn & inside).sum() > 100


def test_spheres_outside_the_view_are_left_out() -> None:
    right, up, forward = CAMERA.transform[:3, 0], CAMERA.transform[:3, 1], CAMERA.forward
    slope = np.tan(CAMERA.y_fov / 2)
    for axis, wide in ((right, slope * SIZE[0] / SIZE[1]), (up, slope)):
        for side in (-1.0, 1.0):
            # On the side plane, then just farther and just nearer than the radius along its normal.
            normal = (side * axis - wide * forward) / np.hypot(1.0, wide)
            edge = CAMERA.position + 5.0 * (forward + side * wide * axis)
            centres = np.stack([edge + 0.11 * normal, edge + 0.09 * normal], axis=1)
            pixels = pixels_across(
                centres.astype(np.float32), np.full(2, 0.1, np.float32), CAMERA, SIZE
            )
            assert pixels[0] == 0.0
            assert pixels[1] == pytest.approx(2 * 0.1 / 5.0 * SIZE[1] / (2 * slope), rel=0.05)
    behind = np.stack([CAMERA.position - 0.2 * forward, CAMERA.position], axis=1)
    pixels = pixels_across(behind.astype(np.float32), np.full(2, 0.1, np.float32), CAMERA, SIZE)
    assert pixels.tolist() == [0.0, np.inf]


def test_of_too_many_the_largest_are_drawn(rng: Any) -> None:
    pixels = rng.permutation(np.linspace(0.0, 50.0, 500)).astype(np.float32)
    worth = np.flatnonzero(pixels >= SMALLEST_PIXELS)
    all_of_them = affordable(pixels, DrawBudget(1, 1, 1.0, 0.0), 1.0, SIZE)
    np.testing.assert_array_equal(all_of_them, worth)
    for budget in (DrawBudget(1, 1, 10.0, 0.0), DrawBudget(1, 1, 0.1, 1.0)):
        some = affordable(pixels, budget, 1.0, SIZE)
        assert 10 < len(some) < len(worth)
        left = np.setdiff1d(worth, some)
        assert pixels[some].min() >= pixels[left].max()
        cost = budget.box_us + budget.pixel_us * pixels[some]
        most = budget.box_us + budget.pixel_us * pixels[left].max()
        assert 1000 - most <= cost.sum() + 1e-3 <= 1000 + 1e-2
    huge = np.full(9, np.inf, np.float32)
    assert len(affordable(huge, DrawBudget(1, 1, 0.0001, 1.0), 1.0, SIZE)) == 1000 // SIZE[0]


def test_a_picture_with_the_same_version_can_stay(tree: StructureTree, drawing: BoxDrawing) -> None:
    overlay = BoxOverlay(True, 0, 3, "level")
    settled(tree, drawing, overlay, TLAS_ROOT)
    version = drawing.version
    drawing.update(tree, overlay, TLAS_ROOT, CAMERA, SIZE)
    assert drawing.version == version
    for change in (
        lambda: setattr(overlay, "high", 0),
        lambda: setattr(overlay, "colour_by", "kind"),
        lambda: setattr(overlay, "shown", False),
    ):
        change()
        drawing.update(tree, overlay, TLAS_ROOT, CAMERA, SIZE)
        assert drawing.version != version
        version = drawing.version
    drawing.update(tree, overlay, NodeRef(0, 0x15, 0), CAMERA, SIZE)
    assert drawing.version != version


def test_a_moving_camera_draws_the_list_of_a_moment_ago(
    device: Any, tree: StructureTree, drawing: BoxDrawing, monkeypatch: Any
) -> None:
    overlay, root = BoxOverlay(True, 0, 9, "level"), NodeRef(0, 0x15, 0)
    settled(tree, drawing, overlay, root)

    def chosen() -> list[int]:
        batch = drawing.batches[0]
        assert drawing.stats.drawn == batch.count
        return device.read(batch.chosen, np.uint32, count=batch.count).tolist()

    def look(angle: float, *, moving: bool) -> list[int]:
        place = np.array([4.0 * np.cos(angle), 2.0, 4.0 * np.sin(angle)])
        camera = look_at(place, np.array([1.0, 0.0, 0.0]), 0.5)
        drawing.update(tree, overlay, root, camera, SIZE, moving=moving)
        return chosen()

    start = look(0.0, moving=False)
    rest = [look(angle, moving=False) for angle in (1.0, 2.0)]
    assert start != rest[0] != rest[1]
    assert look(0.0, moving=False) == start
    waiting = threading.Event()
    choose = box_overlay.choose_boxes

    def slowly(*job: Any) -> Any:
        assert waiting.wait(10.0)
        jobs.append(job)
        return choose(*job)

    jobs: list[Any] = []
    monkeypatch.setattr(box_overlay, "choose_boxes", slowly)
    monkeypatch.setattr(box_overlay, "LIST_S", 10.0)
    monkeypatch.setattr(box_overlay, "FEW", 0)
    version = drawing.version
    assert look(1.0, moving=True) == look(2.0, moving=True) == start
    assert drawing.version == version
    waiting.set()
    drawing._choosing.result()
    assert look(2.0, moving=True) == rest[0]  # asked for when the camera was there
    assert drawing.version == version + 1
    asked = 0  # frames until the next list is
    while drawing._choosing is None:
        look(2.0, moving=True)
        asked += 1
    assert asked < box_overlay.LIST_FRAMES
    drawing._choosing.result()
    assert look(2.0, moving=True) == rest[1]
    assert drawing._choosing is None, "a camera that stands still takes no more lists"
    # A list that is late does not take the place of the one at rest.
    while drawing._choosing is None:
        look(1.0, moving=True)
    late = drawing._choosing
    assert look(0.0, moving=False) == start
    late.result()
    assert look(0.0, moving=False) == start
    jobs.clear()
    for frame in range(3 * box_overlay.LIST_FRAMES):
        look(3.0 + 0.1 * frame, moving=True)
        if drawing._choosing is not None:
            drawing._choosing.result()
    assert len(jobs) == 3


def test_few_boxes_are_chosen_without_a_thread(
    tree: StructureTree, drawing: BoxDrawing, monkeypatch: Any
) -> None:
    """At once, and no more often: a list is of the frame that it was made in."""
    overlay, root = BoxOverlay(True, 0, 9, "level"), NodeRef(0, 0x15, 0)
    settled(tree, drawing, overlay, root)
    choose, jobs = box_overlay.choose_boxes, []

    def counted(*job: Any) -> Any:
        jobs.append((threading.current_thread(), job[2]))
        return choose(*job)

    monkeypatch.setattr(box_overlay, "choose_boxes", counted)
    monkeypatch.setattr(box_overlay, "LIST_S", 10.0)
    cameras = [
        look_at(np.array([4.0, 2.0, 0.1 * frame]), np.array([1.0, 0.0, 0.0]), 0.5)
        for frame in range(3 * box_overlay.LIST_FRAMES)
    ]
    listed = []
    for camera in cameras:
        drawing.update(tree, overlay, root, camera, SIZE, moving=True)
        listed.append(len(jobs))
    assert listed == [1 + frame // box_overlay.LIST_FRAMES for frame in range(len(cameras))]
    assert {thread for thread, _ in jobs} == {threading.main_thread()}
    assert [camera for _, camera in jobs] == cameras[:: box_overlay.LIST_FRAMES]
    drawing.update(tree, overlay, root, cameras[-1], SIZE, moving=False)
    assert jobs[-1][1] is cameras[-1], "where the camera rests, the list is its own"


def test_colours_by_level_and_by_kind(
    device: Any, bvh: SceneBvh, tree: StructureTree, drawing: BoxDrawing
) -> None:
    for colour_by in ("level", "kind"):
        overlay = BoxOverlay(True, 1, 3, colour_by)
        settled(tree, drawing, overlay, NodeRef(0, 0x15, 0))
        batch = drawing.batches[0]
        items = device.read(batch.items, np.uint32, count=8 * drawing.stats.total).reshape(-1, 8)
        palette = device.read(batch.colours, np.float32).reshape(-1, 4)
        shown = dict(legend(overlay, 9))
        levels = decoded_levels(bvh.blas_words(0))[:3]
        if colour_by == "level":
            names = np.repeat(["level 1", "level 2", "level 3"], [len(t) for _, t in levels])
        else:
            kinds = np.array(["Block"] * 4 + ["Box16", "Box32", "Instance"])
            names = kinds[np.concatenate([types for _, types in levels])]
            assert len(set(names)) > 1
        expected = sorted((name, *np.float32(shown[name]).tolist()) for name in names)
        if colour_by == "level":
            drawn = [
                (name, *palette[i, :3].tolist()) for name, i in zip(names, items[:, 3], strict=True)
            ]
            assert sorted(drawn) == expected
        else:
            colours = palette[items[:, 3], :3]
            assert sorted(map(tuple, colours.tolist())) == sorted(row[1:] for row in expected)


def test_the_selected_node_and_its_slots(
    device: Any, tree: StructureTree, drawing: BoxDrawing
) -> None:
    overlay = BoxOverlay()  # not shown: only the selected node is
    root = NodeRef(0, 0x15, 0)
    node = tree.children(root)[0]
    drawing.update(tree, overlay, node, CAMERA, SIZE)
    slots, own = drawing.batches
    assert (slots.count, own.count) == (len(tree.children(node)), 1)
    items = device.read(own.items, np.float32, count=8)
    np.testing.assert_array_equal(items[[0, 1, 2, 4, 5, 6]], tree.box(node).reshape(-1))
    matrix = device.read(own.transforms, np.float32).reshape(3, 4)
    np.testing.assert_array_equal(matrix, MOVE[:3].astype(np.float32))
    index = device.read(own.items, np.uint32, count=8)[3]
    palette = device.read(own.colours, np.float32).reshape(-1, 4)
    assert palette[index].tolist() == list(box_overlay.SELECTED_COLOUR)
    drawing.update(tree, overlay, None, CAMERA, SIZE)
    assert list(drawing.batches) == []
