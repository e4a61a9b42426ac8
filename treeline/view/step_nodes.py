"""Which node of the structure each step of a ray was at."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bvh.layout import (
    INSTANCE_BLAS_BASE_WORD,
    INSTANCE_ID_WORD,
    NODE_PROCEDURAL,
    UNIT_BYTES,
    UNIT_WORDS,
)
from bvh.ray_steps import Step
from bvh.scene_bvh import SceneBvh
from treeline.view.node_ref import WHOLE_TLAS, NodeRef

U32 = NDArray[np.uint32]
Place = tuple[int, int]  # container and instance of a NodeRef


def step_places(steps: Sequence[Step], bvh: SceneBvh, start_byte: int = 0) -> list[Place]:
    """The container and instance that each step is in; `start_byte` names the instance node that
    a log begins inside."""
    outside = (WHOLE_TLAS, -1)
    place = outside
    if start_byte:
        place = _inside(bvh.words[start_byte // 4 :][: 2 * UNIT_WORDS], bvh)
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
    """The node, spheres among them, or the triangle of a block; None for the end and for leaving an
    instance."""
    if step.kind in ("leave", "end"):
        return None
    in_block = step.kind == "triangle" and step.node & 7 != NODE_PROCEDURAL
    triangle = step.slot if in_block else -1
    return NodeRef(place[0], step.node, place[1], triangle)


def hit_step(steps: Sequence[Step]) -> int:
    """The step that found the ray's hit, -1 where it has none: the last accepted triangle."""
    found = [i for i, step in enumerate(steps) if step.kind == "triangle" and step.hit[1]]
    return found[-1] if found else -1
