"""What a session is drawing."""

from dataclasses import dataclass

from passes.gpu_scene import GpuScene
from passes.option_list import ViewSettings
from treeline.structures import Structure
from treeline.view.drawing import Drawing


@dataclass(frozen=True, slots=True)
class Active:
    """Settings whose structure is there, at a size in pixels, and what is drawn with them."""

    settings: ViewSettings
    size: tuple[int, int]
    structure: Structure
    drawing: Drawing

    @property
    def scene(self) -> GpuScene:
        return self.drawing.frames.scene
