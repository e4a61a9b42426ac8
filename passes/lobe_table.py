"""The table of what specular lobes reflect of light that is the same from everywhere
(assets/generate_lobe_table.py says which lobe, passes/shaders/specular_albedo.wgsl reads it).

It lies in a texture, of which a stage may bind more than of storage buffers. A texel holds the four
corners of one of the table's cells, so that a lookup is one load.
"""

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.gpu.device import Device

with np.load(Path(__file__).parents[1] / "assets" / "lobe_table.npz") as _file:
    _TABLE: NDArray[np.uint16] = _file["table"]
    # Octaves below 1 that it reaches down in cosine and roughness, and its cells in each.
    OCTAVES: tuple[int, int] = tuple(_file["octaves"].tolist())
    STEPS: tuple[int, int] = tuple(_file["steps"].tolist())
CELLS = (OCTAVES[0] * STEPS[0], OCTAVES[1] * STEPS[1])


@cache
def lobe_cells() -> NDArray[np.uint32]:
    """[30, 40, 4] words, by roughness and cosine: the corners at the lower cosine and the higher
    one, then those of the higher roughness; each scale | bias << 16, 16-bit unorms."""
    assert _TABLE.shape == (CELLS[1] + 1, CELLS[0] + 1, 2)
    corners = np.ascontiguousarray(_TABLE.astype("<u2")).view(np.uint32)[..., 0]
    low, high = corners[:-1], corners[1:]
    return np.stack([low[:, :-1], low[:, 1:], high[:, :-1], high[:, 1:]], -1)


def upload_lobe_table(device: Device) -> Any:
    """The texture."""
    return device.upload_texels("lobe_table", lobe_cells())


def wgsl() -> str:
    """Cells, and of them those of an octave, along cosine and roughness."""
    return (
        f"const LOBE_CELLS: vec2f = vec2f({CELLS[0]}.0, {CELLS[1]}.0);\n"
        f"const LOBE_STEPS: vec2f = vec2f({STEPS[0]}.0, {STEPS[1]}.0);\n"
    )
