"""Records of the morphing stage, shared by host and shader."""

from engine.gpu.structs import Field, Struct

MORPH_PARAMETERS = Struct(
    "MorphParameters",
    Field("count", "u32"),  # vertices of all meshes
    Field("zero", "u32"),  # 0, unknown to the compiler
)
MORPH_VERTEX = Struct(
    "MorphVertex",
    Field("position", "f32", 3),
    Field("bind_vertex", "u32"),  # that it becomes
    Field("normal", "f32", 3),  # zero: none stored
    Field("mesh", "u32"),
)
MORPH_MESH = Struct(
    "MorphMesh",
    Field("first_vertex", "u32"),
    Field("vertices", "u32"),
    Field("first_displacement", "u32"),  # of target 0; each target has one a vertex
    Field("first_weight", "u32"),
    Field("targets", "u32"),
)
DISPLACEMENT = Struct(
    "Displacement",
    Field("position", "f32", 3),
    Field("normal", "f32", 3),
)


def wgsl() -> str:
    """The records for shaders."""
    records = (MORPH_PARAMETERS, MORPH_VERTEX, MORPH_MESH, DISPLACEMENT)
    return "\n".join(record.wgsl() for record in records)
