"""One mutation, and what the sorts of mutations are made with: a random place, a bound's bits."""

from dataclasses import dataclass

import numpy as np

from bvh import layout
from bvh.fuzz.container_map import ContainerMap
from bvh.fuzz.subjects import Subject

WORDS, PARENTS = 0, 1  # which buffer an edit is of
ANY_WORD = 1 << 32

Rng = np.random.Generator


@dataclass(frozen=True, slots=True)
class Mutation:
    """`edits` are (WORDS or PARENTS, index, new word); `focus` is the word where the damaged
    record starts; `moved` (container, block) is set when a harmless edit moves a vertex."""

    kind: str
    sort: str
    structural: bool
    edits: tuple[tuple[int, int, int], ...]
    focus: int
    moved: tuple[int, int] | None = None

    def __str__(self) -> str:
        names = ("words", "parents")
        edits = ", ".join(f"{names[b]}[{i}] = 0x{value:08x}" for b, i, value in self.edits)
        return f"{self.kind}/{self.sort}: {edits}"


def bits(value: object) -> int:
    """The word of a float32."""
    return int(np.array([value], np.float32).view(np.uint32)[0])


def random_container(s: Subject, rng: Rng) -> ContainerMap:
    return s.containers[int(rng.integers(len(s.containers)))]


def random_slot(
    s: Subject, rng: Rng, used: bool = True
) -> tuple[ContainerMap, int, int, int] | None:
    """(container, node, slot, word of its pointer) of a random slot that holds a child or not."""
    c = random_container(s, rng)
    words = c.node_word[:, None] + np.arange(4)
    held = s.words[words] != layout.INVALID_POINTER
    nodes, slots = np.nonzero(held == used)
    if not len(nodes):
        return None
    i = int(rng.integers(len(nodes)))
    return c, int(nodes[i]), int(slots[i]), int(words[nodes[i], slots[i]])


def bound_place(c: ContainerMap, node: int, slot: int, side: int, axis: int) -> tuple[int, int]:
    """(word, shift) of one bound; the shift is 0 or 16 in FP16 nodes."""
    first = int(c.node_word[node]) + layout.BOX_BOUNDS_WORD
    place = 6 * slot + 3 * side + axis
    if c.node_half[node]:
        return first + place // 2, 16 * (place % 2)
    return first + place, 0


def bound_edit(
    s: Subject, c: ContainerMap, at: tuple[int, int, int, int], value: np.float32 | int
) -> tuple[int, int, int]:
    """Sets one bound (node, slot, side, axis) to a float (FP16: rounded outward) or to raw bits."""
    node, slot, side, axis = at
    word, shift = bound_place(c, node, slot, side, axis)
    if not c.node_half[node]:
        return (WORDS, word, value if isinstance(value, int) else bits(value))
    if not isinstance(value, int):
        low, high = layout.round_half_outward(*np.full((2, 1), value, np.float32))
        value = int((high if side else low)[0])
    kept = int(s.words[word]) & ~(0xFFFF << shift)
    return (WORDS, word, kept | value << shift)


def read_bound(s: Subject, c: ContainerMap, at: tuple[int, int, int, int]) -> np.float32:
    word, shift = bound_place(c, *at)
    raw = int(s.words[word])
    if c.node_half[at[0]]:
        return np.float32(np.array([raw >> shift & 0xFFFF], np.uint16).view(np.float16)[0])
    return np.float32(np.array([raw], np.uint32).view(np.float32)[0])
