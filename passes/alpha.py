"""What the alpha test needs of a non-opaque triangle, in one record of one buffer.

The `alpha` buffer holds a word an object (the word offset of its first record, 0 for an opaque
object) and then, for each triangle of each non-opaque object's mesh, one ALPHA_TRIANGLE. Alpha is
texture x factor x vertex alpha, the first sampled bilinearly at mip 0 in raster and traversal
alike; a candidate below the cutoff is no hit.
"""

import numpy as np
from numpy.typing import NDArray

from engine.gpu.structs import Field, Struct
from engine.scene.scene import Scene
from engine.scene.upload import ScenePack
from passes.opacity import vertex_alpha

ALPHA_TRIANGLE = Struct(
    "AlphaTriangle",
    Field("uv", "f32", 6),
    Field("alpha", "f32", 3),  # factor x vertex alpha at each vertex
    Field("cutoff", "f32"),
    Field("texture", "i32"),  # -1: none
    Field("first_texel", "u32"),
    Field("width", "u32"),
    Field("height", "u32"),
    Field("flags", "u32"),
    Field("pad", "u32"),
)
RECORD_WORDS = ALPHA_TRIANGLE.size // 4


def pack_alpha(scene: Scene, pack: ScenePack) -> NDArray[np.uint32]:
    """The `alpha` buffer, uint32 words, of a scene and its packed arrays."""
    offsets = np.zeros(max(1, len(scene.instances)), np.uint32)
    records: list[NDArray[np.void]] = []
    next_word = len(offsets)
    first_of_mesh: dict[int, int] = {}
    for index, instance in enumerate(scene.instances):
        mesh = scene.meshes[instance.mesh]
        material = scene.materials[mesh.material]
        if material.opaque:
            continue
        if instance.mesh not in first_of_mesh:
            record = np.zeros(len(mesh.triangles), ALPHA_TRIANGLE.dtype)
            record["uv"] = mesh.uvs[mesh.triangles].reshape(-1, 6)
            if mesh.radii is not None:  # u and v of a hit are the place on the texture
                record["uv"] = (0, 0, 1, 0, 0, 1)
            record["alpha"] = vertex_alpha(mesh, material)
            record["cutoff"] = pack.materials["alpha_cutoff"][mesh.material]
            record["texture"] = material.base_color_texture
            if material.base_color_texture >= 0:
                texture = pack.texture_table[material.base_color_texture]
                for name in ("first_texel", "width", "height", "flags"):
                    record[name] = texture[name]
            records.append(record)
            first_of_mesh[instance.mesh] = next_word
            next_word += len(record) * RECORD_WORDS
        offsets[index] = first_of_mesh[instance.mesh]
    words = [offsets, *(np.ascontiguousarray(r).view(np.uint32) for r in records)]
    return np.concatenate(words)


def wgsl() -> str:
    return f"const ALPHA_RECORD_WORDS: u32 = {RECORD_WORDS}u;\n" + ALPHA_TRIANGLE.wgsl()
