"""Twin of display_range_depth.wgsl: the nearest and the farthest depth, as bits."""

from typing import Any

from passes.twins.gbuffer import NOTHING
from passes.twins.wgsl_functions import F32, U32, to_words


def display_range_depth(frame: Any, display_range: Any, visibility: U32, depth: F32) -> None:
    bits = to_words(depth[visibility[..., 0] != NOTHING])
    display_range["most"] = bits.max(initial=0)
    display_range["least_inverted"] = (~bits).max(initial=0)
    display_range["values"] = len(bits)
