"""Struct: the NumPy dtype and the WGSL struct are one record, and the GPU agrees."""

import re
from typing import Any

import numpy as np
import pytest

from bvh.gpu.trace_rays import HIT
from bvh.rays import RAY_RECORD
from engine.gpu.structs import Field, Struct
from engine.scene.records import MATERIAL, OBJECT, TEXTURE, VERTEX
from passes.alpha import ALPHA_TRIANGLE
from passes.frame_uniforms import FRAME_UNIFORMS
from passes.queue import QUEUE_HEADER
from passes.rays.reflection import REFLECTION_RECORD
from passes.rays.shadow import SHADOW_RECORD

EVERY_KIND = Struct(
    "EveryKind",
    Field("a", "vec4f"),
    Field("b", "vec3f"),
    Field("c", "f32"),
    Field("d", "vec2u"),
    Field("e", "i32", 3),
    Field("f", "u32"),
    Field("pad", "vec2u"),
    Field("g", "vec4i", 2),
    Field("h", "vec2f", 2),
)
STRUCTS = [
    EVERY_KIND,
    VERTEX,
    OBJECT,
    MATERIAL,
    TEXTURE,
    FRAME_UNIFORMS,
    QUEUE_HEADER,
    RAY_RECORD,
    HIT,
    ALPHA_TRIANGLE,
    REFLECTION_RECORD,
    SHADOW_RECORD,
]


def elements(struct: Struct) -> list[tuple[str, tuple[int, ...], str]]:
    """(WGSL expression, index into the NumPy field, scalar type) of every number in a record."""
    found = []
    for field in struct.fields:
        shape = struct.dtype[field.name].shape
        scalar = {"f": "f32", "u": "u32", "i": "i32"}[
            field.kind[0] if not field.kind.startswith("vec") else field.kind[-1]
        ]
        for index in np.ndindex(shape):
            expression = field.name + "".join(f"[{i}]" for i in index)
            found.append((expression, index, scalar))
    return found


@pytest.mark.parametrize("struct", STRUCTS, ids=lambda s: s.name)
def test_the_gpu_writes_one_value_a_field(device: Any, stage: Any, struct: Struct) -> None:
    parts = elements(struct)
    writes = "\n".join(
        f"    records[1].{expression} = {scalar}({101 + n}{'.0' if scalar == 'f32' else ''});"
        for n, (expression, _, scalar) in enumerate(parts)
    )
    item = stage(
        struct.wgsl()
        + f"@group(0) @binding(0) var<storage, read_write> records: array<{struct.name}>;\n"
        + f"@compute @workgroup_size(1) fn main() {{\n{writes}\n}}\n"
    )
    # Three records: an element whose stride differs would land in a neighbour.
    buffer = device.upload("records", np.zeros(3, struct.dtype).view(np.uint8))
    item.run({"records": buffer}, 1)
    got = device.read(buffer, struct.dtype, count=3)
    assert got[0].tobytes() == got[2].tobytes() == bytes(struct.size)
    for n, (expression, index, _) in enumerate(parts):
        name = re.match(r"\w+", expression)[0]
        assert got[1][name][index] == 101 + n, expression


def test_the_gpu_reads_what_numpy_wrote(device: Any, stage: Any) -> None:
    record = np.zeros(1, EVERY_KIND.dtype)
    record["b"] = [1.5, -2.5, 3.5]
    record["e"] = [-7, 8, -9]
    record["h"] = [[0.25, 0.5], [0.75, 4.0]]
    item = stage(
        EVERY_KIND.wgsl()
        + "@group(0) @binding(0) var<storage, read> record: EveryKind;\n"
        + "@group(0) @binding(1) var<storage, read_write> values: array<f32>;\n"
        + "@compute @workgroup_size(1) fn main() {\n"
        + "values[0] = record.b.z; values[1] = f32(record.e[2]); values[2] = record.h[1].y; }\n"
    )
    values = device.buffer("values", 16)
    item.run({"record": device.upload("record", record.view(np.uint8)), "values": values}, 1)
    assert device.read(values, np.float32, count=3).tolist() == [3.5, -9.0, 4.0]


def test_offsets_by_hand() -> None:
    # The same numbers three ways: by hand, NumPy's and the comments in the WGSL.
    by_hand = {"point": 0, "id": 12, "corners": 16, "flags": 40, "pad": 44}
    struct = Struct(
        "Hand",
        Field("point", "vec3f"),
        Field("id", "u32"),
        Field("corners", "vec2f", 3),
        Field("flags", "u32"),
        Field("pad", "u32"),
    )
    assert struct.offsets == by_hand
    assert {n: struct.dtype.fields[n][1] for n in by_hand} == by_hand
    assert dict(re.findall(r"(\w+): [^/]*// (\d+)", struct.wgsl())) == {
        name: str(offset) for name, offset in by_hand.items()
    }
    assert struct.size == struct.dtype.itemsize == 48
    assert "struct Hand { // 48 bytes" in struct.wgsl()


@pytest.mark.parametrize(
    "fields,match",
    [
        (
            (Field("a", "f32"), Field("b", "vec4f")),
            r"S\.b: WGSL aligns vec4f to 16 bytes, offset 4",
        ),
        ((Field("a", "f32"), Field("b", "vec2u")), r"S\.b: .* 8 bytes, offset 4"),
        ((Field("a", "vec3f"),), "size 12 is no multiple of its alignment 16"),
        (
            (Field("a", "vec3f", 2), Field("p", "vec2f")),
            r"S\.a: array of vec3f has padded elements",
        ),
    ],
)
def test_a_gap_that_wgsl_would_insert_is_an_error(fields: Any, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        Struct("S", *fields)
