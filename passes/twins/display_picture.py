"""Twin of display_picture.wgsl: the frame's picture as it is."""

from typing import Any

from passes.twins.gbuffer import tile_pixels
from passes.twins.wgsl_functions import U32, store_unorm, unpack_4x8_unorm


def display_picture(frame: Any, picture: U32, shown: Any) -> None:
    pixels = tile_pixels(frame)
    store_unorm(shown, pixels, unpack_4x8_unorm(picture[pixels.index])[:, :3])
