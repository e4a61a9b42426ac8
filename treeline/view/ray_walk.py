"""One ray's steps, ready to be looked at one by one: where each was, what it decided and why."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bvh.box_children import read_children
from bvh.instance_entry import enter_instances
from bvh.layout import (
    BOX_WIDTH,
    INSTANCE_CUSTOM_WORD,
    INSTANCE_MASK_SHIFT,
    INVALID_POINTER,
    NODE_BOX_FP16,
    NODE_NAMES,
    NODE_PROCEDURAL,
)
from bvh.ray_box import flush_components, intersect_boxes, invert_components
from bvh.ray_steps import Step
from bvh.step_stack import LEAVE_INSTANCE, StackMove, count_steps, stack_moves
from treeline.view.node_ref import NodeRef
from treeline.view.pixel_rays import PixelRay, steps
from treeline.view.step_nodes import hit_step, step_node, step_places
from treeline.view.structure_tree import StructureTree

INFINITE = np.float32(np.inf)


@dataclass(frozen=True, slots=True)
class Slot:
    """A child slot of a box node at a step. `state` is next, pushed, culled or empty; `why` says
    why a box was culled; `entry` is NaN where the ray does not enter; `place` counts from 1 in
    the order in which the children are taken, 0: not at all."""

    pointer: int
    kind: str
    entry: float
    state: str
    why: str
    place: int


class RayWalk:
    """The steps of `ray` by the oracle. Everything is made once, when a ray is first looked at."""

    def __init__(self, ray: PixelRay) -> None:
        self.ray = ray
        bvh = ray.traced.bvh
        self.steps: Sequence[Step] = steps(ray)
        self.places = step_places(self.steps, bvh, ray.start_byte)
        self.moves: Sequence[StackMove] = stack_moves(self.steps)
        self.counts = count_steps(self.steps)
        self.hit = hit_step(self.steps)
        self.tree = StructureTree(bvh)
        self._entered = self._instance_nodes()

    def __len__(self) -> int:
        return len(self.steps)

    def _instance_nodes(self) -> list[int]:
        """Of each step the byte of the instance node that it is inside, 0 in the TLAS."""
        inside, found = self.ray.start_byte, []
        for step in self.steps:
            if step.kind == "leave":
                inside = 0
            found.append(inside)
            if step.kind == "instance" and step.hit[0]:
                inside = step.byte_offset
        return found

    def node(self, number: int) -> NodeRef | None:
        return step_node(self.steps[number], self.places[number])

    def title(self, number: int) -> str:
        """The step in a line of a list."""
        step = self.steps[number]
        name = f"0x{step.node:x}"
        if step.kind == "box":
            count = sum(step.hit)
            return f"{_box_name(step.node)} {name}: {count} of {_children(step)} entered"
        if step.kind == "triangle" and step.node & 7 == NODE_PROCEDURAL:
            way = ("enter", "leave")[step.slot]
            return f"sphere {name}, {way}: {self._verdict(step)}"
        if step.kind == "triangle":
            return f"triangle {name}.{step.slot}: {self._verdict(step)}"
        if step.kind == "instance":
            instance = self.places[number + 1][1] if step.hit[0] else -1
            if instance < 0:
                return f"instance {name}: culled by mask"
            return f"instance {name}: enter {instance} {self._instance_name(instance)}"
        return "leave the instance" if step.kind == "leave" else f"end: {step.why}"

    def _instance_name(self, instance: int) -> str:
        return self.ray.traced.bvh.instances[instance].name

    def _verdict(self, step: Step) -> str:
        crossed, accepted = step.hit
        if not crossed:
            return "missed"
        return f"t = {step.t:.6g}, {'hit' if accepted else 'refused'}"

    def slots(self, number: int) -> list[Slot]:
        """The four slots of a box node's step."""
        step = self.steps[number]
        without_limit, behind = self._unlimited(number)
        found = []
        for slot, pointer in enumerate(step.children):
            if pointer == INVALID_POINTER:
                found.append(Slot(pointer, "", float("nan"), "empty", "", 0))
                continue
            kind = NODE_NAMES[pointer & 7]
            if step.hit[slot]:
                place = step.follow.index(pointer) + 1
                state = "next" if place == 1 else "pushed"
                found.append(Slot(pointer, kind, step.entry[slot], state, "", place))
                continue
            why = "missed"
            if without_limit[slot]:
                why = f"beyond t = {step.t:.6g}"
            elif behind[slot]:
                why = "behind the origin"
            found.append(Slot(pointer, kind, float("nan"), "culled", why, 0))
        return found

    def _unlimited(self, number: int) -> tuple[list[bool], list[bool]]:
        """Whether the ray would enter each slot's box without a farthest t, and whether only the
        line through it does."""
        step, record = self.steps[number], self.ray.ray
        words = self.ray.traced.bvh.words
        origin = record["origin"].reshape(3, 1)
        direction = flush_components(record["direction"]).reshape(3, 1)
        inside = self._entered[number]
        with np.errstate(all="ignore"):
            if inside:
                entry = enter_instances(words, np.array([inside // 4]), origin, direction)
                origin, direction = entry.origin, flush_components(entry.direction)
            at = np.array([step.byte_offset // 4])
            _, bounds = read_children(words, at, step.node & 7 == NODE_BOX_FP16)
            inverse, far = invert_components(direction), np.array([INFINITE])
            near = np.array([record["t_min"]])
            _, ahead = intersect_boxes(bounds, origin, inverse, near, far)
            _, line = intersect_boxes(bounds, origin, inverse, -far, far)
        return ahead[:, 0].tolist(), line[:, 0].tolist()

    def detail(self, number: int) -> list[str]:
        """The step in full, as text."""
        step = self.steps[number]
        lines = [f"step {number + 1} of {len(self)}: {self.title(number)}"]
        if step.kind == "box":
            for slot, item in enumerate(self.slots(number)):
                lines.append(f"  slot {slot}: {slot_text(item)}")
                if item.state != "empty":
                    low, high = step.boxes[slot]
                    lines.append(f"    [{numbers(low)}] to [{numbers(high)}]")
        return [*lines, *(f"  {line}" for line in self.facts(number)), *self._stack(number)]

    def _stack(self, number: int) -> list[str]:
        return [f"  {line}" for line in stack_lines(self.moves[number])]

    def facts(self, number: int) -> list[str]:
        """Where the node is and what the step was decided by."""
        step, node = self.steps[number], self.node(number)
        if node is None:
            return []
        lines = [f"{NODE_NAMES[step.node & 7]}, byte {step.byte_offset}"]
        if step.kind == "box":
            lines[0] += f", entries up to t = {distance(step.t)}"
        elif step.kind == "triangle":
            if step.node & 7 == NODE_PROCEDURAL:
                sphere, at = self.tree.sphere(node), 0
                held = (sphere.opaque, sphere.primitive, sphere.geometry)
            else:
                rows, at = self.tree.triangles(node), step.slot
                held = (rows.opaque, rows.primitive, rows.geometry)
            opaque = "opaque" if held[0][at] else "not opaque"
            primitive, geometry = int(held[1][at]), int(held[2][at])
            lines.append(f"primitive {primitive} of geometry {geometry}, {opaque}")
        else:
            own = step.words[INSTANCE_CUSTOM_WORD] >> INSTANCE_MASK_SHIFT
            mask = int(self.ray.constants["RAY_MASK"])
            lines.append(f"mask 0x{own:02x} AND the ray's 0x{mask:02x} is 0x{own & mask:02x}")
        return lines

    def text(self) -> str:
        """The whole log, to be pasted elsewhere."""
        ray = self.ray
        lines = [
            f"{ray.kind}: {ray.result}",
            f"origin {numbers(ray.origin)}, direction {numbers(ray.direction)}",
            f"t_min {float(ray.ray['t_min']):g}, t_max {distance(ray.t_max)}, "
            f"mask 0x{int(ray.constants['RAY_MASK']):02x}",
            ", ".join(f"{name} {count}" for name, count in self.counts.items()),
            "",
        ]
        for number in range(len(self)):
            lines += self.detail(number)
        return "\n".join(lines) + "\n"


def slot_text(slot: Slot) -> str:
    """A slot in a line."""
    if slot.state == "empty":
        return "empty"
    name = f"0x{slot.pointer:x} {slot.kind}"
    if slot.state == "culled":
        return f"{name}: culled, {slot.why}"
    order = ("next", "pushed, 2nd", "pushed, 3rd", "pushed, 4th")[slot.place - 1]
    return f"{name}: entered at t = {slot.entry:.6g}, {order}"


def stack_lines(move: StackMove) -> list[str]:
    """What a step did to the stack, and what is on it."""
    lines = []
    if move.pushed:
        lines.append("push " + ", ".join(map(pointer_text, move.pushed)))
    if move.popped is not None:
        lines.append(f"pop {pointer_text(move.popped)}")
    count = len(move.entries)
    lines.append(f"stack: {count} {'entry' if count == 1 else 'entries'}")
    return lines


def pointer_text(pointer: int) -> str:
    return "leave instance" if pointer == LEAVE_INSTANCE else f"0x{pointer:x}"


def _box_name(pointer: int) -> str:
    return "Box16" if pointer & 7 == NODE_BOX_FP16 else "Box32"


def _children(step: Step) -> int:
    return BOX_WIDTH - step.children.count(INVALID_POINTER)


def distance(t: float) -> str:
    """The largest float32 is what a kernel takes for infinity."""
    return "infinity" if t >= 3.4e38 else f"{t:.6g}"


def numbers(values: object) -> str:
    return " ".join(f"{float(value):.6g}" for value in np.asarray(values).reshape(-1))
