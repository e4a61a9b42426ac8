"""Colour palettes, 256 sRGB colours each: the one source for files and for the display pass.

viridis, plasma and heat (inferno) grow lighter all the way, so that they also read in grey and to
the colour-blind (Smith and van der Walt 2015). temperature runs from blue to red as radiation
pictures do and as ray tracing tools show costs; difference is grey at 0, blue below and red above
(Moreland 2009).
"""

from functools import cache

import numpy as np
from numpy.typing import NDArray

# Control colours, evenly spaced from the lowest value to the highest.
_CONTROLS = {
    "viridis": "440154 482878 3e4989 31688e 26828e 1f9e89 35b779 6ece58 b5de2b fde725",
    "plasma": "0d0887 46039f 7201a8 9c179e bd3786 d8576b ed7953 fb9f3a fdca26 f0f921",
    "temperature": "00008f 0032ff 00a5ff 19ffdc 7dff7a d7ff1e ffb900 ff4b00 e60000 a00000",
    "heat": "000004 1b0c41 4a0c6b 781c6d a52c60 cf4446 ed6925 fb9b06 f7d13d fcffa4",
    "difference": "3b4cc0 6282ea 8db0fe b8d0f9 dddddd f5c4ad f49a7b de604d b40426",
}
DIVERGING = "difference"
PALETTES = tuple(name for name in _CONTROLS if name != DIVERGING)
NO_RAY = (38, 38, 42)  # sRGB of a pixel that sent no ray: grey, as no palette is at its low end


@cache
def palette_colours(name: str) -> NDArray[np.uint8]:
    """[256, 3], interpolated between the palette's control colours; read-only. ValueError for an
    unknown name."""
    if name not in _CONTROLS:
        raise ValueError(f"no palette is named '{name}', there are {', '.join(_CONTROLS)}")
    controls = np.array([list(bytes.fromhex(c)) for c in _CONTROLS[name].split()], np.float64)
    at = np.linspace(0, len(controls) - 1, 256)
    channels = [np.interp(at, np.arange(len(controls)), controls[:, c]) for c in range(3)]
    colours = np.rint(np.stack(channels, axis=1)).astype(np.uint8)
    colours.setflags(write=False)
    return colours


def palette_words(name: str) -> NDArray[np.uint32]:
    """[256] the colours as rgba8 words, red lowest."""
    opaque = np.full((256, 1), 255, np.uint8)
    return np.concatenate([palette_colours(name), opaque], axis=1).view(np.uint32).ravel()
