"""The viewer's panels, in the order of their tabs."""

from treeline.view.panel import Panel
from treeline.view.ray_panel import RayPanel


def make_panels() -> list[Panel]:
    return [RayPanel()]


def panel_of_kind(panels: list[Panel], kind: type) -> Panel:
    """The one panel of a class."""
    return next(panel for panel in panels if isinstance(panel, kind))
