"""The encoding operations of a vector file: JSON input to plain numbers, one function an op."""

from collections.abc import Callable
from typing import Any

import numpy as np

from bvh import layout
from bvh.contract import descriptor, half, mimg, pointer
from bvh.contract.pointer import ByteOffset, GuestAddress, NodePointer
from engine.gpu.errors import UserError


def number(value: Any) -> int:
    """An integer from a JSON number or a "0x..." string."""
    return int(value, 0) if isinstance(value, str) else int(value)


def _floats(values: Any) -> Any:
    with np.errstate(over="ignore"):
        return np.array([float(value) for value in values]).astype(np.float32)


def _pointer_pack(given: dict[str, Any]) -> int:
    return pointer.pack(ByteOffset(number(given["byte_offset"])), number(given["type"]), bits=64)


def _pointer_unpack(given: dict[str, Any]) -> dict[str, int]:
    found = pointer.unpack(NodePointer(number(given["pointer"])))
    return {
        "type": found.kind,
        "index64": found.index,
        "byte_offset": found.byte_offset,
        "word_index": found.word_index,
    }


def _descriptor_pack(given: dict[str, Any]) -> list[int]:
    fields = descriptor.Descriptor(
        base=GuestAddress(number(given["base"])),
        last_unit=number(given["size_minus_1"]),
        growth=number(given["growth"]),
        sort=bool(number(given["sort"])),
        return_mode=number(given["return_mode"]),
    )
    return list(descriptor.pack(fields))


def _fp16_bounds(given: dict[str, Any]) -> list[int]:
    return half.pack_bounds(_floats(given["min"]), _floats(given["max"])).tolist()


def _triangle_flag_byte(given: dict[str, Any]) -> int:
    i, j = number(given["i_source"]), number(given["j_source"])
    if not (0 <= i <= layout.FLAG_I_MASK and 0 <= j <= layout.FLAG_I_MASK):
        raise UserError(f"flag byte sources {i} and {j} are not in 0..{layout.FLAG_I_MASK}")
    return layout.triangle_flag_byte(i, j, bool(number(given.get("opaque", 0))))


def _parent_link(given: dict[str, Any]) -> dict[str, int]:
    node = NodePointer(number(given["node"]))
    return {"byte_delta": pointer.parent_link(node, given["convention"])}


def _mimg_decode(given: dict[str, Any]) -> dict[str, int]:
    words = [number(word) for word in given["words"]]
    nsa = words[0] >> 1 & 3
    if words[0] >> 26 != mimg.MIMG_ENCODING:
        raise UserError(f"0x{words[0]:08x} is no MIMG instruction")
    if len(words) < 2 + nsa:
        raise UserError(f"the instruction has {2 + nsa} words, {len(words)} are given")
    return {"opcode": mimg.opcode_of(words[0]), "nsa": nsa, "bytes": 4 * (2 + nsa)}


def _a16_pack(given: dict[str, Any]) -> list[int]:
    direction, inverse = _floats(given["direction"]), _floats(given["inverse_direction"])
    return half.pack_a16(given["order"], direction, inverse).tolist()


OPERATIONS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "pointer_pack": _pointer_pack,
    "pointer_unpack": _pointer_unpack,
    "descriptor_pack": _descriptor_pack,
    "fp16_bounds": _fp16_bounds,
    "triangle_flag_byte": _triangle_flag_byte,
    "parent_link": _parent_link,
    "mimg_decode": _mimg_decode,
    "a16_pack": _a16_pack,
}
