"""The stages that filter light between the rays and the composite: history, then the denoiser.

Each light goes by itself, so that what it costs is seen: `history/reflection`, `history/direct`,
then `denoise/<light>/0`, `/1` and so on, whose samples lie 1, 2, 4, 8, 16 pixels apart. A denoiser
without history begins with `denoise/<light>/samples`, the stage of history without a past.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from passes.frame_options import FrameOptions
from passes.light_history import LIGHTS
from passes.lights_apart import LIGHTS_APART
from passes.rays import OCCLUSION, SHADOW


@dataclass(frozen=True, slots=True)
class FilterStage:
    """A pass, its shader, what that is specialised by, and what its bindings are bound to."""

    name: str
    shader: str
    constants: Mapping[str, float]
    bind: Mapping[str, str]


def filter_stages(options: FrameOptions) -> list[FilterStage]:
    """In order. The area light's comes first, which leaves the guide."""
    stages = []
    for light in reversed(LIGHTS):
        stages.append(_history(options, light))
    for light in LIGHTS:
        for number in range(options.denoiser):
            stages.append(_round(options, light, number))
    return stages


def composite_lights(options: FrameOptions) -> dict[str, str]:
    """Binding of the composite -> the light that it reads there."""
    if not options.lights_apart:
        return {name: name for name in LIGHTS_APART}
    if not options.filtered:
        return dict(LIGHTS_APART)
    return {name: light.replace("_light", "_filtered") for name, light in LIGHTS_APART.items()}


def _history(options: FrameOptions, light: str) -> FilterStage:
    name = f"history/{light}" if options.history else f"denoise/{light}/samples"
    occluded = options.occlusion and light == "direct"
    constants = {
        "REFLECTION": light == "reflection",
        "OCCLUDED": occluded,
        "DENOISED": options.denoiser > 0,
        "REFLECTION_BLOCK": options.reflection_block,
    }
    bind = {
        "light": f"{light}_light",
        "history": f"{light}_history",
        "filtered": f"{light}_round_0" if options.denoiser else f"{light}_filtered",
        # Where nobody reads it some buffer has to be bound all the same.
        "occlusion_results": OCCLUSION.results if occluded else SHADOW.results,
    }
    if not options.history:
        bind |= {"motion": f"{light}_light", "depth_before": f"{light}_light"}
    return FilterStage(name, "history", constants, bind)


def _round(options: FrameOptions, light: str, number: int) -> FilterStage:
    last = number == options.denoiser - 1
    constants = {"REFLECTION": light == "reflection", "STEP": 2**number, "LAST": last}
    bind = {
        "light": f"{light}_light",
        "unfiltered": f"{light}_round_{number}",
        "filtered": f"{light}_filtered" if last else f"{light}_round_{number + 1}",
    }
    return FilterStage(f"denoise/{light}/{number}", "denoise", constants, bind)
