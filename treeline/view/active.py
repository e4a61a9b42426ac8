"""What a session is drawing."""

from dataclasses import dataclass

from passes.gpu_scene import GpuScene
from passes.option_list import ViewSettings
from treeline.structures import Structure
from treeline.view.drawing import Drawing
from treeline.view.frame_supply import Supplied


@dataclass(frozen=True, slots=True)
class Active:
    """Settings at a size in pixels, for which all is there, and what is drawn with it."""

    supplied: Supplied
    drawing: Drawing

    @property
    def settings(self) -> ViewSettings:
        return self.supplied.settings

    @property
    def size(self) -> tuple[int, int]:
        return self.supplied.size

    @property
    def structure(self) -> Structure:
        return self.supplied.structure

    @property
    def scene(self) -> GpuScene:
        return self.supplied.frames.scene
