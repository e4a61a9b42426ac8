"""Materials, textures and texture-coordinate choice of a glTF asset (specification 3.8, 3.9).

Kept: base colour and metallic-roughness (factor and texture), emissive factor and
KHR_materials_emissive_strength, alpha mode and cutoff, double-sidedness, sampler wrap modes, and
one KHR_texture_transform a material (baked into the mesh's uvs, so both textures share it).
Not used, and said in a note: normal, occlusion and emissive textures, other material extensions.
"""

import io
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from PIL import Image, UnidentifiedImageError

from engine.scene.gltf_data import GltfData
from engine.scene.material import (
    BLEND_CUTOFF,
    DEFAULT_MASK_CUTOFF,
    AlphaMode,
    Material,
    Texture,
    Wrap,
)
from engine.scene.mesh import F32, U8

# sampler.wrapS / wrapT (glTF 2.0, section 5.26)
_WRAPS: dict[int, Wrap] = {10497: "repeat", 33071: "clamp", 33648: "mirror"}
_MODES: dict[str, AlphaMode] = {"OPAQUE": "OPAQUE", "MASK": "MASK", "BLEND": "BLEND"}


@dataclass(frozen=True, slots=True)
class UvSource:
    """Which TEXCOORD set a material reads, and the affine map applied to it."""

    texcoord: int = 0
    offset: tuple[float, float] = (0.0, 0.0)
    rotation: float = 0.0  # radians, counter-clockwise
    scale: tuple[float, float] = (1.0, 1.0)

    def apply(self, uvs: F32) -> F32:
        """uv' = offset + rotation x (scale x uv) (KHR_texture_transform, "Overview")."""
        if self == UvSource(self.texcoord):
            return uvs
        cos, sin = np.cos(self.rotation), np.sin(self.rotation)
        u, v = (uvs.astype(np.float64) * self.scale).T
        turned = np.stack([cos * u + sin * v, -sin * u + cos * v], axis=1)
        return (turned + self.offset).astype(np.float32)


@dataclass(slots=True)
class MaterialReader:
    """Reads materials on demand; textures that nothing uses are never decoded."""

    data: GltfData
    materials: list[Material] = field(default_factory=list)
    uv_sources: list[UvSource] = field(default_factory=list)
    textures: list[Texture] = field(default_factory=list)
    ignored: dict[str, int] = field(default_factory=dict)
    _material_of: dict[int | None, int] = field(default_factory=dict)
    _texture_of: dict[tuple[int, bool, Wrap, Wrap], int] = field(default_factory=dict)
    _images: dict[int, U8] = field(default_factory=dict)

    def material(self, index: int | None) -> int:
        """Index into `materials` of the file's material (None: the specification's default)."""
        if index not in self._material_of:
            if index is None:
                # what 3.9.2 makes of a material without any property
                material, uv = Material("default", metallic=1.0, roughness=1.0), UvSource()
            else:
                material, uv = self._read(index)
            self._material_of[index] = len(self.materials)
            self.materials.append(material)
            self.uv_sources.append(uv)
        return self._material_of[index]

    def _read(self, index: int) -> tuple[Material, UvSource]:
        source = self.data.item("materials", index)
        name = source.name or f"material {index}"
        extensions = source.extensions or {}
        pbr = source.pbrMetallicRoughness
        base, shiny = (-1, -1)
        uv = UvSource()
        color, metallic, roughness = [1.0, 1.0, 1.0, 1.0], 1.0, 1.0
        if pbr is not None:
            color = _default(pbr.baseColorFactor, color)
            metallic = _default(pbr.metallicFactor, metallic)
            roughness = _default(pbr.roughnessFactor, roughness)
            if pbr.baseColorTexture is not None:
                base = self._texture(pbr.baseColorTexture.index, srgb=True)
                uv = _uv_source(pbr.baseColorTexture)
            if pbr.metallicRoughnessTexture is not None:
                shiny = self._texture(pbr.metallicRoughnessTexture.index, srgb=False)
                other = _uv_source(pbr.metallicRoughnessTexture)
                if base < 0:
                    uv = other
                elif other != uv:
                    self._ignore("a second texture transform in one material")
        strength = extensions.get("KHR_materials_emissive_strength", {}).get("emissiveStrength", 1)
        emissive = [float(c) * float(strength) for c in _default(source.emissiveFactor, [0, 0, 0])]
        if source.emissiveTexture is not None:
            emissive = [0.0, 0.0, 0.0]  # the factor alone would make all of it glow
            self._ignore("emissiveTexture")
        for ignored in ("normalTexture", "occlusionTexture"):
            if getattr(source, ignored) is not None:
                self._ignore(ignored)
        for extension in extensions:
            if extension != "KHR_materials_emissive_strength":
                self._ignore(extension)
        mode = _default(source.alphaMode, "OPAQUE")
        if mode not in _MODES:
            raise self.data.fail(f"material {name} has alphaMode {mode}")
        cutoff = float(_default(source.alphaCutoff, DEFAULT_MASK_CUTOFF))
        material = Material(
            name=name,
            base_color=_numbers(color, 4),  # type: ignore[arg-type]
            metallic=float(metallic),
            roughness=float(roughness),
            emissive=_numbers(emissive, 3),  # type: ignore[arg-type]
            alpha_mode=_MODES[mode],
            alpha_cutoff=BLEND_CUTOFF if mode == "BLEND" else cutoff,
            double_sided=bool(source.doubleSided),
            base_color_texture=base,
            metallic_roughness_texture=shiny,
        )
        return material, uv

    def _texture(self, index: int, srgb: bool) -> int:
        texture = self.data.item("textures", index)
        webp = (texture.extensions or {}).get("EXT_texture_webp", {})
        image = _default(webp.get("source"), texture.source)
        if image is None:
            self._ignore("a texture without an image that can be read")
            return -1
        wrap_u, wrap_v = 10497, 10497
        if texture.sampler is not None:
            sampler = self.data.item("samplers", texture.sampler)
            wrap_u, wrap_v = _default(sampler.wrapS, 10497), _default(sampler.wrapT, 10497)
        if wrap_u not in _WRAPS or wrap_v not in _WRAPS:
            raise self.data.fail(f"sampler {texture.sampler} has wrap modes {wrap_u}, {wrap_v}")
        key = (image, srgb, _WRAPS[wrap_u], _WRAPS[wrap_v])
        if key not in self._texture_of:
            if image not in self._images:
                name = self.data.item("images", image).name or f"image {image}"
                try:
                    self._images[image] = decode_image(self.data.image_bytes(image))
                except ValueError as error:
                    raise self.data.fail(f"{name} cannot be decoded ({error})") from error
            name = self.data.item("images", image).name or f"image {image}"
            self._texture_of[key] = len(self.textures)
            self.textures.append(Texture(name, self._images[image], srgb, key[2], key[3]))
        return self._texture_of[key]

    def _ignore(self, what: str) -> None:
        self.ignored[what] = self.ignored.get(what, 0) + 1

    def notes(self) -> list[str]:
        """One line for all material features that were read over."""
        if not self.ignored:
            return []
        parts = [f"{what} ({count})" for what, count in sorted(self.ignored.items())]
        return [f"material features not used: {', '.join(parts)}"]


def decode_image(encoded: bytes) -> U8:
    """[h, w, 4] RGBA8 of a PNG, JPEG or WebP (16-bit samples keep their high byte); ValueError
    when Pillow cannot read it."""
    try:
        opened: Image.Image = Image.open(io.BytesIO(encoded))
        if opened.mode.startswith("I"):
            high = (np.asarray(opened.convert("I")) >> 8).clip(0, 255).astype(np.uint8)
            opened = Image.fromarray(high)
        return np.ascontiguousarray(opened.convert("RGBA"), np.uint8)
    except UnidentifiedImageError as error:
        raise ValueError("not an image format that is known here") from error
    except (OSError, SyntaxError, Image.DecompressionBombError) as error:
        raise ValueError(str(error).splitlines()[0] if str(error) else "damaged") from error


def _uv_source(info: Any) -> UvSource:
    transform = (info.extensions or {}).get("KHR_texture_transform", {})
    offset, scale = transform.get("offset", (0, 0)), transform.get("scale", (1, 1))
    return UvSource(
        texcoord=int(_default(transform.get("texCoord"), info.texCoord or 0)),
        offset=(float(offset[0]), float(offset[1])),
        rotation=float(transform.get("rotation", 0.0)),
        scale=(float(scale[0]), float(scale[1])),
    )


def _default(value: Any, fallback: Any) -> Any:
    return fallback if value is None else value


def _numbers(values: Any, count: int) -> tuple[float, ...]:
    numbers = tuple(float(v) for v in values)
    if len(numbers) != count or not np.isfinite(numbers).all():
        raise ValueError(f"{values} is not {count} finite numbers")
    return numbers
