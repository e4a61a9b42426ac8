"""What one ray did, step by step, and how two logs of it compare.

The oracle (`oracle_steps`) and the GPU (`bvh.gpu.ray_log`) give the same kind of list. A step has
the node's pointer, its place and its raw words, so that a log can be read against the bytes alone.
Distances are in units of the ray's direction.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bvh import layout
from bvh.decode import node_boxes
from bvh.oracle import Trace, trace
from bvh.rays import Rays

U32 = NDArray[np.uint32]
F32 = NDArray[np.float32]
Index = NDArray[np.int64]

# Two box tests may place an entry differently by this much of the distances that went into it:
# the kernel lowers it by its error bound (2^-22 of origin / direction, see ray_box.wgsl).
ENTRY_TOLERANCE = 2.0**-19
T_TOLERANCE = 2.0**-18  # relative, of a triangle's t: edge weights are rounded differently


@dataclass(frozen=True, slots=True)
class Step:
    """`kind` is box, triangle, instance, leave or end.

    box: `entry` [4] and `hit` [4] of the slots, `follow` the pointers that come next, first to
    last (all but the first are pushed, the first popped if a slot was not entered at all); `t` is
    the limit that entries were tested against. triangle: `slot` is the triangle of the block,
    `hit` (crossed inside the interval, accepted), `t` where, NaN if not. instance: `hit` is
    (entered,). end: `t` of the hit or infinity, `why`. `stack`: entries after a box node, where the
    log tells (the GPU's does), -1 elsewhere. A sphere is two triangle steps: slot 0 where the ray
    enters it, slot 1 where it leaves.
    """

    kind: str
    node: int = layout.INVALID_POINTER
    byte_offset: int = -1
    words: tuple[int, ...] = ()
    entry: tuple[float, ...] = ()
    hit: tuple[bool, ...] = ()
    follow: tuple[int, ...] = ()
    slot: int = 0
    t: float = float("nan")
    why: str = ""
    stack: int = -1

    @property
    def key(self) -> tuple[str, int, int, int]:
        """What makes two steps the same step."""
        return (self.kind, self.node, self.byte_offset, self.slot)

    @property
    def children(self) -> tuple[int, ...]:
        """The four child pointers of a box node."""
        return self.words[: layout.BOX_WIDTH]

    @property
    def boxes(self) -> F32:
        """[4, 2, 3] bounds of a box node's slots, from its raw words."""
        units = np.zeros((2, layout.UNIT_WORDS), np.uint32)
        units.reshape(-1)[: len(self.words)] = self.words
        half = np.array([self.node & 7 == layout.NODE_BOX_FP16])
        return node_boxes(units, np.zeros(1, np.int64), half)[1][0]

    def lines(self) -> list[str]:
        """The step as text, one line and one more for each child of a box node."""
        name = layout.NODE_NAMES[self.node & 7]
        place = f"0x{self.node:08x} {name}, byte {self.byte_offset}"
        if self.kind == "leave":
            return ["leave the instance"]
        if self.kind == "end":
            return [f"end: {self.why}"]
        if self.kind == "instance":
            return [f"{place}: {'entered' if self.hit[0] else 'culled by its mask'}"]
        if self.kind == "triangle":
            crossed, accepted = self.hit
            state = f"t = {self.t:.9g}" if crossed else "no crossing in the interval"
            verdict = "accepted" if accepted else "refused" if crossed else ""
            part = f"triangle {self.slot}"
            if self.node & 7 == layout.NODE_PROCEDURAL:
                part = ("where it enters", "where it leaves")[self.slot]
            return [f"{place}, {part}: {state} {verdict}".rstrip()]
        follow = ", ".join(f"0x{p:08x}" for p in self.follow)
        told = f"next {follow}" if follow else "nothing entered: pop"
        lines = [f"{place}, limit {self.t:.9g}: {told}"]
        for slot, (pointer, box) in enumerate(zip(self.children, self.boxes, strict=True)):
            if pointer == layout.INVALID_POINTER:
                lines.append(f"  slot {slot}: empty")
                continue
            low, high = (" ".join(f"{x:.6g}" for x in bound) for bound in box)
            state = f"entered at {self.entry[slot]:.9g}" if self.hit[slot] else "culled"
            lines.append(f"  slot {slot}: 0x{pointer:08x} [{low}] .. [{high}] {state}")
        return lines


class StepRecorder:
    """A bvh.walk_options.StepLog that keeps the steps of a single ray."""

    def __init__(self, words: U32) -> None:
        self.words = words
        self.steps: list[Step] = []

    def _raw(self, address: Index, node: int) -> tuple[int, ...]:
        count = layout.NODE_BYTES[node & 7] // 4
        return tuple(self.words[int(address[0]) : int(address[0]) + count].tolist())

    def boxes(
        self,
        lanes: Index,
        node: U32,
        address: Index,
        bounds: F32,
        entry: F32,
        hit: NDArray[np.bool_],
        order: U32,
        limit: F32,
    ) -> None:
        pointer = int(node[0])
        self.steps.append(
            Step(
                "box",
                pointer,
                4 * int(address[0]),
                self._raw(address, pointer),
                entry=tuple(entry[:, 0].tolist()),
                hit=tuple(hit[:, 0].tolist()),
                follow=tuple(order[: int(hit.sum()), 0].tolist()),
                t=float(limit[0]),
            )
        )

    def triangles(
        self,
        lanes: Index,
        node: U32,
        address: Index,
        kind: Index,
        t: F32,
        accepted: NDArray[np.bool_],
    ) -> None:
        pointer = int(node[0])
        self.steps.append(
            Step(
                "triangle",
                pointer,
                4 * int(address[0]),
                self._raw(address, pointer),
                hit=(bool(np.isfinite(t[0])), bool(accepted[0])),
                slot=int(kind[0]),
                t=float(t[0]),
            )
        )

    def instances(
        self, lanes: Index, node: U32, address: Index, entered: NDArray[np.bool_]
    ) -> None:
        pointer = int(node[0])
        place, raw = 4 * int(address[0]), self._raw(address, pointer)
        self.steps.append(Step("instance", pointer, place, raw, hit=(bool(entered[0]),)))

    def leave(self, lanes: Index) -> None:
        self.steps.append(Step("leave"))


def oracle_steps(
    words: U32, ray: Rays, *, kernel_order: bool = True, **options: Any
) -> tuple[list[Step], Trace]:
    """The steps of one ray ([1] of RAY) through the oracle, in the order of the fast kernel, and
    its result. `options` are those of `bvh.oracle.trace`."""
    recorder = StepRecorder(words)
    result = trace(words, ray, kernel_order=kernel_order, log=recorder, workers=1, **options)
    recorder.steps.append(end_step(result.t[0], bool(result.overflows[0]), bool(result.invalid[0])))
    return recorder.steps, result


def end_step(t: float, failed: bool, invalid: bool = False) -> Step:
    """The last step of a ray."""
    why = f"hit at t = {t:.9g}" if np.isfinite(t) else "missed: nothing is left on the stack"
    if failed:
        why = "stopped by a cap"
    if invalid:
        why = "refused: no valid ray"
    return Step("end", t=float(t), why=why)


@dataclass(frozen=True, slots=True)
class Difference:
    """`left` and `right` are step numbers, -1 where that log has none; `serious` is false for
    what the kernel's wider boxes explain."""

    left: int
    right: int
    message: str
    serious: bool


def compare_steps(left: Sequence[Step], right: Sequence[Step], ray: Any) -> list[Difference]:
    """How the GPU's log (`left`) differs from the oracle's (`right`) of `ray` (a RAY record).

    Words must be equal, hits too; entries and t within tolerance. Steps that only one has are
    differences as well: serious only where the oracle went and the GPU did not.
    """
    found: list[Difference] = []
    # The two levels have their own rays: the scale of distances changes with them.
    scales = _scales(right, ray)
    matcher = SequenceMatcher(None, [s.key for s in left], [s.key for s in right], autojunk=False)
    for tag, i0, i1, j0, j1 in matcher.get_opcodes():
        if tag == "equal":
            for i, j in zip(range(i0, i1), range(j0, j1), strict=True):
                found += _compare(i, left[i], j, right[j], scales[j])
            continue
        for i in range(i0, i1):
            found.append(Difference(i, -1, f"only on the GPU: {left[i].lines()[0]}", False))
        for j in range(j0, j1):
            found.append(Difference(-1, j, f"only in the oracle: {right[j].lines()[0]}", True))
    return found


def _compare(i: int, a: Step, j: int, b: Step, scale: float) -> list[Difference]:
    def tell(message: str, serious: bool = True) -> Difference:
        return Difference(i, j, f"{a.kind} 0x{a.node:08x}: {message}", serious)

    found = []
    for at, (x, y) in enumerate(zip(a.words, b.words, strict=False)):
        if x != y:
            found.append(tell(f"word {at} is {x:08x} on the GPU, {y:08x} in the buffer"))
    if a.kind == "box":
        for slot in range(layout.BOX_WIDTH):
            if a.hit[slot] != b.hit[slot]:
                who = "the GPU" if a.hit[slot] else "the oracle"
                found.append(tell(f"slot {slot} entered by {who} alone", not a.hit[slot]))
            elif a.hit[slot]:
                off = abs(a.entry[slot] - b.entry[slot])
                if off > ENTRY_TOLERANCE * max(scale, abs(b.entry[slot])):
                    found.append(tell(f"slot {slot}: {a.entry[slot]:.9g}, {b.entry[slot]:.9g}"))
        if not _close(a.t, b.t, scale):
            found.append(tell(f"limit {a.t:.9g} on the GPU, {b.t:.9g} in the oracle"))
        if not found and a.follow != b.follow:
            found.append(tell("the same children in another order", False))
    elif a.hit != b.hit:
        found.append(tell(f"{a.hit} on the GPU, {b.hit} in the oracle"))
    elif a.kind in ("triangle", "end") and np.isfinite(b.t):
        if not _close(a.t, b.t, scale):
            found.append(tell(f"t = {a.t:.9g} on the GPU, {b.t:.9g} in the oracle"))
    elif a.kind == "end" and np.isfinite(a.t) != np.isfinite(b.t):
        found.append(tell(f"{a.why} on the GPU, {b.why} in the oracle"))
    return found


def _close(t: float, expected: float, scale: float) -> bool:
    return abs(t - expected) <= T_TOLERANCE * max(abs(expected), 1e-3 * scale)


def _scales(steps: Sequence[Step], ray: Any) -> list[float]:
    """Of each step, the largest |origin / direction component| of the ray there."""
    origin = np.asarray(ray["origin"], np.float64)
    direction = np.asarray(ray["direction"], np.float64)

    def scale(o: Any, d: Any) -> float:
        used = np.abs(d) > 0
        return float(np.abs(o[used] / d[used]).max()) if used.any() else 0.0

    scales, now = [], scale(origin, direction)
    for step in steps:
        if step.kind == "leave":
            now = scale(origin, direction)
        scales.append(now)
        if step.kind == "instance" and step.hit[0]:
            first = layout.INSTANCE_WORLD_TO_OBJECT_WORD
            raw = np.array(step.words[first : first + 12], np.uint32).view(np.float32)
            m = raw.astype(np.float64).reshape(3, 4)
            now = scale(m[:, :3] @ origin + m[:, 3], m[:, :3] @ direction)
    return scales
