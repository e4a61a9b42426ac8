"""Every kind of damage is found, on the GPU as by the twin, and nothing in what is whole."""

from typing import Any

import numpy as np
import pytest
import trimesh

from bvh.build import Blas, BuildOptions, build_blas
from bvh.gpu.validate import (
    CHECK_PARAMETERS,
    FAULTS,
    GpuValidate,
    check_header,
    check_units,
    empty_findings,
    judge,
)
from bvh.header import unpack_header
from bvh.layout import BOX_BOUNDS_WORD, INVALID_POINTER, NODE_BOX_FP16, NODE_BOX_FP32

COUNT = 700


def _build(rng: Any, count: int, nodes: str = "auto") -> Blas:
    points = rng.random((count, 1, 3)) * 10 + rng.normal(size=(count, 3, 3)) * 0.1
    zeros = np.zeros(count, np.uint32)
    options = BuildOptions(nodes=nodes, reinsertion=0)
    indices = np.arange(count, dtype=np.uint32)
    return build_blas(points.astype(np.float32), zeros, indices, np.ones(1, np.bool_), options)


@pytest.fixture(scope="module")
def validator(device: Any) -> GpuValidate:
    return GpuValidate(device, COUNT)


def _twin(words: Any, links: Any) -> list[str]:
    faults = check_header(words, len(words) // 16)
    if faults:
        return [str(f) for f in faults]
    header = unpack_header(words)
    record = np.zeros(1, CHECK_PARAMETERS.dtype)
    record["units"], record["leaf_unit"] = header.size_units, header.leaf_unit
    record["most_uses"], record["fan_unit"] = 1, header.fan_unit
    findings = empty_findings()
    # The buffer of uses is padded to 16 bytes, which the shader sees.
    check_units(record, words, links, np.zeros(-(-COUNT // 4) * 4, np.uint32), findings)
    return [_text(f) for f in judge(findings, header)]


def _text(finding: Any) -> str:
    """Which block comes second depends on the order of lanes."""
    return finding.kind + str(finding.count) if finding.kind == "primitive" else str(finding)


def _check(device: Any, validator: GpuValidate, words: Any, links: Any) -> list[str]:
    found = validator.check(device.upload("words", words), device.upload("links", links))
    texts = [_text(f) for f in found]
    assert texts == _twin(words, links)
    return texts


@pytest.mark.parametrize("nodes", ["fp32", "fp16", "auto"])
@pytest.mark.parametrize("count", [0, 1, 2, 3, 5, COUNT])
def test_whole_containers_have_no_fault(
    device: Any, validator: Any, rng: Any, count: int, nodes: str
) -> None:
    blas = _build(rng, count, nodes)
    assert _check(device, validator, blas.words, blas.parents) == []


def test_a_container_inside_a_larger_buffer(device: Any, validator: Any, rng: Any) -> None:
    blas = _build(rng, 50)
    words = np.concatenate([np.full(256, 7, np.uint32), blas.words, np.full(64, 7, np.uint32)])
    links = np.concatenate([np.full(16, 7, np.uint32), blas.parents, np.full(4, 7, np.uint32)])
    buffers = device.upload("words", words), device.upload("links", links)
    assert validator.check(*buffers, base_bytes=1024) == []


def _damages(blas: Blas) -> dict[str, Any]:
    """What is done to (words, links), and the kind that has to be named."""
    header = unpack_header(blas.words)
    leaf = header.leaf_unit
    linked = [u for u in range(3, leaf) if blas.parents[u] != INVALID_POINTER]
    node = linked[len(linked) // 2]

    def swap_pointers(words: Any, links: Any) -> None:
        words[32], words[33] = words[33], words[32]

    def point_up(words: Any, links: Any) -> None:
        words[node * 16] = 0x15

    def point_beyond(words: Any, links: Any) -> None:
        words[node * 16] = (header.size_units + 1) << 3

    def wrong_section(words: Any, links: Any) -> None:
        words[node * 16] = (leaf + 1) << 3 | 5

    def cut_off(words: Any, links: Any) -> None:
        words[32] = INVALID_POINTER

    def unlink(words: Any, links: Any) -> None:
        links[leaf + 5] = INVALID_POINTER

    def other_parent(words: Any, links: Any) -> None:
        links[leaf + 5] = 0x15 if links[leaf + 5] != 0x15 else node << 3 | 5

    def shrink(words: Any, links: Any) -> None:
        words[32 + BOX_BOUNDS_WORD + 3] = np.float32(0.5).view(np.uint32)

    def not_a_number(words: Any, links: Any) -> None:
        words[32 + BOX_BOUNDS_WORD] = 0x7FC00000

    def move_vertex(words: Any, links: Any) -> None:
        words[(leaf + 3) * 16 + 1] = np.float32(1e6).view(np.uint32)

    def twice(words: Any, links: Any) -> None:
        words[(leaf + 3) * 16 + 13] = words[leaf * 16 + 13]

    def out_of_range(words: Any, links: Any) -> None:
        words[(leaf + 3) * 16 + 13] = 10**6

    def one_node_more(words: Any, links: Any) -> None:
        words[6] += 1

    def bounds_of_the_header(words: Any, links: Any) -> None:
        words[15] = np.float32(0.5).view(np.uint32)

    return {
        "box": (shrink, not_a_number, move_vertex, bounds_of_the_header, swap_pointers),
        "link": (cut_off, other_parent, unlink),
        "pointer": (point_up, point_beyond, wrong_section),
        "primitive": (twice, out_of_range),
        "FP32 nodes": (one_node_more,),
    }


def test_damage_is_named(device: Any, validator: Any, rng: Any) -> None:
    blas = _build(rng, COUNT)
    for kind, damages in _damages(blas).items():
        for damage in damages:
            words, links = blas.words.copy(), blas.parents.copy()
            damage(words, links)
            found = _check(device, validator, words, links)
            assert any(text.startswith(kind) for text in found), (damage.__name__, found)


def test_random_damage_is_found_alike(device: Any, validator: Any, rng: Any) -> None:
    """Twin and GPU agree on any bytes; nothing hangs."""
    blas = _build(rng, 120)
    for _ in range(40):
        words, links = blas.words.copy(), blas.parents.copy()
        for _ in range(3):
            at = int(rng.integers(32, len(words) // 2))
            words[at] = rng.choice([0, 0x15, INVALID_POINTER, words[at] ^ 8, 0x7FC00000])
            links[int(rng.integers(2, len(links)))] = rng.choice([0x15, INVALID_POINTER, 0x1C])
        _check(device, validator, words, links)


@pytest.fixture(scope="module")
def fans() -> Blas:
    ball = trimesh.creation.icosphere(subdivisions=2).triangles.astype(np.float32)
    zeros, indices = np.zeros(len(ball), np.uint32), np.arange(len(ball), dtype=np.uint32)
    options = BuildOptions(leaf=4, reinsertion=0)
    return build_blas(ball, zeros, indices, np.ones(1, np.bool_), options)


def test_fans(device: Any, fans: Blas, rng: Any) -> None:
    validator = GpuValidate(device, COUNT)
    header = unpack_header(fans.words)
    assert header.fan_count > 50 and header.primitive_count < COUNT
    assert _check(device, validator, fans.words, fans.parents) == []
    table = 16 * header.fan_unit
    leaf = 16 * header.leaf_unit
    first = int(fans.words[table + 1]) * 4 + table
    fan = leaf + 16 * int(np.log2(int(fans.words[table]) & -int(fans.words[table])))
    damages = (
        ("primitive", table, fans.words[table] ^ 1),  # a fan that is none, or the other way
        ("primitive", table + 1, 0xFFFFFF),
        ("primitive", first, fans.words[first + 4]),
        ("primitive", first + 1, 10**6),
        ("primitive", first + 3, 1),
        ("box", fan + 13, np.float32(1e6).view(np.uint32)),
        ("header", 18, header.fan_unit + 1),
        ("header", 1, 1),
    )
    for kind, at, value in damages:
        words = fans.words.copy()
        words[at] = value
        if kind == "header":
            assert check_header(words, len(words) // 16)
            continue
        found = _check(device, validator, words, fans.parents)
        assert any(text.startswith(kind) for text in found), (at, found)
    links = fans.parents.copy()
    links[header.fan_unit] = 0x15
    assert any(t.startswith("link") for t in _check(device, validator, fans.words, links))
    for _ in range(40):
        words, links = fans.words.copy(), fans.parents.copy()
        for _ in range(3):
            words[int(rng.integers(table, len(words)))] = rng.integers(1 << 32)
            at = int(rng.integers(32, table // 2))
            words[at] = rng.choice([0, 0x15, INVALID_POINTER, words[at] ^ 1, words[at] ^ 8])
        _check(device, validator, words, links)


@pytest.mark.parametrize("kind,slot_words", [(NODE_BOX_FP32, 6), (NODE_BOX_FP16, 3)])
def test_denormals_count(device: Any, validator: Any, rng: Any, kind: int, slot_words: int) -> None:
    """A bound beside a corner at 0 and a denormal away, which a driver may take for 0."""
    points = np.maximum(rng.normal(size=(40, 3, 3)), 0).astype(np.float32)
    nodes = "fp16" if kind == NODE_BOX_FP16 else "fp32"
    options = BuildOptions(nodes=nodes, reinsertion=0)
    ids = np.arange(len(points), dtype=np.uint32)
    blas = build_blas(points, np.zeros_like(ids), ids, np.ones(1, np.bool_), options)
    tried = 0
    for block in range(unpack_header(blas.words).leaf_unit, len(blas.parents)):
        parent, above = 16 * int(blas.parents[block] >> 3), blas.parents[block] & 7
        if above != kind or blas.words[16 * block : 16 * block + 9 : 3].all():
            continue  # no node of this kind, or a corner not at x = 0
        slot = int(np.flatnonzero(blas.words[parent : parent + 4] >> 3 == block)[0])
        at = parent + BOX_BOUNDS_WORD + slot_words * slot  # low x
        for low, kinds in ((1, ["box"]), (0x80000001, []), (0x80000000, [])):
            words = blas.words.copy()
            half = words[at] & 0xFFFF0000 | low >> 16 | low & 1
            words[at] = half if kind == NODE_BOX_FP16 else low
            found = _check(device, validator, words, blas.parents)
            assert [text.split(":")[0] for text in found] == kinds
        tried += 1
        if tried == 3:
            break
    assert tried


def test_headers_are_looked_at_first() -> None:
    words = np.zeros(64, np.uint32)
    assert [str(f) for f in check_header(words, 4)] == ["header: 1, the first at unit 0"]
    assert FAULTS[0] == "pointer"
