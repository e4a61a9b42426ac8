"""What the contract traversal says about one step of one ray."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bvh import layout
from bvh.contract.box import box_distances
from bvh.contract.cases import Cases
from bvh.contract.intersect import Result, Status, node_blocks
from bvh.contract.memory import GuestMemory
from bvh.contract.pointer import TYPE_MASK, GuestAddress, NodePointer, join


@dataclass(frozen=True, slots=True)
class Step:
    """One instruction. `entry` and `exit` are the distances of a box node's four slots, neither
    clamped nor grown; `extent` the best t before the step. `pushed` are pointers in push order,
    `next` is visited next (0xffffffff: none), `note` says what else happened."""

    ray: int
    instance: int
    node_pointer: NodePointer
    address: GuestAddress
    status: Status
    raw: tuple[int, ...]
    result: tuple[int, ...]
    entry: tuple[float, ...]
    exit: tuple[float, ...]
    extent: float
    note: str
    pushed: tuple[int, ...] = ()
    next: int = layout.INVALID_POINTER
    stack_height: int = 0

    def lines(self) -> list[str]:
        """The step as text: one line, then one a box slot."""
        kind = self.node_pointer & TYPE_MASK
        where = "" if self.instance == layout.INVALID_POINTER else f" in instance {self.instance}"
        words = " ".join(f"{word:08x}" for word in self.result)
        pushed = " ".join(f"{pointer:x}" for pointer in self.pushed) or "nothing"
        following = "none" if self.next == layout.INVALID_POINTER else f"{self.next:x}"
        status = "" if self.status == Status.OK else f" {self.status.name}"
        head = (
            f"node {self.node_pointer:x} ({layout.NODE_NAMES[kind]}{where}) at 0x{self.address:x}"
            f"{status}: {words}; pushed {pushed}; next {following}; stack {self.stack_height}"
            f"{'; ' * bool(self.note)}{self.note}"
        )
        found = [head]
        for slot, (entry, exit_) in enumerate(zip(self.entry, self.exit, strict=True)):
            child = self.raw[slot]
            taken = "empty" if child == layout.INVALID_POINTER else "missed"
            taken = "hit" if child in self.result and taken == "missed" else taken
            span = f"entry {entry:.9g}, exit {exit_:.9g}, extent {self.extent:.9g}"
            found.append(f"    slot {slot}: {child:08x} {taken}: {span}")
        return found


def make_step(
    memory: GuestMemory, one: Cases, ray: int, instance: int, result: Result, note: str
) -> Step:
    """The step of the single instruction `one`, whose result is the single entry of `result`."""
    address, blocks = node_blocks(one)
    status = Status(int(result.status[0]))
    pointer = int(join(one.pointer_low, one.pointer_high)[0])
    raw: NDArray[np.uint32] = np.zeros((1, 2 * layout.UNIT_WORDS), np.uint32)
    if status in (Status.OK, Status.USER_NODE):
        offsets = np.arange(blocks[0], dtype=np.uint64) * np.uint64(layout.UNIT_BYTES)
        words, _ = memory.load_blocks(address + offsets)
        raw[0, : words.size] = words.reshape(-1)
    distances: tuple[Any, Any] = (((),), ((),))
    kind = pointer & TYPE_MASK
    if status == Status.OK and kind > layout.NODE_TRIANGLE_3:
        half = np.array([kind == layout.NODE_BOX_FP16])
        inverse = one.inverse_direction.view(np.float32)
        distances = box_distances(raw, half, one.origin.view(np.float32), inverse)
    return Step(
        ray=ray,
        instance=instance,
        node_pointer=NodePointer(pointer),
        address=GuestAddress(int(address[0])),
        status=status,
        raw=tuple(int(word) for word in raw[0, : layout.UNIT_WORDS * blocks[0]]),
        result=tuple(int(word) for word in result.words[0]),
        entry=tuple(float(value) for value in distances[0][0]),
        exit=tuple(float(value) for value in distances[1][0]),
        extent=float(one.extent.view(np.float32)[0]),
        note=note,
    )
