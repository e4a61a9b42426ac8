"""The viewer's panels, in the order of their tabs."""

from treeline.view.controls_panel import ControlsPanel
from treeline.view.heat_panel import HeatPanel
from treeline.view.instance_panel import InstancePanel
from treeline.view.objects_panel import ObjectsPanel
from treeline.view.panel import Panel
from treeline.view.passes_panel import PassesPanel
from treeline.view.ray_panel import RayPanel
from treeline.view.rays_panel import RaysPanel
from treeline.view.structure_panel import StructurePanel
from treeline.view.structure_view import StructureView


def make_panels(structure: StructureView) -> list[Panel]:
    """A new set. Those about the structure share what was read of it."""
    return [
        ControlsPanel(),
        HeatPanel(),
        PassesPanel(),
        RaysPanel(),
        ObjectsPanel(structure),
        StructurePanel(structure),
        InstancePanel(structure),
        RayPanel(),
    ]
