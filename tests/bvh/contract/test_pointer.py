"""Node pointers: both widths, every type, and number domains that a type checker keeps apart."""

from pathlib import Path

import numpy as np
import pytest

from bvh.contract import pointer as p
from bvh.contract.pointer import ByteOffset, GuestAddress, NodePointer
from engine.gpu.errors import UserError


@pytest.mark.parametrize(
    ("offset", "kind", "expected"),
    [(0, 5, 0x5), (128, 5, 0x15), (320, 1, 0x29), (256, 4, 0x24), (64, 7, 0xF)],
)
def test_pack_and_unpack(offset: int, kind: int, expected: int) -> None:
    pointer = p.pack(ByteOffset(offset), kind)
    assert pointer == expected
    found = p.unpack(pointer)
    assert (found.kind, found.byte_offset, found.index) == (kind, offset, offset // 64)
    assert found.word_index == offset // 4


def test_a_32_bit_pointer_ends_below_32_gib() -> None:
    last = ByteOffset((1 << 35) - 64)
    assert p.pack(last, 7) == 0xFFFFFFFF
    with pytest.raises(UserError, match="32-bit"):
        p.pack(ByteOffset(1 << 35), 0)
    assert p.pack(ByteOffset(1 << 35), 0, bits=64) == 1 << 32


def test_high_bits_belong_to_the_index() -> None:
    wide = NodePointer(0x1_0000_0015)
    assert p.unpack(wide).byte_offset == (1 << 35) + 128
    assert p.address_of(GuestAddress(0x10000), wide) == (1 << 35) + 128 + 0x10000
    assert p.address_of(GuestAddress(0x10000), NodePointer(0x15)) != p.address_of(
        GuestAddress(0x10000), wide
    )


def test_join_gives_the_same_numbers() -> None:
    low, high = np.array([0x15, 0xFFFFFFFF], np.uint32), np.array([1, 0], np.uint32)
    both = p.join(low, high)
    assert both.tolist() == [0x1_0000_0015, 0xFFFFFFFF]
    assert p.kinds(both).tolist() == [5, 7]
    assert p.indices(both).tolist() == [0x2000_0002, 0x1FFFFFFF]


@pytest.mark.parametrize(
    ("pointer", "convention", "delta"),
    [(0x5, "radv", -4), (0x15, "radv", -12), (0x15, "gpurt", -4), (0x25, "gpurt", -12)],
)
def test_parent_links(pointer: int, convention: str, delta: int) -> None:
    assert p.parent_link(NodePointer(pointer), convention) == delta


def test_refusals_name_the_value() -> None:
    with pytest.raises(UserError, match="65"):
        p.pack(ByteOffset(65), 0)
    with pytest.raises(UserError, match="type 8"):
        p.pack(ByteOffset(64), 8)
    with pytest.raises(UserError, match="dxr"):
        p.parent_link(NodePointer(0x5), "dxr")
    with pytest.raises(UserError, match="below the base"):
        p.offset_in(GuestAddress(0x200), GuestAddress(0x100))
    assert p.file_offset(GuestAddress(0x10040), GuestAddress(0x10000)) == 0x40


MIXED = """
from bvh.contract import pointer as p
base, offset, node = p.GuestAddress(0), p.ByteOffset(64), p.NodePointer(0x15)
p.address_of(base, node)
p.address_of(node, base)  # E
p.address_of(base, offset)  # E
p.pack(node, 5)  # E
p.unpack(p.unpack(node).word_index)  # E
p.file_offset(offset, base)  # E
p.offset_in(base, p.file_offset(base, base))  # E
"""


def test_a_type_checker_keeps_the_domains_apart(tmp_path: Path) -> None:
    api = pytest.importorskip("mypy.api", reason="mypy is a tool of the tests' environment")
    source = tmp_path / "mixed.py"
    source.write_text(MIXED)
    root = Path(__file__).resolve().parents[3]
    out, _, _ = api.run(
        ["--config-file", str(root / "pyproject.toml"), "--cache-dir", str(root / ".mypy_cache"),
         str(source)]
    )  # fmt: skip
    reported = {int(line.split(":")[1]) for line in out.splitlines() if ": error:" in line}
    expected = {i for i, line in enumerate(MIXED.splitlines(), 1) if line.endswith("# E")}
    assert reported == expected, out
