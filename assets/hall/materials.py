"""The hall's materials: names, linear colours, roughness from a mirror to chalk, and textures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from assets.hall import textures
from assets.hall.textures import Pixels


@dataclass(frozen=True, slots=True)
class Surface:
    """One glTF material. Texture names are keys of `PICTURES`, "" for none; colours linear."""

    color: tuple[float, float, float]
    roughness: float
    metallic: float = 0.0
    texture: str = ""
    wear: str = ""  # metallic-roughness texture
    emissive: tuple[float, float, float] = (0.0, 0.0, 0.0)
    masked: bool = False
    double_sided: bool = False


PICTURES: dict[str, Callable[[], Pixels]] = {
    "marble": textures.marble,
    "dark_stone": textures.dark_stone,
    "ashlar": textures.ashlar,
    "limestone": textures.limestone,
    "wood": textures.wood,
    "floor_wear": textures.floor_wear,
    "leaf_atlas": textures.leaf_atlas,
}

SURFACES: dict[str, Surface] = {
    "limestone": Surface((0.92, 0.90, 0.86), 0.70, texture="limestone"),
    "ashlar": Surface((0.86, 0.83, 0.78), 0.88, texture="ashlar"),
    "plaster": Surface((0.62, 0.58, 0.52), 1.0),
    "floor_light": Surface((1.0, 0.97, 0.92), 0.30, texture="marble"),
    # Roughness 0.14 times the wear picture: about 0.03 to 0.14.
    "floor_dark": Surface((1.0, 1.0, 1.0), 0.14, texture="dark_stone", wear="floor_wear"),
    "porphyry": Surface((0.21, 0.055, 0.045), 0.18),
    "bronze": Surface((0.60, 0.37, 0.18), 0.24, 1.0),
    "brass": Surface((0.88, 0.66, 0.30), 0.10, 1.0),
    "chrome": Surface((0.93, 0.93, 0.94), 0.02, 1.0),
    "iron": Surface((0.22, 0.21, 0.21), 0.45, 1.0),
    "oak": Surface((1.0, 1.0, 1.0), 0.50, texture="wood"),
    "leaf": Surface((1.0, 1.0, 1.0), 0.55, texture="leaf_atlas", masked=True, double_sided=True),
    "bark": Surface((0.145, 0.095, 0.060), 1.0),
    "soil": Surface((0.050, 0.034, 0.024), 1.0),
    "glaze": Surface((0.035, 0.11, 0.17), 0.09),
    "skin": Surface((0.52, 0.30, 0.21), 0.52),
    "hair": Surface((0.050, 0.030, 0.020), 0.42),
    "linen": Surface((0.075, 0.13, 0.20), 0.92),
    "wool": Surface((0.42, 0.045, 0.035), 0.96, double_sided=True),
    "cloak": Surface((0.46, 0.215, 0.045), 0.96, double_sided=True),
    "trousers": Surface((0.30, 0.26, 0.20), 0.95),
    "leather": Surface((0.115, 0.055, 0.028), 0.40),
    "glass_amber": Surface((0.25, 0.14, 0.04), 0.06, emissive=(1.0, 0.56, 0.16)),
    "glass_blue": Surface((0.03, 0.08, 0.25), 0.06, emissive=(0.16, 0.36, 1.0)),
    "glass_red": Surface((0.22, 0.02, 0.02), 0.06, emissive=(1.0, 0.11, 0.06)),
    "glass_pale": Surface((0.30, 0.30, 0.25), 0.06, emissive=(1.0, 0.90, 0.70)),
    "lamp_glass": Surface((0.9, 0.9, 0.9), 0.30, emissive=(1.0, 0.90, 0.74)),
}
