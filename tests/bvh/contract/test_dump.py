"""Foreign bytes: what is decoded, what is kept, and which fault comes first."""

from pathlib import Path

import numpy as np
import pytest

from bvh.build import Blas, BuildOptions, build_blas
from bvh.contract import node_fields
from bvh.contract.descriptor import Descriptor
from bvh.contract.dump import (
    Dump,
    Extent,
    decode_dump,
    read_memory,
    read_pages,
)
from bvh.contract.memory import GuestMemory
from bvh.contract.pointer import FileOffset, GuestAddress, NodePointer
from bvh.layout import INVALID_POINTER, NODE_BYTES
from engine.gpu.errors import UserError

BASE = GuestAddress(0x7_0000_0000)
ROOT = NodePointer(0x15)


@pytest.fixture
def blas(rng: np.random.Generator) -> Blas:
    soup = rng.uniform(-1, 1, (60, 1, 3)) + rng.normal(size=(60, 4, 3)) * 0.1
    corners = soup[:, [[0, 1, 2], [2, 1, 3]]].reshape(-1, 3, 3).astype(np.float32)
    geometry, primitive = np.zeros(120, np.uint32), np.arange(120, dtype=np.uint32)
    return build_blas(corners, geometry, primitive, np.array([True]), BuildOptions())


def decoded(words: np.ndarray) -> Dump:
    memory = GuestMemory.from_words(words, BASE)
    return decode_dump(memory, Descriptor(BASE, len(words) // 16 - 1), ROOT)


def test_a_sound_tree_is_found_whole(blas: Blas) -> None:
    dump = decoded(blas.words)
    assert dump.faults == ()
    kinds = dump.kinds.tolist()
    stats = blas.stats
    assert kinds.count(5) == stats.nodes_fp32 and kinds.count(4) == stats.nodes_fp16
    assert sum(kind < 4 for kind in kinds) == stats.blocks
    named, corners = dump.triangles()
    assert len(named) == len(corners) == 120
    assert dump.parents[0] == -1 and dump.addresses[0] == BASE + 128
    for i in range(1, len(dump)):
        parent = int(dump.parents[i])
        assert dump.pointers[i] in dump.words[parent, :4]
        assert dump.depth[i] == dump.depth[parent] + 1
    assert (dump.bounds[0] <= blas.bounds[0]).all() and (dump.bounds[1] >= blas.bounds[1]).all()


@pytest.mark.parametrize("kind", range(8))
def test_any_bytes_round_trip(kind: int, rng: np.random.Generator) -> None:
    words = rng.integers(0, 1 << 32, (50, NODE_BYTES[kind] // 4), dtype=np.uint32)
    assert (node_fields.encode(node_fields.decode(words, kind)) == words).all()
    covered = np.zeros(NODE_BYTES[kind], np.int64)
    for field in node_fields.FIELDS[kind]:
        size = np.dtype(field.base).itemsize * int(np.prod(field.shape, initial=1))
        covered[field.byte : field.byte + size] += 1
    assert (covered == 1).all()  # every byte is in one field


@pytest.mark.parametrize(
    ("word", "value", "message"),
    [
        (32, 0x15, "a second time"),
        (32, 0x100005, "beyond the descriptor"),
        (32, 0xFFFFFFFE, "sentinel"),
        (36, 0x7FC00000, "NaN bounds"),
        (36, 0x7F7FFFFF, "inverted"),
    ],
)
def test_the_first_fault_is_named(blas: Blas, word: int, value: int, message: str) -> None:
    words = blas.words.copy()
    assert words[32] != INVALID_POINTER  # slot 0 of the root is used
    words[word] = value
    faults = decoded(words).faults
    assert message in faults[0].message


def test_a_triangle_outside_its_box(blas: Blas) -> None:
    words = blas.words.copy()
    dump = decoded(words)
    index = int(np.flatnonzero(dump.kinds < 4)[0])
    at = (int(dump.addresses[index]) - BASE) // 4
    words[at] = np.float32(50).view(np.uint32)
    fault = decoded(words).faults[0]
    assert fault.node == index and "beyond its parent's box" in fault.message
    words[at] = 0x7FC00000
    assert "not finite" in decoded(words).faults[0].message


def test_pages_that_were_not_captured_are_named_apart(blas: Blas, tmp_path: Path) -> None:
    path = tmp_path / "dump.bin"
    blas.words.astype("<u4").tofile(path)
    size = path.stat().st_size
    half = size // 128 * 64
    second = GuestAddress(BASE + half)
    captured = [Extent(BASE, FileOffset(0), half), Extent(second, None, size - half)]
    descriptor = Descriptor(BASE, size // 64 - 1)
    dump = decode_dump(read_memory(path, captured), descriptor, ROOT)
    assert len(dump) and any("has not arrived" in fault.message for fault in dump.faults)
    dump = decode_dump(read_memory(path, captured[:1]), descriptor, ROOT)
    assert len(dump) and all("is not declared" in fault.message for fault in dump.faults)


def test_a_table_of_pages(blas: Blas, tmp_path: Path) -> None:
    data = blas.words.astype("<u4").tobytes()
    half = len(data) // 128 * 64
    path, table = tmp_path / "dump.bin", tmp_path / "pages.txt"
    path.write_bytes(data[half:] + data[:half])  # the halves the other way round
    table.write_text(
        f"# address offset size\n0x{BASE:x} {len(data) - half} {half}\n\n"
        f"{BASE + half} 0 {len(data) - half}  # second\n"
    )
    memory = read_memory(path, read_pages(table))
    dump = decode_dump(memory, Descriptor(BASE, len(data) // 64 - 1), ROOT)
    straight = decoded(blas.words)
    assert (dump.words == straight.words).all() and (dump.pointers == straight.pointers).all()
    table.write_text("0x100 12\n")
    with pytest.raises(UserError, match="pages.txt:1"):
        read_pages(table)
    with pytest.raises(UserError, match="the file has"):
        read_memory(path, [Extent(BASE, FileOffset(0), len(data) + 64)])


def test_types_2_and_3_use_the_fifth_vertex() -> None:
    words = np.zeros(16, np.uint32)
    fan = np.arange(15, dtype=np.float32).reshape(5, 3)
    words[:15] = fan.reshape(-1).view(np.uint32)
    memory = GuestMemory.from_words(words, BASE)
    dump = decode_dump(memory, Descriptor(BASE, 0), NodePointer(3))
    named, corners = dump.triangles()
    assert named.tolist() == [0, 1, 2, 3]
    assert corners[3].tolist() == fan[[2, 4, 0]].tolist()
    alone, corners = dump.triangles(fan=False)
    assert alone.tolist() == [3] and corners.tolist() == [fan[[2, 4, 0]].tolist()]
