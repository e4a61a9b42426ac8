"""Records of the skinning stage, shared by host and shader."""

from engine.gpu.structs import Field, Struct
from engine.scene.records import NO_STORED_NORMAL, VERTEX

VERTEX_WORDS = VERTEX.size // 4
# The stage writes the position and, behind it, the normal.
assert (VERTEX.offsets["position"], VERTEX.offsets["normal"]) == (0, 12)

SKIN_PARAMETERS = Struct(
    "SkinParameters",
    Field("count", "u32"),  # vertices
    Field("influences", "u32"),  # of every vertex
    Field("vertex_first", "u32"),  # word of the first vertex record
    Field("zero", "u32"),  # 0, unknown to the compiler
)
BIND_VERTEX = Struct(
    "BindVertex",
    Field("position", "f32", 3),
    Field("target_vertex", "u32"),
    Field("normal", "f32", 3),  # zero: none stored
    Field("pad", "u32"),
)


def wgsl() -> str:
    """The records and constants for shaders."""
    lines = [f"const NO_STORED_NORMAL: u32 = {NO_STORED_NORMAL}u;"]
    lines.append(f"const VERTEX_WORDS: u32 = {VERTEX_WORDS}u;")
    return "\n".join([*lines, SKIN_PARAMETERS.wgsl(), BIND_VERTEX.wgsl()])
