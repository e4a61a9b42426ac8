"""Twin of reflection_block.wgsl: who sends reflection rays."""

from typing import Any

import numpy as np

from passes.twins.gbuffer import Pixels


def reflection_pixels(frame: Any, pixels: Pixels, block: int) -> Pixels:
    """The first pixel of each one's block of `block` x `block`, whose ray it shares."""
    x, y = pixels.x - pixels.x % block, pixels.y - pixels.y % block
    return Pixels(x, y, (y * int(frame["width"]) + x).astype(np.uint32))
