"""`treeline contract decode`: BVH instructions of a word stream as plain data and as text."""

from collections.abc import Sequence
from typing import Any

from rich.table import Table

from bvh.contract.mimg import OPCODE_NAMES, VARIANTS, operand_map, refusals
from bvh.contract.program import scan
from treeline.report_table import make_table


def decode_stream(words: Sequence[int]) -> dict[str, Any]:
    """Every instruction with its byte PC (from the first word), operands and reasons against it;
    words that only look like one; where the control flow was lost."""
    found = scan(words)
    return {
        "words": [
            {"index": i, "word": f"{word:08x}", "role": str(role)}
            for i, (word, role) in enumerate(zip(words, found.roles, strict=True))
        ],
        "instructions": [
            {
                "byte_pc": 4 * at,
                "opcode": f"0x{instruction.opcode:X}",
                "name": instruction.name,
                "bytes": 4 * instruction.word_count,
                "nsa": instruction.nsa,
                "dmask": f"0x{instruction.dmask:X}",
                "r128": instruction.r128,
                "a16": instruction.a16,
                "d16": instruction.d16,
                "words": [f"{word:08x}" for word in words[at : at + instruction.word_count]],
                "operands": operand_map(instruction),
                "refusals": refusals(instruction),
            }
            for at, instruction in found.found.items()
        ],
        "lookalikes": [
            {"byte_pc": 4 * at, "word": f"{words[at]:08x}", "role": str(found.roles[at])}
            for at in found.lookalikes
        ],
        "notes": list(found.notes),
    }


def as_lines(found: dict[str, Any]) -> list[str]:
    lines = []
    for item in found["instructions"]:
        lines.append(
            f"byte {item['byte_pc']}: {item['name']} opcode {item['opcode']}, "
            f"{item['bytes']} bytes, nsa {item['nsa']}, dmask {item['dmask']}, r128 "
            f"{item['r128']}, a16 {item['a16']}, d16 {item['d16']}: {' '.join(item['words'])}"
        )
        operands = ", ".join(f"{name} {register}" for name, register in item["operands"].items())
        lines.append(f"    {operands}")
        lines += [f"    refused: {reason}" for reason in item["refusals"]] or ["    supported"]
    for item in found["lookalikes"]:
        lines.append(
            f"byte {item['byte_pc']}: {item['word']} looks like a BVH instruction and is none "
            f"({item['role']})"
        )
    return lines + [f"note: {text}" for text in found["notes"]]


def matrix() -> list[dict[str, Any]]:
    """The variants, one row a field and range of values."""
    return [
        {
            "field": variant.field,
            "values": [_value(variant.field, value) for value in variant.values],
            "supported": variant.supported,
            "reason": variant.reason,
            "label": variant.label,
        }
        for variant in VARIANTS
    ]


def matrix_table() -> Table:
    rows = [
        (
            row["field"],
            _span(row["values"]),
            "supported" if row["supported"] else "refused",
            row["label"],
            row["reason"],
        )
        for row in matrix()
    ]
    table = make_table("Variants", ("field", "value", "", "label", "why"), rows)
    for column in table.columns:
        column.justify = "left"
    return table


def _value(field: str, value: int) -> str:
    return f"0x{value:X} {OPCODE_NAMES[value]}" if field == "opcode" else f"{value}"


def _span(values: list[str]) -> str:
    return values[0] if len(values) == 1 else f"{values[0]} .. {values[-1]}"
