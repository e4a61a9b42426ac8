"""Metallic-roughness materials and their textures (glTF 2.0 specification, section 3.9).

Alpha of a surface point = base colour texture's alpha x `base_color[3]` x vertex alpha. Only a
base colour texture is sRGB; every other number is linear. Rule for BLEND: it is tested like MASK
at a cutoff of 0.5, because one ray gives one hit and order-dependent blending is not traced.
"""

from dataclasses import dataclass
from typing import Literal

from engine.scene.mesh import U8

AlphaMode = Literal["OPAQUE", "MASK", "BLEND"]
Wrap = Literal["repeat", "clamp", "mirror"]
BLEND_CUTOFF = 0.5
DEFAULT_MASK_CUTOFF = 0.5  # glTF 2.0, material.alphaCutoff


@dataclass(frozen=True, slots=True)
class Texture:
    """RGBA8 pixels, row 0 at v = 0. `srgb` says that colour (never alpha) is sRGB encoded."""

    name: str
    pixels: U8  # [h, w, 4]
    srgb: bool
    wrap_u: Wrap = "repeat"
    wrap_v: Wrap = "repeat"


@dataclass(frozen=True, slots=True)
class Material:
    """Factors and texture indices; a metallic-roughness texture holds roughness in G, metalness
    in B. A texture index of -1 means none."""

    name: str
    base_color: tuple[float, float, float, float] = (1.0, 1.0, 1.0, 1.0)
    metallic: float = 0.0
    roughness: float = 0.5
    emissive: tuple[float, float, float] = (0.0, 0.0, 0.0)
    alpha_mode: AlphaMode = "OPAQUE"
    alpha_cutoff: float = 0.5
    double_sided: bool = False
    base_color_texture: int = -1
    metallic_roughness_texture: int = -1

    @property
    def opaque(self) -> bool:
        """True when no alpha test is needed."""
        return self.alpha_mode == "OPAQUE"


def plain_material(name: str = "default") -> Material:
    """What a file without materials is made of: a light grey half-rough dielectric."""
    return Material(name, base_color=(0.7, 0.7, 0.7, 1.0), metallic=0.0, roughness=0.5)
