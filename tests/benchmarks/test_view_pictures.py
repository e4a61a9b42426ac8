"""Pictures of the viewer for the README."""

from benchmarks.view_pictures import SCENES
from treeline.view.panels import make_panels
from treeline.view.structure_view import StructureView


def test_every_panel_has_its_picture() -> None:
    assert {panel.title for panel in make_panels(StructureView())} == set(SCENES)
