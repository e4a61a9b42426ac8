"""The guest layout against literal numbers typed from the contract ledger, not from the module."""

import json
from pathlib import Path

import numpy as np
import pytest

from bvh import layout
from bvh.layout import InstanceFlags

VECTORS = Path(__file__).resolve().parents[3] / "shared" / "contract" / "vectors.json"

TABLE = {
    "UNIT_BYTES": 64,
    "HEADER_BYTES": 128,
    "ROOT_POINTER": 0x15,
    "BASE_ALIGN_BYTES": 256,
    "NODE_TRIANGLE_0": 0,
    "NODE_TRIANGLE_1": 1,
    "NODE_TRIANGLE_2": 2,
    "NODE_TRIANGLE_3": 3,
    "NODE_BOX_FP16": 4,
    "NODE_BOX_FP32": 5,
    "NODE_INSTANCE": 6,
    "NODE_PROCEDURAL": 7,
    "INVALID_POINTER": 0xFFFFFFFF,
    "EMPTY_BOUND_FP32": 0x7FC00000,
    "EMPTY_BOUND_FP16": 0x7E007E00,
    "BOX_BOUNDS_WORD": 4,  # byte 16
    "BOX_FP32_CHILD_WORDS": 6,
    "BOX_FP16_CHILD_WORDS": 3,
    "BOX_FP32_TAIL_WORD": 28,  # byte 112
    "TRIANGLE_V0_WORD": 0,
    "TRIANGLE_V1_WORD": 3,  # byte 12
    "TRIANGLE_V2_WORD": 6,  # byte 24
    "TRIANGLE_V3_WORD": 9,  # byte 36
    "TRIANGLE_GEOMETRY_WORD": 12,  # byte 48
    "TRIANGLE_PRIMITIVE_0_WORD": 13,  # byte 52
    "TRIANGLE_PRIMITIVE_1_WORD": 14,  # byte 56
    "TRIANGLE_FLAGS_WORD": 15,  # byte 60
    "GEOMETRY_INDEX_MASK": 0xFFFFFF,
    "GEOMETRY_OPAQUE": 1 << 24,
    "PROCEDURAL_MIN_WORD": 0,
    "PROCEDURAL_MAX_WORD": 3,  # byte 12
    "SPHERE_CENTER_WORD": 6,  # byte 24
    "SPHERE_RADIUS_WORD": 9,  # byte 36
    "SPHERE_FLAGS": 0x0909,
    "INSTANCE_BLAS_WORD": 0,
    "INSTANCE_CUSTOM_WORD": 2,  # byte 8
    "INSTANCE_OBJECT_WORD": 3,  # byte 12
    "INSTANCE_WORLD_TO_OBJECT_WORD": 4,  # byte 16
    "INSTANCE_ID_WORD": 16,  # byte 64
    "INSTANCE_BLAS_BASE_WORD": 17,  # byte 68
    "INSTANCE_GEOMETRY_COUNT_WORD": 18,  # byte 72
    "INSTANCE_OBJECT_TO_WORLD_WORD": 20,  # byte 80
    "INSTANCE_FORCE_OPAQUE": 1 << 31,
    "INSTANCE_NO_FORCE_NON_OPAQUE": 1 << 30,
    "INSTANCE_DISABLE_FACING_CULL": 1 << 29,
    "INSTANCE_FLIP_FACING": 1 << 28,
    "DEFAULT_GROWTH": 6,
}


@pytest.mark.parametrize("name", TABLE)
def test_constant_and_its_wgsl_line(name: str) -> None:
    assert getattr(layout, name) == TABLE[name]
    line = next(x for x in layout.wgsl().splitlines() if x.startswith(f"const {name}: u32 ="))
    assert int(line.split("=")[1].strip(" ;u"), 0) == TABLE[name]


def test_tuples() -> None:
    assert layout.TRIANGLE_SLOTS == ((0, 1, 2), (1, 3, 2), (2, 3, 4), (2, 4, 0))
    assert layout.ROTATION_NIBBLES == (0x9, 0x2, 0x4)
    assert layout.NODE_BYTES == (64, 64, 64, 64, 64, 128, 128, 64)


def test_pointers() -> None:
    assert layout.pack_pointer(128, 5) == 0x15
    assert layout.pack_pointer(320, 1) == 0x29
    assert layout.unpack_pointer(0x25) == (256, 5)
    packed = layout.pack_pointer(np.array([128, 320, 64 << 28]), np.array([5, 1, 4]))
    assert packed.dtype == np.uint32
    assert packed.tolist() == [0x15, 0x29, 0x80000004]
    offset, kind = layout.unpack_pointer(packed)
    assert offset.tolist() == [128, 320, 64 << 28]
    assert kind.tolist() == [5, 1, 4]
    with pytest.raises(ValueError, match="byte 100"):
        layout.pack_pointer(100, 5)


def test_a_pointer_read_as_float_loses_its_identity() -> None:
    """Small pointers are denormals and large ones NaN: as floats neither order nor equality
    survives, which is why every comparison is on integers."""
    pointers = np.array([0x15, 0x29, 0xFFFFFFFF], np.uint32)
    as_float = pointers.view(np.float32)
    assert abs(float(as_float[0])) < np.finfo(np.float32).tiny
    assert as_float[2] != as_float[2]


def test_descriptor() -> None:
    words = layout.pack_descriptor(0x10000, 256, growth=0)
    assert [hex(word) for word in words] == ["0x100", "0x80000000", "0x100", "0x81000000"]
    words = layout.pack_descriptor(0, (1 << 42) - 1, growth=0)
    assert [hex(word) for word in words] == ["0x0", "0x80000000", "0xffffffff", "0x810003ff"]
    assert layout.pack_descriptor(0, 3)[1] == 0x83000000  # growth 6 at bit 55
    with pytest.raises(ValueError, match="multiple of 256"):
        layout.pack_descriptor(64, 1)


def _packed(minimum: list[float], maximum: list[float]) -> list[str]:
    words = layout.pack_half_bounds(np.array(minimum, np.float32), np.array(maximum, np.float32))
    return [f"{word:08x}" for word in words]


def test_fp16_bounds_round_outward() -> None:
    assert _packed([-1, -1, 5], [1, 1, 6]) == ["bc00bc00", "3c004500", "46003c00"]
    same = [0.1, -0.1, 1 / 3]
    assert _packed(same, same) == ["ae672e66", "2e673555", "3556ae66"]
    # Beyond 65504: infinite on the outer side, the largest finite half on the inner one.
    assert _packed([7e4, -7e4, 0], [7e4, -7e4, 0]) == ["fc007bff", "7c000000", "0000fbff"]
    # Smaller than the smallest half: zero or one step away from it.
    assert _packed([1e-9, -1e-9, 0], [1e-9, -1e-9, 0]) == ["80010000", "00010000", "00008000"]


def test_fp16_bounds_enclose_and_are_tight(rng: np.random.Generator) -> None:
    values = rng.normal(size=20000) * 10.0 ** rng.integers(-8, 4, 20000)
    values = np.concatenate([values, np.arange(-2048, 2049)]).astype(np.float32)
    low, high = layout.round_half_outward(values, values)
    low_value = low.view(np.float16).astype(np.float32)
    high_value = high.view(np.float16).astype(np.float32)
    assert (low_value <= values).all()
    assert (high_value >= values).all()
    exact = low_value == values
    assert (exact == (high_value == values)).all()
    assert exact[-4097:].all()  # integers up to 2048 are halves
    # One step apart where the value is no half: nothing looser.
    inexact = ~exact
    step = np.nextafter(low_value[inexact].astype(np.float16), np.float16(np.inf))
    assert (step.astype(np.float32) == high_value[inexact]).all()


def test_half_words_round_trip(rng: np.random.Generator) -> None:
    low = rng.normal(size=(50, 4, 3)).astype(np.float16).astype(np.float32)
    high = low + 1
    high = high.astype(np.float16).astype(np.float32)
    back_low, back_high = layout.unpack_half_bounds(layout.pack_half_bounds(low, high))
    assert (back_low == low).all()
    assert (back_high == high).all()


def test_instance_flags() -> None:
    assert layout.pack_instance_flags(InstanceFlags.NONE) == 0x40000000
    assert layout.pack_instance_flags(InstanceFlags.FORCE_OPAQUE) == 0xC0000000
    assert layout.pack_instance_flags(InstanceFlags.FORCE_NON_OPAQUE) == 0
    for value in range(16):
        flags = InstanceFlags(value)
        assert layout.unpack_instance_flags(layout.pack_instance_flags(flags) | 0xABCDEF) == flags


def test_shared_vectors() -> None:
    if not VECTORS.is_file():
        pytest.skip(f"no contract vectors here: {VECTORS} does not exist")
    seen = set()
    for check in json.loads(VECTORS.read_text())["encoding"]:
        given, expected = check["input"], check["output"]
        seen.add(check["op"])
        if check["op"] == "pointer_pack":
            assert layout.pack_pointer(given["byte_offset"], given["type"]) == int(expected, 16)
        elif check["op"] == "pointer_unpack":
            offset, kind = layout.unpack_pointer(int(given["pointer"], 16))
            assert (offset, kind, offset // 64, offset // 4) == (
                expected["byte_offset"],
                expected["type"],
                expected["index64"],
                expected["word_index"],
            )
        elif check["op"] == "descriptor_pack":
            words = layout.pack_descriptor(
                given["base"],
                given["size_minus_1"],
                growth=given["growth"],
                sort=bool(given["sort"]),
                return_mode=given["return_mode"],
            )
            assert [f"0x{word:08x}" for word in words] == expected
        elif check["op"] == "fp16_bounds":
            assert [f"0x{word}" for word in _packed(given["min"], given["max"])] == expected
        elif check["op"] == "triangle_flag_byte":
            byte = layout.triangle_flag_byte(
                given["i_source"], given["j_source"], bool(given["opaque"])
            )
            assert byte == int(expected, 16)
    assert {"pointer_pack", "descriptor_pack", "fp16_bounds"} <= seen
