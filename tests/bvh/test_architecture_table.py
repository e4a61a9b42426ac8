"""The byte table in ARCHITECTURE.md is the header that is written, and as typed by hand here."""

from pathlib import Path

from bvh.header import HEADER

ROOT = Path(__file__).resolve().parents[2]

# byte, type, field: versions 1 to 3.
TABLE = [
    (0, "u32", "magic"),
    (4, "u32", "version"),
    (8, "u32", "kind"),
    (12, "u32", "root_pointer"),
    (16, "u32", "size_units"),
    (20, "u32", "leaf_unit"),
    (24, "u32", "nodes_fp32"),
    (28, "u32", "nodes_fp16"),
    (32, "u32", "leaf_count"),
    (36, "u32", "primitive_count"),
    (40, "u32", "geometry_count"),
    (44, "u32", "depth"),
    (48, "f32 x 3", "bounds_min"),
    (60, "f32 x 3", "bounds_max"),
    (72, "u32", "fan_unit"),
    (76, "u32", "fan_count"),
    (80, "u32 x 4", "descriptor"),
    (96, "u32", "sphere_count"),
    (100, "u32 x 7", "reserved_1"),
]


def documented() -> list[tuple[int, str, str]]:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    table = text.partition("| byte | type | field | value |\n")[2].partition("\n\n")[0]
    cells = [[c.strip() for c in line.strip("|").split("|")] for line in table.splitlines()[1:]]
    return [(int(byte), kind, field) for byte, kind, field, _ in cells]


def test_the_table_the_header_and_the_literal_agree() -> None:
    assert documented() == TABLE
    assert [(HEADER.offsets[f.name], f.name) for f in HEADER.fields] == [
        (b, f) for b, _, f in TABLE
    ]
    assert HEADER.size == 128
    for field, (_, kind, _) in zip(HEADER.fields, TABLE, strict=True):
        count = int(kind.partition(" x ")[2] or 1)
        assert (field.kind, field.count) == (kind.partition(" x ")[0], count)
