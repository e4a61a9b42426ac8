"""Which node of the structure each step of a ray was at, and the way from the root to it."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bvh.layout import (
    INSTANCE_BLAS_BASE_WORD,
    INSTANCE_ID_WORD,
    INVALID_POINTER,
    UNIT_BYTES,
    UNIT_WORDS,
)
from bvh.ray_steps import Step
from bvh.scene_bvh import SceneBvh
from treeline.view.view_state import WHOLE_TLAS, NodeRef

U32 = NDArray[np.uint32]
Place = tuple[int, int]  # container and instance of a NodeRef


def step_places(
    steps: Sequence[Step], bvh: SceneBvh, words: U32, start_byte: int = 0
) -> list[Place]:
    """The container and instance that each step is in; `start_byte` names the instance node that
    a log begins inside."""
    outside = (WHOLE_TLAS, -1)
    place = outside
    if start_byte:
        place = _inside(words[start_byte // 4 : start_byte // 4 + 2 * UNIT_WORDS], bvh)
    places = []
    for step in steps:
        if step.kind == "leave":
            place = outside
        places.append(place)
        if step.kind == "instance" and step.hit[0]:
            place = _inside(step.words, bvh)
    return places


def _inside(instance_words: Sequence[int] | U32, bvh: SceneBvh) -> Place:
    base = UNIT_BYTES * int(instance_words[INSTANCE_BLAS_BASE_WORD])
    index = int(np.flatnonzero(bvh.blas_bases == base)[0])
    return index, int(instance_words[INSTANCE_ID_WORD])


def step_node(step: Step, place: Place) -> NodeRef | None:
    """None for the end and for leaving an instance."""
    if step.node == INVALID_POINTER or step.kind in ("leave", "end"):
        return None
    return NodeRef(place[0], step.node, place[1])


def hit_step(steps: Sequence[Step]) -> int:
    """The step that found the ray's hit, -1 where it has none: the last accepted triangle."""
    found = [i for i, step in enumerate(steps) if step.kind == "triangle" and step.hit[1]]
    return found[-1] if found else -1


def path_to(steps: Sequence[Step], places: Sequence[Place], number: int) -> tuple[NodeRef, ...]:
    """Nodes from the first container's root to that of step `number`, as the steps before it met
    them: in the TLAS down to the instance, then in its BLAS."""
    above: dict[NodeRef, NodeRef] = {}
    entered: dict[int, NodeRef] = {}  # instance -> its node in the TLAS
    for step, place, inside in zip(steps, places, [*places[1:], places[-1]], strict=True):
        node = step_node(step, place)
        if node is None:
            continue
        if step.kind == "box":
            above |= {NodeRef(place[0], child, place[1]): node for child in step.children}
        elif step.kind == "instance" and step.hit[0]:
            entered[inside[1]] = node
    node = step_node(steps[number], places[number])
    path: list[NodeRef] = []
    while node is not None:
        path.append(node)
        upper = above.get(node)
        if upper is None and node.container != WHOLE_TLAS:
            upper = entered.get(node.instance)
        node = upper
    return tuple(reversed(path))
