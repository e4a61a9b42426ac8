"""The structure and instance panels in an offscreen window, driven by their items' names."""

import csv
import io
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from imgui_bundle import imgui

from bvh.build import BuildOptions
from bvh.decode import decode
from bvh.encode import stored_boxes
from bvh.tree import EMPTY, half_area
from engine.gpu.errors import UserError
from engine.view import marks
from engine.view.lines import LineRenderer
from passes.hidden import hidden_objects
from passes.option_list import ViewSettings
from passes.rays import RAY_TYPES
from treeline.view.box_overlay import BoxDrawing
from treeline.view.instance_panel import InstancePanel
from treeline.view.mean_sah import MeanSah
from treeline.view.node_fields import node_text
from treeline.view.structure_panel import (
    StructurePanel,
    focus_box,
    hide_selected,
    reset,
    show_all,
)
from treeline.view.structure_tree import TLAS_ROOT, StructureTree
from treeline.view.structure_view import StructureView
from treeline.view.view_state import BoxOverlay, NodeRef, ViewState

SIZE = (420, 560)
SETTINGS = ViewSettings(build=BuildOptions(builder="lbvh", reinsertion=0), group="object")


@pytest.fixture
def session(open_session: Callable[..., Any], until: Callable[..., int]) -> Any:
    opened = open_session(settings=SETTINGS)
    until(opened, lambda: opened.ready)
    return opened


@pytest.fixture
def show(open_panel: Callable[..., Any], session: Any) -> Callable[[Any], Any]:
    """Of a kind of panel."""
    return lambda kind: open_panel(session, kind(StructureView()), SIZE)


def tree_of(shown: Any) -> StructureTree:
    tree = shown.panel.structure.tree
    assert tree is not None
    return tree


def deep_node(tree: StructureTree, instance: int) -> NodeRef:
    """A triangle below an instance."""
    node = tree.instance_node(instance)
    while node is not None and tree.children(node):
        node = tree.children(node)[0]
    assert node is not None and node.triangle >= 0
    return node


def test_a_selection_from_elsewhere_opens_the_tree(show: Any) -> None:
    shown = show(StructurePanel)
    lazy = shown.panel.tree
    assert [tree_of(shown).label(key) for key in lazy.keys][0] == "TLAS"
    wanted = deep_node(tree_of(shown), 1)
    shown.state.selected = wanted
    shown.frames()
    assert lazy.selected == wanted
    assert set(tree_of(shown).path_to(wanted)) <= set(lazy.keys)
    shown.state.selected = TLAS_ROOT
    shown.frames()
    assert lazy.selected == TLAS_ROOT


def test_clicks_select_and_links_lead_on(show: Any) -> None:
    shown = show(StructurePanel)
    shown.click("structure.row.0")
    assert shown.state.selected == TLAS_ROOT
    first = tree_of(shown).children(TLAS_ROOT)[0]
    shown.click("structure.field.slot 0")
    assert shown.state.selected == first and shown.panel.tree.selected == first
    shown.click("structure.field.BLAS")
    root = tree_of(shown).children(first)[0]
    assert shown.state.selected == root
    shown.click("structure.field.parent")
    assert shown.state.selected == first
    shown.click("structure.copy")
    assert imgui.get_clipboard_text() == node_text(tree_of(shown), first)


def test_boxes_are_chosen_in_the_panel(show: Any) -> None:
    shown = show(StructurePanel)
    boxes = shown.state.boxes
    shown.click("structure.boxes")
    assert boxes.shown and (boxes.low, boxes.high) == (0, 0)
    x, y = marks.centre("structure.levels.high")
    left, _, right, _ = marks.rectangles["structure.levels"]
    for kind, at, button, held in (
        ("move", x, 0, ()),
        ("down", x, 1, (1,)),
        ("move", right, 0, (1,)),
        ("move", right, 0, (1,)),
        ("up", right, 1, ()),
    ):
        shown.window.send(f"pointer_{kind}", x=at, y=y, button=button, buttons=held)
        shown.frames(1)
    assert (boxes.low, boxes.high) == (0, tree_of(shown).header(-1).depth)
    assert left < x < right
    # Another container does not change what was chosen.
    boxes.high = 40
    shown.state.selected = TLAS_ROOT
    shown.frames()
    assert boxes.high == 40


def test_hide_and_show_in_the_panel(show: Any, session: Any, until: Any) -> None:
    shown = show(StructurePanel)
    wanted = deep_node(tree_of(shown), 0)
    gone = hidden_objects(tree_of(shown).bvh, [0])
    assert np.isin(session.frame.aov("object"), gone).any()
    before = session.frame.result_hash()
    opened = list(shown.panel.tree.keys)
    shown.state.selected = wanted
    shown.frames()
    opened = list(shown.panel.tree.keys)
    shown.click("structure.hide")
    assert shown.state.hidden == {0} and session.active.scene.hidden == {0}
    until(session, lambda: session.ready)
    assert not np.isin(session.frame.aov("object"), gone).any()
    shown.frames()
    # The tree stays as it was open, and says that the mask is zero.
    assert shown.panel.tree.keys == opened and shown.state.selected == wanted
    node = tree_of(shown).instance_node(0)
    assert node is not None and tree_of(shown).words(node)[2] >> 24 == 0
    shown.click("structure.show")
    until(session, lambda: session.ready)
    session.frame.run()
    assert shown.state.hidden == frozenset() and session.frame.result_hash() == before
    shown.frames()
    assert tree_of(shown).words(node)[2] >> 24 == 0xFF


def test_actions(session: Any) -> None:
    state = ViewState()
    assert focus_box(session, state) is None
    for selected in (None, TLAS_ROOT, NodeRef(0, 0x15)):
        state.selected = selected
        with pytest.raises(UserError, match="select"):
            hide_selected(session, state)
    tree = StructureTree(session.prepared.bvh)
    state.selected = deep_node(tree, 2)
    np.testing.assert_allclose(focus_box(session, state), tree.world_box(state.selected))
    hide_selected(session, state)
    state.selected = deep_node(tree, 1)
    hide_selected(session, state)
    assert state.hidden == {1, 2} == session.active.scene.hidden
    show_all(session, state)
    assert not state.hidden and not session.active.scene.hidden
    hide_selected(session, state)
    state.boxes = BoxOverlay(True, 1, 5, "kind")
    reset(session, state)
    assert (state.selected, state.hidden, state.boxes) == (None, frozenset(), BoxOverlay())


def test_another_structure_clears_the_selection(show: Any, session: Any, until: Any) -> None:
    shown = show(StructurePanel)
    shown.state.selected = deep_node(tree_of(shown), 1)
    shown.frames()
    session.change(ViewSettings(build=SETTINGS.build, group="all"))
    until(session, lambda: session.ready)
    shown.frames()
    assert shown.state.selected is None
    assert len(shown.panel.tree.keys) == 2  # folded up: the TLAS and one BLAS
    assert len(tree_of(shown).bvh.instances) == 1


def test_a_selection_that_is_nowhere_is_dropped(show: Any) -> None:
    shown = show(StructurePanel)
    shown.state.selected = NodeRef(0, 0x7FFF5, 0)
    shown.frames()
    assert shown.state.selected is None and "selected node" in shown.state.messages[-1]


def test_boxes_follow_another_structure(device: Any, session: Any) -> None:
    drawing = BoxDrawing(LineRenderer(device))
    bvh = session.prepared.bvh
    overlay = BoxOverlay(True, 0, 9)
    sizes = []
    for tree in (StructureTree(bvh), StructureTree(bvh)):
        for _ in range(10):
            drawing.update(tree, overlay, NodeRef(1, 0x15, 1), session.camera, (64, 64))
        sizes.append((drawing.stats.total, drawing.version))
    assert sizes[0][0] == sizes[1][0] > 1 and sizes[0][1] != sizes[1][1]


def test_tables(show: Any, session: Any) -> None:
    shown = show(InstancePanel)
    bvh, counted = tree_of(shown).bvh, session.counted
    rows = list(csv.DictReader(io.StringIO(shown.panel.instances.csv())))
    assert [row["name"] for row in rows] == [item.name for item in bvh.instances]
    assert [row["mask"] for row in rows] == ["255"] * 3
    for row, name in zip(rows, session.prepared.object_names, strict=True):
        for ray in RAY_TYPES:
            if ray not in session.frame.data.rays:
                assert row[f"{ray.name} nodes"] == ""
                continue
            found = counted.objects.get((name, ray.name), {"nodes": 0, "any_hits": 0})
            assert int(row[f"{ray.name} nodes"]) == found["nodes"]
            assert int(row[f"{ray.name} any-hits"]) == found["any_hits"]
    assert sum(int(row["reflection nodes"]) for row in rows) > 0
    shown.frames(3)
    blases = list(csv.DictReader(io.StringIO(shown.panel.blases.csv())))
    for row, stats, container in zip(blases, bvh.blas_stats, range(3), strict=True):
        assert int(row["triangles"]) == stats.triangles
        assert int(row["bytes [B]"]) == stats.bytes
        assert float(row["root SAH"]) == stats.sah
        assert int(row["boxes"]) == sum(
            decode(bvh.blas_words(container)).children.reshape(-1) != EMPTY
        )
        assert row["built on"] == session.active.structure.on and row["refits"] == "0"
        assert float(row["mean SAH"]) >= 1
    total = sum(spent["nodes"] for (_, ray), spent in counted.objects.items() if ray == "shadow")
    tlas = counted.objects["(TLAS)", "shadow"]["nodes"]
    share = sum(float(row["shadow share [%]"]) for row in blases)
    assert share == pytest.approx(100 * (1 - tlas / total))
    shown.click("instances.row.1")
    assert shown.state.selected == tree_of(shown).instance_node(1)
    shown.click("BLASes.row.2")
    assert shown.state.selected == NodeRef(2, 0x15)


def test_mean_sah_of_every_node(hall: Any, monkeypatch: Any) -> None:
    container = int(np.argmax([stats.triangles for stats in hall.bvh.blas_stats]))
    image = decode(hall.bvh.blas_words(container))
    boxes = stored_boxes(image)
    used = image.children != EMPTY
    slots = np.where(used, half_area(np.where(used[..., None, None], boxes, 0)), 0)
    own = np.empty(len(slots))
    own[0] = half_area(image.bounds)
    inner = image.children >= 0
    own[image.children[inner]] = slots[inner]
    expected = float((1 + slots.sum(axis=1)[own > 0] / own[own > 0]).mean())
    for nodes in (8_000, 113):
        monkeypatch.setattr("treeline.view.mean_sah.STEP_NODES", nodes)
        mean = MeanSah(StructureTree(hall.bvh), container)
        while mean.value is None:
            mean.step()
        assert mean.value == pytest.approx(expected)
