"""The objects panel in an offscreen window: numbers, ray types, and what a click selects."""

import csv
import io
import math
from collections.abc import Callable
from typing import Any

import pytest
from imgui_bundle import imgui

from bvh.build import BuildOptions
from bvh.counters import OBJECT_COUNTERS
from bvh.layout import ROOT_POINTER
from passes.hit_table import hit_classes
from passes.option_list import ViewSettings, find_option
from passes.rays import RAY_TYPES
from passes.update_records import UpdateRecord
from treeline.object_tables import PAGE_FIELDS
from treeline.view.object_rows import UPDATE_COLUMNS, object_rows, update_rows
from treeline.view.objects_panel import ObjectsPanel, node_of
from treeline.view.view_state import NodeRef

SIZE = (900, 480)
SETTINGS = ViewSettings(build=BuildOptions(builder="lbvh", reinsertion=0), group="object")


@pytest.fixture
def session(open_session: Callable[..., Any], until: Callable[..., int]) -> Any:
    opened = open_session(settings=SETTINGS)
    until(opened, lambda: opened.ready)
    return opened


@pytest.fixture
def shown(open_panel: Callable[..., Any], session: Any) -> Any:
    return open_panel(session, ObjectsPanel(), SIZE)


def test_rows_hold_every_counter_and_add_up(session: Any) -> None:
    rows = object_rows(session.drawing.recent, session.counted)
    assert len(rows) == len(session.counted.objects) > 3
    assert [row[4] for row in rows] == sorted((row[4] for row in rows), reverse=True)
    for ray in session.frame.data.rays:
        mine = object_rows(session.drawing.recent, session.counted, ray.name)
        assert mine == [row for row in rows if row[1] == ray.name]
        assert sum(row[2] for row in mine) == pytest.approx(100)
        for place, field in enumerate(PAGE_FIELDS, start=3):
            total = getattr(session.counted.rays[ray.name], field)
            assert sum(row[place] for row in mine) == total
    assert set(PAGE_FIELDS) == set(OBJECT_COUNTERS)


def test_types_sort_and_select(shown: Any, session: Any) -> None:
    panel = shown.panel
    assert len(panel.objects) == len(session.counted.objects)
    shown.click("objects.type.shadow")
    assert panel.ray_type == "shadow" and set(panel.objects.data[1]) == {"shadow"}
    shown.click("objects.header.nodes")
    rows = list(csv.DictReader(io.StringIO(panel.objects.csv())))
    nodes = [int(row["nodes"]) for row in rows]
    assert nodes == sorted(nodes, reverse=True) and len(nodes) == len(panel.objects)
    shown.click("objects.type.all")
    tree = panel.structure.tree
    assert tree is not None
    for place in range(len(panel.objects)):
        name = panel.objects.data[0][int(panel.objects.order[place])]
        if name == "(TLAS)":
            continue
        shown.click(f"objects.row.{place}")
        selected = shown.state.selected
        assert selected is not None
        blas = tree.bvh.instances[tree.instance_of(selected)].blas
        assert tree.bvh.blas_names[blas] == name


def test_the_hit_table_has_its_classes(shown: Any, session: Any) -> None:
    hits = shown.panel.hits
    found = hit_classes(session.prepared, RAY_TYPES)
    assert len(hits) == sum(item.fine_records > 0 for item in found) > 0
    assert set(hits.data[0]) <= {ray.name for ray in RAY_TYPES}
    shown.click("hits.copy")
    assert imgui.get_clipboard_text().startswith("hits of,geometry,material,objects")


def test_several_instances_are_selected_by_what_they_share(hall: Any) -> None:
    from treeline.view.structure_tree import StructureTree

    tree = StructureTree(hall.bvh)
    uses = [item.blas for item in hall.bvh.instances]
    shared = max(set(uses), key=uses.count)
    assert uses.count(shared) > 1
    assert node_of(tree, hall.bvh.blas_names[shared]) == NodeRef(shared, ROOT_POINTER)
    assert node_of(tree, "(TLAS)") is None


def test_without_counters_it_says_so(shown: Any, session: Any) -> None:
    session.change(find_option("count").set(session.settings, False))
    session.drawing.look(session.drawing.inputs, False)
    shown.frames()
    assert len(shown.panel.objects) == 0 == len(shown.panel.updates)


def test_updates_are_rows_with_their_number() -> None:
    nan = math.nan
    fox = UpdateRecord(
        "fox",
        "deforming",
        "refit",
        "SAH over the build's",
        1.1,
        1.3,
        0,
        4,
        9.0,
        9.9,
        nan,
        nan,
        12,
        (),
    )
    man = UpdateRecord(
        "man", "deforming", "keep", "no vertex moved", nan, nan, 2, 0, *4 * [nan], 0, ()
    )
    names = [column.name for column in UPDATE_COLUMNS]
    rows = [
        dict(zip(names, row, strict=True)) for row in update_rows((fox, man), {"update/refit": 0.5})
    ]
    assert rows[0]["why"] == "SAH over the build's 1.1, limit 1.3"
    assert (rows[0]["took"], rows[0]["refits"], rows[0]["SAH"]) == ("0.500", 4, 9.9)
    assert rows[0]["decisions"] == 12
    assert (rows[1]["why"], rows[1]["took"], rows[1]["builds"]) == ("no vertex moved", "0.000", 2)
    both = update_rows((fox, fox), {"update/refit": 0.5})
    assert [row[3] for row in both] == ["not separate"] * 2
    assert update_rows((fox,), {})[0][3] == "-"
