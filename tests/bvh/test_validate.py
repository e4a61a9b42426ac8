"""One corruption a test: the validator finds it, names the node that was changed and no other."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from bvh.build import BuildOptions, build_blas
from bvh.decode import container_nodes
from bvh.header import unpack_header
from bvh.layout import INVALID_POINTER, InstanceFlags
from bvh.scene_bvh import SceneBvh, assemble
from bvh.tlas import BvhInstance
from bvh.validate import validate


@cache
def _scene(nodes: str) -> SceneBvh:
    """Shared: tests change copies of its words."""
    rng = np.random.default_rng(7)
    centre = rng.random((400, 1, 3)) * 8
    triangles = (centre + rng.normal(size=(400, 3, 3)) * 0.2).astype(np.float32)
    triangles[1::2, 0], triangles[1::2, 1] = triangles[::2, 1], triangles[::2, 0]
    ids = np.arange(400, dtype=np.uint32)
    options = BuildOptions(nodes=nodes)
    blas = build_blas(triangles, ids // 200, ids, np.array([True, False]), options)
    moved = np.array([[0, -2, 0, 5], [1, 0, 0, -3], [0, 0, 0.5, 1], [0, 0, 0, 1.0]])
    instances = [
        BvhInstance(0, name="a"),
        BvhInstance(0, moved, 0x0F, 2, 9, InstanceFlags.FORCE_OPAQUE, "b"),
    ]
    found = assemble([blas], ["mesh"], instances, options)
    found.words.flags.writeable = found.parents.flags.writeable = False
    return found


@pytest.fixture(params=["fp32", "fp16"])
def scene(request: pytest.FixtureRequest) -> SceneBvh:
    return _scene(request.param)


def _inner(scene: SceneBvh, index: int) -> tuple[int, bool]:
    """(first word in the scene buffer, is FP16) of BLAS 0's inner node number `index`."""
    units, half = container_nodes(scene.blas_words(0))
    return int(scene.blas_bases[0]) // 4 + 16 * int(units[index]), bool(half[index])


def _leaf(scene: SceneBvh, index: int) -> int:
    base = int(scene.blas_bases[0]) // 4
    return base + 16 * (unpack_header(scene.blas_words(0)).leaf_unit + index)


def _faults_after(scene: SceneBvh, change: Callable[[np.ndarray, np.ndarray], None]) -> list:
    words, parents = scene.words.copy(), scene.parents.copy()
    change(words, parents)
    return validate(replace(scene, words=words, parents=parents))


def test_sound_scene_has_no_fault(scene: SceneBvh) -> None:
    assert validate(scene) == []


def test_swapped_child_pointers(scene: SceneBvh) -> None:
    at, _ = _inner(scene, 0)

    def change(words: np.ndarray, _parents: np.ndarray) -> None:
        words[at], words[at + 1] = words[at + 1], words[at]

    faults = _faults_after(scene, change)
    assert faults[0].byte_offset == 4 * at
    assert "does not enclose" in faults[0].message
    assert faults[0].words[:2] == (scene.words[at + 1], scene.words[at])
    assert "BLAS 0 'mesh'" in str(faults[0])
    assert f"at byte {4 * at}" in str(faults[0])


def test_swapped_children_with_their_boxes(scene: SceneBvh) -> None:
    """Harmless to rays, but no longer depth first."""
    at, half = _inner(scene, 0)
    assert not half

    def change(words: np.ndarray, _parents: np.ndarray) -> None:
        words[[at, at + 1]] = words[[at + 1, at]]
        first, second = words[at + 4 : at + 10].copy(), words[at + 10 : at + 16].copy()
        words[at + 4 : at + 10], words[at + 10 : at + 16] = second, first

    faults = _faults_after(scene, change)
    assert faults
    assert all("order" in fault.message for fault in faults)


@pytest.mark.parametrize("index", [0, 3, 17])
def test_bound_one_step_too_small(scene: SceneBvh, index: int) -> None:
    """Smallest step of the stored format, lower x of child 0 raised."""
    at, half = _inner(scene, index)

    def change(words: np.ndarray, _parents: np.ndarray) -> None:
        if half:
            bits = np.uint16(words[at + 4] & 0xFFFF)
            value = np.nextafter(bits.view(np.float16), np.float16(np.inf))
            words[at + 4] = (words[at + 4] & 0xFFFF0000) | int(value.view(np.uint16))
        else:
            value = np.nextafter(words[at + 4 : at + 5].view(np.float32), np.float32(np.inf))
            words[at + 4] = value.view(np.uint32)[0]

    faults = _faults_after(scene, change)
    assert [fault.byte_offset for fault in faults] == [4 * at]
    assert "child 0: box" in faults[0].message
    assert "on x does not enclose" in faults[0].message
    assert len(faults[0].words) == (16 if half else 32)


def test_moved_vertex(scene: SceneBvh) -> None:
    at = _leaf(scene, 5)

    def change(words: np.ndarray, _parents: np.ndarray) -> None:
        words[at : at + 1] = np.array([1000.0], np.float32).view(np.uint32)

    faults = _faults_after(scene, change)
    assert len(faults) == 1  # the node above the block, not all of its ancestors
    assert "does not enclose" in faults[0].message


def _set(at_child: int, value: int) -> Callable[[SceneBvh], Callable[..., None]]:
    def make(scene: SceneBvh) -> Callable[[np.ndarray, np.ndarray], None]:
        at, _ = _inner(scene, 2)

        def change(words: np.ndarray, _parents: np.ndarray) -> None:
            words[at + at_child] = value

        return change

    return make


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (0x00FFFFF5, "out of range"),
        (0x00FFFFF1, "out of range"),
        (0x15, "out of range"),  # back to the root: a cycle
        (0x5, "out of range"),  # the header
        (0x2E, "illegal node type"),  # an instance in a BLAS
        (0x2F, "illegal node type"),
        (0x2A, "illegal node type"),  # triangle 2
    ],
)
def test_bad_pointers(scene: SceneBvh, value: int, message: str) -> None:
    at, _ = _inner(scene, 2)
    faults = _faults_after(scene, _set(0, value)(scene))
    bad = [fault for fault in faults if message in fault.message]
    assert bad[0].byte_offset == 4 * at
    assert f"0x{value:x}" in bad[0].message


def test_cycle_and_shared_node_end(scene: SceneBvh) -> None:
    at, _ = _inner(scene, 0)
    deep, _ = _inner(scene, 20)

    def change(words: np.ndarray, _parents: np.ndarray) -> None:
        words[deep] = words[at]  # an ancestor

    faults = _faults_after(scene, change)
    assert any("reached twice" in f.message and f.byte_offset == 4 * deep for f in faults)


def test_empty_slots(scene: SceneBvh) -> None:
    units, half = container_nodes(scene.blas_words(0))
    base = int(scene.blas_bases[0]) // 4
    node = np.flatnonzero(scene.words[base + 16 * units + 3] == 0xFFFFFFFF)[0]
    at, is_half = base + 16 * int(units[node]), bool(half[node])
    bounds = at + (13 if is_half else 22)

    def change(words: np.ndarray, _parents: np.ndarray) -> None:
        words[bounds : bounds + (3 if is_half else 6)] = 0

    faults = _faults_after(scene, change)
    assert [(f.byte_offset, f.message) for f in faults] == [
        (4 * at, "child 3: empty slot with bounds")
    ]


def test_lost_child(scene: SceneBvh) -> None:
    faults = _faults_after(scene, _set(0, 0xFFFFFFFF)(scene))
    text = " ".join(fault.message for fault in faults)
    assert "empty slot with bounds" in text
    assert "can be reached" in text or "leaf that no node points to" in text


def test_nan_bound_of_a_used_slot(scene: SceneBvh) -> None:
    at, half = _inner(scene, 4)

    def change(words: np.ndarray, _parents: np.ndarray) -> None:
        words[at + 4] = 0x7E007E00 if half else 0x7FC00000

    faults = _faults_after(scene, change)
    assert faults[0].byte_offset == 4 * at
    assert "not finite" in faults[0].message


def test_parent_links(scene: SceneBvh) -> None:
    first = int(scene.blas_bases[0]) // 64
    leaf_unit = first + unpack_header(scene.blas_words(0)).leaf_unit

    def wrong(_words: np.ndarray, parents: np.ndarray) -> None:
        parents[leaf_unit + 3] ^= 8

    faults = _faults_after(scene, wrong)
    assert [fault.byte_offset for fault in faults] == [64 * (leaf_unit + 3)]
    assert "parent link" in faults[0].message

    def root(_words: np.ndarray, parents: np.ndarray) -> None:
        parents[first + 2] = 0x15

    assert "the root has a parent link" in _faults_after(scene, root)[0].message

    def stray(_words: np.ndarray, parents: np.ndarray) -> None:
        parents[first + 3] = 0x15

    assert "where no node starts" in _faults_after(scene, stray)[0].message


@pytest.mark.parametrize(
    ("word", "value", "message"),
    [
        (13, None, "a second time"),  # primitive of another block's triangle
        (12, 0x01000009, "geometry 9 of 2"),
        (15, 0x0909090F, "no rotation"),
        (14, 0xFFFFFFFF, "the block holds 1 triangle"),
        (0, 0x7FC00000, "vertex is not finite"),
    ],
)
def test_bad_blocks(scene: SceneBvh, word: int, value: object, message: str) -> None:
    pair = next(i for i in range(11, 99) if scene.words[_leaf(scene, i) + 14] != INVALID_POINTER)
    at = _leaf(scene, pair)
    other = _leaf(scene, pair + 1)

    def change(words: np.ndarray, _parents: np.ndarray) -> None:
        if value is None:
            words[at + 12] = words[other + 12]
            words[at + 13] = words[other + 13]
        else:
            words[at + word] = value

    faults = _faults_after(scene, change)
    assert any(message in fault.message for fault in faults)
    places = {4 * at, 4 * other}
    assert any(f.byte_offset in places for f in faults if message in f.message) or word == 12


def test_pointer_type_against_block(scene: SceneBvh) -> None:
    units, half = container_nodes(scene.blas_words(0))
    base = int(scene.blas_bases[0]) // 4
    at = next(
        base + 16 * unit + slot
        for unit in units.tolist()
        for slot in range(4)
        if scene.words[base + 16 * unit + slot] & 7 == 1
        and scene.words[base + 16 * unit + slot] != 0xFFFFFFFF
    )

    def change(words: np.ndarray, _parents: np.ndarray) -> None:
        words[at] &= 0xFFFFFFF8

    faults = _faults_after(scene, change)
    assert any("the pointer says type 0, the block holds 2" in f.message for f in faults)
    assert any("triangles in blocks, the header counts 400" in f.message for f in faults)


@pytest.mark.parametrize(
    ("word", "message"),
    [(0, "magic"), (1, "version"), (2, "kind"), (3, "root pointer"), (4, "do not fit"),
     (5, "leaves start"), (6, "leaves start"), (8, "size"), (9, "header counts"),
     (11, "levels"), (20, "base"),
     (18, "fan table at unit 1"), (19, "1 fans of"), (24, "spheres"), (25, "header word 25"),
     (21, "header word 21"), (22, "header word 22")],
)  # fmt: skip
def test_header(scene: SceneBvh, word: int, message: str) -> None:
    at = int(scene.blas_bases[0]) // 4 + word

    def change(words: np.ndarray, _parents: np.ndarray) -> None:
        words[at] += 1 << 23 if word == 21 else 1

    faults = _faults_after(scene, change)
    assert any(message in fault.message for fault in faults)


def test_header_bounds(scene: SceneBvh) -> None:
    at = int(scene.blas_bases[0]) // 4 + 12

    def change(words: np.ndarray, _parents: np.ndarray) -> None:
        words[at : at + 1] = np.array([4.0], np.float32).view(np.uint32)

    faults = _faults_after(scene, change)
    assert any("header's bounds" in fault.message for fault in faults)


@pytest.mark.parametrize(
    ("word", "message"),
    [
        (0, "BLAS pointer"),
        (1, "BLAS pointer"),
        (2, "mask or custom index"),
        (3, "first object or flags"),
        (16, "instance id"),
        (17, "no BLAS of this scene"),
        (18, "geometry count"),
        (5, "not inverse"),
        (31, "not inverse"),
    ],
)
def test_instance_nodes(scene: SceneBvh, word: int, message: str) -> None:
    first = 16 * unpack_header(scene.words).leaf_unit
    ids = [int(scene.words[first + 32 * i + 16]) for i in range(2)]
    at = first + 32 * ids.index(1)

    def change(words: np.ndarray, _parents: np.ndarray) -> None:
        if message == "not inverse":
            value = words[at + word : at + word + 1].view(np.float32)
            words[at + word : at + word + 1] = (value + np.float32(0.01)).view(np.uint32)
        else:
            words[at + word] += 1

    faults = _faults_after(scene, change)
    assert any(message in f.message and f.byte_offset == 4 * at for f in faults)
    assert all(f.container == "TLAS" for f in faults)


def test_tlas_box(scene: SceneBvh) -> None:
    def change(words: np.ndarray, _parents: np.ndarray) -> None:
        high = words[32 + 7 : 32 + 8].view(np.float32)
        words[32 + 7 : 32 + 8] = np.nextafter(high, np.float32(-np.inf)).view(np.uint32)

    faults = _faults_after(scene, change)
    assert [fault.byte_offset for fault in faults] == [128]


def test_random_garbage_never_raises(rng: np.random.Generator) -> None:
    scene = _scene("auto")
    for _ in range(60):
        words, parents = scene.words.copy(), scene.parents.copy()
        at = rng.integers(0, len(words), 5)
        words[at] = rng.integers(0, 1 << 32, 5, dtype=np.uint32)
        small = rng.integers(0, len(words), 3)
        words[small] = rng.integers(0, len(words), 3)
        parents[rng.integers(0, len(parents), 2)] = 0x25
        assert validate(replace(scene, words=words, parents=parents))
