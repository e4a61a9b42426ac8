"""The lazy tree: folding against a model, reveal, keyboard, mouse, and a million nodes."""

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from engine.view import marks
from engine.view.panels.tree import LazyTree


class Heap:
    """A complete tree of `count` nodes with `arity` children each, numbered like a heap; counts
    what it was asked."""

    columns = ("kind",)

    def __init__(self, count: int, arity: int = 4) -> None:
        self.count, self.arity = count, arity
        self.asked = 0

    def roots(self) -> Sequence[int]:
        return [0]

    def children(self, key: int) -> Sequence[int]:
        self.asked += 1
        first = key * self.arity + 1
        return range(min(first, self.count), min(first + self.arity, self.count))

    def has_children(self, key: int) -> bool:
        return key * self.arity + 1 < self.count

    def label(self, key: int) -> str:
        self.asked += 1
        return f"node {key}"

    def cells(self, key: int) -> Sequence[str]:
        return ("box" if self.has_children(key) else "leaf",)

    def path(self, key: int) -> list[int]:
        path = [key]
        while path[-1]:
            path.append((path[-1] - 1) // self.arity)
        return path[::-1]


def model(provider: Heap, opened: set[int]) -> list[tuple[int, int]]:
    """(key, depth) of every row when `opened` nodes are unfolded."""
    rows: list[tuple[int, int]] = []

    def visit(key: int, depth: int) -> None:
        rows.append((key, depth))
        if key in opened:
            for child in provider.children(key):
                visit(child, depth + 1)

    for root in provider.roots():
        visit(root, 0)
    return rows


def selected_path(tree: LazyTree) -> list[Any]:
    """Keys from a root to the selected row, which is found by going up from it and down again."""
    row = 0
    while tree.press("up"):
        row += 1
    for _ in range(row):
        tree.press("down")
    path = [tree.keys[row]]
    for above in range(row - 1, -1, -1):
        if tree.depths[above] == tree.depths[row] - len(path):
            path.append(tree.keys[above])
    return path[::-1]


def rows(tree: LazyTree) -> list[Any]:
    return list(zip(tree.keys, tree.depths, strict=True))


def test_random_folding_equals_the_model(rng: np.random.Generator) -> None:
    provider = Heap(200, 3)
    tree = LazyTree("t", provider)
    opened: set[int] = set()
    tree.press("down")
    for _ in range(300):
        row = int(rng.integers(len(tree.keys)))
        key: Any = tree.keys[row]
        selected = tree.selected
        if key in opened:
            inside = selected != key and key in provider.path(selected)
            tree.collapse(row)
            opened -= {k for k in opened if key in provider.path(k)}
            assert tree.selected == (key if inside else selected)
        elif provider.has_children(key):
            tree.expand(row)
            opened.add(key)
            assert tree.selected == selected
        else:
            tree.reveal(provider.path(key))
        assert rows(tree) == model(provider, opened)
        assert selected_path(tree) == provider.path(tree.selected)


def test_folding_twice_changes_nothing() -> None:
    tree = LazyTree("t", Heap(20))
    tree.expand(0)
    once = rows(tree)
    tree.expand(0)
    assert rows(tree) == once
    tree.collapse(1)
    assert rows(tree) == once


def test_reveal_opens_only_the_path() -> None:
    provider = Heap(1000)
    tree = LazyTree("t", provider)
    path = provider.path(777)
    assert tree.reveal(path)
    assert tree.selected == 777 and selected_path(tree) == path
    assert rows(tree) == model(provider, set(path[:-1]))
    assert not tree.reveal([0, 999_999])
    assert not tree.reveal([5])
    assert not tree.reveal([])
    assert tree.selected == 777


class Shared:
    """Two instances of one BLAS: the same keys below both."""

    columns = ()

    def roots(self) -> Sequence[str]:
        return ["a", "b"]

    def children(self, key: str) -> Sequence[str]:
        return ["blas"] if key in "ab" else ["x", "y"] if key == "blas" else []

    def has_children(self, key: str) -> bool:
        return bool(self.children(key))

    def label(self, key: str) -> str:
        return f"{key}##of it"

    def cells(self, key: str) -> Sequence[str]:
        return ()


def test_reveal_finds_the_place_not_only_the_key() -> None:
    tree = LazyTree("t", Shared())
    assert tree.reveal(["a", "blas", "x"])
    assert tree.reveal(["b", "blas", "y"])
    assert selected_path(tree) == ["b", "blas", "y"]
    assert tree.keys == ["a", "blas", "x", "y", "b", "blas", "x", "y"]
    tree.collapse(0)
    assert not LazyTree("t", Shared()).reveal(["a", "x"]), "x is no child of a"
    assert tree.reveal(["a", "blas", "y"])
    assert selected_path(tree) == ["a", "blas", "y"]


def test_reveal_does_not_take_another_parents_child() -> None:
    provider = Heap(1000)
    tree = LazyTree("t", provider)
    tree.reveal(provider.path(777))
    child_of_2 = 2 * 4 + 1
    tree.reveal([0, 2, child_of_2])
    assert child_of_2 in tree.keys
    assert not tree.reveal([0, 1, child_of_2]), "it stands at the same depth, below a sibling"


def test_keyboard() -> None:
    tree = LazyTree("t", Heap(100, 3))
    assert tree.press("down") and tree.selected == 0
    assert not tree.press("up") and not tree.press("left")
    assert tree.press("right") and tree.selected == 0 and len(tree.keys) == 4, "opens"
    assert tree.press("right") and tree.selected == 1, "then goes in"
    assert tree.press("down") and tree.selected == 2
    assert tree.press("left") and tree.selected == 0, "to the parent"
    assert tree.press("left") and len(tree.keys) == 1, "then closes"
    assert not tree.press("down")
    leaf = LazyTree("t", Heap(1))
    leaf.press("down")
    assert not leaf.press("right")
    empty = LazyTree("t", Shared())
    empty.keys, empty.depths = [], []
    assert not empty.press("down") and empty.selected is None


def test_mouse_and_keys_in_the_window(drive: Callable[..., Any]) -> None:
    tree = LazyTree("t", Heap(1000))
    changed: list[bool] = []
    user = drive(lambda: changed.append(tree.draw()))
    user.click("t.row.0")
    assert tree.selected == 0 and changed.count(True) == 1
    user.press("ArrowRight")
    assert len(tree.keys) == 5
    user.press("ArrowDown")
    assert tree.selected == 1 and changed.count(True) == 2
    user.click("t.arrow.1")
    assert len(tree.keys) == 9 and tree.selected == 1
    user.click("t.arrow.2")
    assert len(tree.keys) == 13 and tree.selected == 1, "opening does not select"
    user.press("ArrowLeft")
    assert len(tree.keys) == 5
    assert "t.arrow.9" not in marks.rectangles


@pytest.mark.parametrize("target", [3, 77_777, 999_999])
def test_reveal_scrolls(drive: Callable[..., Any], target: int) -> None:
    provider = Heap(1_000_000)
    tree = LazyTree("t", provider)
    user = drive(tree.draw)
    for key in provider.path(target)[:-1]:
        tree.expand(tree.keys.index(key))
    for row in range(len(tree.keys) - 1, 0, -1):  # much more above and below
        if tree.depths[row] == 1:
            tree.expand(row)
    tree.reveal(provider.path(target))
    user.frames(3)
    row = tree.keys.index(target)
    _, top, _, bottom = marks.rectangles[f"t.row.{row}"]
    assert 0 < top and bottom < 320


def test_labels_with_hashes_are_shown_whole(drive: Callable[..., Any]) -> None:
    tree = LazyTree("t", Shared())
    with_hashes = drive(tree.draw).window.picture()

    class Plain(Shared):
        def label(self, key: str) -> str:
            return key

    without = drive(LazyTree("t", Plain()).draw).window.picture()
    assert not np.array_equal(with_hashes, without)


def test_a_million_nodes_open_at_once(drive: Callable[..., Any]) -> None:
    provider = Heap(1_000_000)
    begun = time.thread_time()
    tree = LazyTree("t", provider)
    user = drive(tree.draw)
    assert provider.asked < 50
    slowest = 0.0
    path = provider.path(999_999)
    for depth in range(len(path)):
        before = provider.asked
        tree.reveal(path[: depth + 1])
        frame = time.thread_time()
        user.frames()
        slowest = max(slowest, time.thread_time() - frame)
        assert provider.asked - before < 60
    assert slowest < 0.05
    assert time.thread_time() - begun < 2


def test_a_node_with_a_million_children(drive: Callable[..., Any]) -> None:
    tree = LazyTree("t", Heap(1_000_001, 1_000_000))
    user = drive(tree.draw)
    begun = time.thread_time()
    tree.expand(0)
    assert time.thread_time() - begun < 0.5
    begun = time.thread_time()
    user.frames(5)
    assert (time.thread_time() - begun) / 5 < 0.05
    tree.reveal([0, 1_000_000])
    user.frames(3)
    assert "t.row.1000000" in marks.rectangles
