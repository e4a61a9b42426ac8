"""The lazy tree against a full decode of the same bytes, and against nodes written by hand."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bvh.build import BuildOptions, build_blas
from bvh.decode import decode, decode_triangles
from bvh.encode import stored_boxes
from bvh.layout import INVALID_POINTER, pack_pointer
from bvh.scene_bvh import SceneBvh, assemble
from bvh.tlas import BvhInstance
from bvh.tree import EMPTY
from engine.gpu.errors import UserError
from engine.scene.load import load_scene
from passes.prepare import PreparedScene, prepare
from treeline.scenes import EMBEDDED
from treeline.view.node_fields import node_fields, node_text, raw_lines
from treeline.view.structure_tree import TLAS_ROOT, StructureTree
from treeline.view.view_state import WHOLE_TLAS, NodeRef

QUICK = BuildOptions(builder="lbvh", reinsertion=0, collapse="greedy")


@pytest.fixture(scope="module")
def hall() -> PreparedScene:
    return prepare(load_scene(EMBEDDED), QUICK, "object")


def blob(rng: np.random.Generator, count: int) -> Any:
    """[count, 3, 3] small triangles, neighbours sharing an edge."""
    walk = np.cumsum(rng.normal(0, 0.1, (count + 2, 3)), axis=0).astype(np.float32)
    return np.stack([walk[:-2], walk[1:-1], walk[2:]], axis=1)


def scene_of(rng: np.random.Generator, **options: Any) -> SceneBvh:
    """Two BLASes, three instances, one of them turned and scaled; instance 1 is of an empty one."""
    settings = replace(QUICK, **options)
    opaque = np.array([True, False])
    blases = []
    for count in (40, 0, 300):
        geometry = (np.arange(count) // 7 % 2).astype(np.uint32)
        ids = rng.permutation(count).astype(np.uint32)
        blases.append(build_blas(blob(rng, count), geometry, ids, opaque, settings))
    turned = np.eye(4)
    turned[:3] = [[0, -2, 0, 1], [1.5, 0, 0, 2], [0, 0.2, 1, 3]]
    instances = [
        BvhInstance(2, turned, mask=0x0F, first_object=4, custom_index=77, name="turned"),
        BvhInstance(1, name="nothing"),
        BvhInstance(0, first_object=2, name="still"),
        BvhInstance(2, np.diag([1.0, 1.0, 1.0, 1.0]), first_object=6, name="again"),
    ]
    return assemble(blases, ("small", "empty", "large"), instances, settings)


def walk(tree: StructureTree, root: NodeRef) -> list[tuple[NodeRef, int]]:
    """Every node below `root` with its level, those of other containers left out."""
    found = [(root, 0)]
    for ref, level in found:
        below = [child for child in tree.children(ref) if child.container == root.container]
        found += [(child, level + 1) for child in below]
    return found


def compare(bvh: SceneBvh, container: int) -> dict[int, int]:
    """Asserts that the tree below a container's root is what `decode` gives, and that each node's
    path leads back; returns how many pointers of each type were met."""
    tree = StructureTree(bvh)
    image = decode(bvh.tlas_words if container == WHOLE_TLAS else bvh.blas_words(container))
    boxes = stored_boxes(image)
    root = NodeRef(container, 0x15)
    place = {0: (root, 0)}  # of each inner node of the image
    seen = {root}
    types: dict[int, int] = {}
    for inner in range(len(image.children)):
        ref, level = place[inner]
        children = tree.children(ref)
        used = np.flatnonzero(image.children[inner] != EMPTY)
        assert len(children) == len(used)
        assert tree.kind(ref) == ("Box16" if image.half[inner] else "Box32")
        for slot, child in zip(used, children, strict=True):
            np.testing.assert_array_equal(tree.box(child), boxes[inner, slot])
            row = tree.row(child)
            assert (row.parent, row.level) == (ref.pointer, level + 1)
            assert tree.path_in_container(child)[-2:] == [ref, child]
            size = boxes[inner, slot, 1].astype(float) - boxes[inner, slot, 0]
            area = size[0] * size[1] + size[1] * size[2] + size[2] * size[0]
            assert row.half_area == pytest.approx(area)
            assert row.pointer_64 == row.pointer + (tree.base(container) >> 3)
            types[child.pointer & 7] = types.get(child.pointer & 7, 0) + 1
            seen.add(child)
            index = int(image.children[inner, slot])
            if index >= 0:
                place[index] = (child, level + 1)
                continue
            np.testing.assert_array_equal(tree.words(child), image.leaves[~index])
            if container != WHOLE_TLAS:
                kind = image.leaf_types[[~index]]
                ids = None if image.fan_ids is None else image.fan_ids[~index][None]
                expected = decode_triangles(image.leaves[~index][None], kind, ids)
                rows = tree.triangles(child)
                np.testing.assert_array_equal(rows.positions, expected.positions)
                np.testing.assert_array_equal(rows.primitive, expected.primitive)
                np.testing.assert_array_equal(rows.geometry, expected.geometry)
                corners = tree.children(child)
                assert [c.triangle for c in corners] == list(range(int(kind[0]) + 1))
                for one in corners:
                    low, high = tree.box(one)
                    np.testing.assert_array_equal(low, rows.positions[one.triangle].min(axis=0))
                    np.testing.assert_array_equal(high, rows.positions[one.triangle].max(axis=0))
                    assert tree.path_in_container(one)[-2:] == [child, one]
                    assert tree.row(one).level == level + 2
    assert len(place) == len(image.children)
    assert len(seen) == 1 + sum(types.values())
    return types


def test_the_hall_is_what_decode_gives(hall: PreparedScene) -> None:
    types = compare(hall.bvh, WHOLE_TLAS)
    assert types[6] == len(hall.bvh.instances)
    sizes = [stats.blocks for stats in hall.bvh.blas_stats]
    middle = int(np.argsort(sizes)[len(sizes) // 2])
    assert compare(hall.bvh, middle)


@pytest.mark.parametrize("options", [{}, {"nodes": "fp32", "leaf": 1}, {"nodes": "fp16"}])
def test_formats_and_empty_containers(rng: Any, options: dict[str, Any]) -> None:
    bvh = scene_of(rng, **options)
    found = [compare(bvh, container) for container in (WHOLE_TLAS, 0, 1, 2)]
    assert found[0][6] == 3 and found[2] == {}
    kinds = set(found[3])
    if options.get("nodes") == "fp32":
        assert 4 not in kinds and 1 not in kinds
    if options.get("nodes") == "fp16":
        assert 5 not in kinds and 4 in kinds


def test_fans(rng: Any) -> None:
    """Pyramids, the first half of them with a side open: blocks of three and of four triangles,
    whose ids are in the table."""
    rim = np.array([[1, 0, 0], [0, 1, 0], [-1, 0, 0], [0, -1, 0]], np.float32)
    apex = np.array([0, 0, 0.5], np.float32)
    sides = np.stack([np.broadcast_to(apex, (4, 3)), rim, np.roll(rim, -1, axis=0)], axis=1)
    pyramids = [sides[: 3 + i // 6] + np.float32([4 * i, 0, 0]) for i in range(12)]
    triangles = np.concatenate(pyramids)
    ids = rng.permutation(len(triangles)).astype(np.uint32)
    geometry = np.zeros(len(triangles), np.uint32)
    options = replace(QUICK, leaf=4)
    blas = build_blas(triangles, geometry, ids, np.array([True]), options)
    bvh = assemble([blas], ("fans",), [BvhInstance(0)], options)
    types = compare(bvh, 0)
    assert types[2] == types[3] == 6
    tree = StructureTree(bvh)
    leaves = [ref for ref, _ in walk(tree, NodeRef(0, 0x15, 0)) if ref.triangle >= 0]
    found = [int(tree.triangles(ref).primitive[ref.triangle]) for ref in leaves]
    assert sorted(found) == list(range(len(triangles)))
    fields = dict(node_fields(tree, next(ref for ref in leaves if ref.triangle == 3)))
    assert fields["geometry"] == "0" and fields["  slots"].startswith("V2, V4, V0")
    assert dict(node_fields(tree, NodeRef(0, 0x15)))["fans"].startswith("12,")


def test_through_an_instance(rng: Any) -> None:
    bvh = scene_of(rng)
    tree = StructureTree(bvh)
    assert tree.instance_node(1) is None  # of an empty BLAS
    for number in (0, 2, 3):
        node = tree.instance_node(number)
        assert node is not None and tree.instance_of(node) == number
        assert tree.blas_of(node) == bvh.instances[number].blas
        matrix = np.asarray(bvh.instances[number].transform, np.float32)[:3]
        np.testing.assert_array_equal(tree.transform(number), matrix)
        (root,) = tree.children(node)
        assert root == NodeRef(bvh.instances[number].blas, 0x15, number)
        deep = tree.children(tree.children(tree.children(root)[0])[0])[0]
        path = tree.path_to(deep)
        assert path[0] == TLAS_ROOT and node in path and root in path and path[-1] == deep
        for above, below in zip(path, path[1:], strict=False):
            assert below in tree.children(above) and tree.parent(below) == above
        # The box of the eight corners.
        low, high = tree.box(deep).astype(float)
        corners = np.array(
            [
                [(low, high)[i][0], (low, high)[j][1], (low, high)[k][2]]
                for i, j, k in np.ndindex(2, 2, 2)
            ]
        )
        world = corners @ matrix[:, :3].T + matrix[:, 3]
        expected = [world.min(axis=0), world.max(axis=0)]
        np.testing.assert_allclose(tree.world_box(deep), expected, rtol=1e-5, atol=1e-5)
    alone = NodeRef(2, 0x15)
    assert tree.path_to(alone) == (alone,) and tree.parent(alone) is None


def test_no_blas_and_no_instance() -> None:
    for bvh in (assemble([], [], []), scene_of(np.random.default_rng(1))):
        tree = StructureTree(bvh)
        for root in tree.roots():
            assert tree.label(root) and tree.row(root).level == 0
            assert node_text(tree, root)
    tree = StructureTree(assemble([], [], []))
    assert tree.roots() == [TLAS_ROOT] and tree.children(TLAS_ROOT) == ()
    assert tree.row(TLAS_ROOT).half_area == 0


def test_fields_and_words(rng: Any) -> None:
    bvh = scene_of(rng)
    tree = StructureTree(bvh)
    node = tree.instance_node(0)
    assert node is not None
    fields = dict(node_fields(tree, node))
    assert fields["mask"] == "0x0f" and fields["custom index"] == "77"
    assert fields["first object"] == "4" and fields["object to world 0"] == "0 -2 0 1"
    assert "2 large" in fields["BLAS"] and fields["byte offset"].startswith(f"{tree.offset(node)} ")
    lines = raw_lines(tree, node)
    assert len(lines) == 8 and lines[1].startswith("+10  ")
    words = [int(word, 16) for line in lines for word in line.split()[1:]]
    first = tree.offset(node) // 4
    assert words == bvh.words[first : first + 32].tolist()
    root = node_fields(tree, NodeRef(0, 0x15))
    assert sum(name == "slot 0" for name, _ in root) == 1
    small = dict(node_fields(tree, NodeRef(1, 0x15)))
    assert small["slot 3"] == "0xffffffff empty" and small["bounds min"] == "empty"
    text = node_text(tree, tree.children(tree.children(node)[0])[0])
    assert "0x" in text and text.count("\n") > 10


def test_what_is_no_node_is_named(rng: Any) -> None:
    tree = StructureTree(scene_of(rng))
    far = pack_pointer(1 << 30, 5)
    for ref, named in (
        (NodeRef(0, far), f"0x{far:08x}"),
        (NodeRef(9, 0x15), "BLAS 9"),
        (NodeRef(0, 0x16), "0x00000016"),
        (NodeRef(WHOLE_TLAS, 0x10), "0x00000010"),
        (NodeRef(0, 0x17), "0x00000017"),
    ):
        with pytest.raises(UserError, match=named):
            tree.row(ref)
    with pytest.raises(UserError, match="0xffffffff"):
        tree.offset(NodeRef(0, INVALID_POINTER))


def test_which_nodes_are_there(rng: Any) -> None:
    tree = StructureTree(scene_of(rng))
    for root in tree.roots():
        assert all(tree.holds(ref) for ref, _ in walk(tree, root))
    node = tree.instance_node(0)
    assert node is not None
    (below,) = tree.children(node)
    block = below
    while tree.kind(block) != "Block":
        block = tree.children(block)[-1]
    assert tree.holds(block) and not tree.holds(replace(block, triangle=2))
    for other in (
        replace(block, pointer=block.pointer ^ 1),  # of another type
        replace(block, pointer=block.pointer + 4),  # no node begins there
        replace(below, container=0),  # another instance's BLAS
        replace(below, instance=9),
        NodeRef(9, 0x15),
    ):
        assert not tree.holds(other)


def test_opening_reads_a_few_nodes_only(hall: PreparedScene) -> None:
    """What the tree shows at first must not depend on the scene's size."""

    class Counting(StructureTree):
        reads = 0

        def words(self, ref: NodeRef) -> Any:
            Counting.reads += 1
            return super().words(ref)

    largest = int(np.argmax([stats.triangles for stats in hall.bvh.blas_stats]))
    tree = Counting(hall.bvh)
    root = NodeRef(largest, 0x15)
    shown = [root, *tree.children(root)]
    for ref in shown:
        tree.label(ref)
        tree.row(ref)
    assert Counting.reads < 30
