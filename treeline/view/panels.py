"""The viewer's panels, in the order of their tabs."""

from treeline.view.instance_panel import InstancePanel
from treeline.view.panel import Panel
from treeline.view.ray_panel import RayPanel
from treeline.view.structure_panel import StructurePanel
from treeline.view.structure_view import StructureView


def make_panels() -> list[Panel]:
    structure = StructureView()
    return [RayPanel(), StructurePanel(structure), InstancePanel(structure)]


def panel_of_kind(panels: list[Panel], kind: type) -> Panel:
    """The one panel of a class."""
    return next(panel for panel in panels if isinstance(panel, kind))
