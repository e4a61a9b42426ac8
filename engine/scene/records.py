"""The scene's records in storage buffers, declared once for NumPy and WGSL.

Positions are metres in object space, colours linear radiance factors, transforms 3x4 row-major
(row i gives component i of the transformed point).
"""

from engine.gpu.structs import Field, Struct

NO_STORED_NORMAL = 0x80008000  # not an octahedral code: -32768 is outside snorm's range
MATERIAL_OPAQUE = 1
MATERIAL_DOUBLE_SIDED = 2
TEXTURE_SRGB = 1
WRAP_REPEAT, WRAP_CLAMP, WRAP_MIRROR = 0, 1, 2

VERTEX = Struct(
    "Vertex",
    Field("position", "f32", 3),
    Field("normal", "u32"),  # octahedral, 2 x 16-bit snorm, x in the low half
    Field("uv", "f32", 2),
    Field("color", "u32"),  # rgba8 unorm, linear
    Field("radius", "f32"),  # of a sphere about this vertex, else 0
)
OBJECT = Struct(
    "Object",
    Field("object_to_world", "vec4f", 3),
    Field("world_to_object", "vec4f", 3),
    Field("first_triangle", "u32"),
    Field("triangle_count", "u32"),
    Field("material", "u32"),
    Field("mask", "u32"),
)
MATERIAL = Struct(
    "Material",
    Field("base_color", "vec4f"),
    Field("emissive", "f32", 3),
    Field("metallic", "f32"),
    Field("roughness", "f32"),
    Field("alpha_cutoff", "f32"),
    Field("base_color_texture", "i32"),
    Field("metallic_roughness_texture", "i32"),
    Field("flags", "u32"),
    Field("pad", "u32", 3),
)
TEXTURE = Struct(
    "Texture",
    Field("first_texel", "u32"),
    Field("width", "u32"),
    Field("height", "u32"),
    Field("mip_count", "u32"),
    Field("flags", "u32"),
    Field("pad", "u32", 3),
)


def wgsl() -> str:
    """Every record and flag as WGSL."""
    constants = {
        "NO_STORED_NORMAL": NO_STORED_NORMAL,
        "MATERIAL_OPAQUE": MATERIAL_OPAQUE,
        "MATERIAL_DOUBLE_SIDED": MATERIAL_DOUBLE_SIDED,
        "TEXTURE_SRGB": TEXTURE_SRGB,
    }
    lines = [f"const {name}: u32 = {value}u;" for name, value in constants.items()]
    return "\n".join([*lines, *(s.wgsl() for s in (VERTEX, OBJECT, MATERIAL, TEXTURE))])
