"""The steps of a ray in the inspector, against the bytes and the slab test in float64."""

from collections import Counter

import numpy as np
import pytest

from bvh.instance_entry import enter_instances
from bvh.layout import INVALID_POINTER
from passes.hybrid import HybridFrame
from treeline.view.pixel_rays import pixel_rays
from treeline.view.ray_walk import RayWalk, slot_text
from treeline.view.view_state import WHOLE_TLAS


@pytest.fixture(scope="module")
def walks(counted: HybridFrame) -> list[RayWalk]:
    pixels = [(52, 34), (20, 20), (41, 19), (5, 30), (30, 25)]
    return [RayWalk(ray) for x, y in pixels for ray in pixel_rays(counted, x, y)]


def object_rays(walk: RayWalk) -> list[tuple[np.ndarray, np.ndarray]]:
    """Origin and direction, float64, in the space of each step."""
    world = walk.ray.origin.astype(np.float64), walk.ray.direction.astype(np.float64)
    words, now, found = walk.ray.traced.bvh.words, world, []
    for step in walk.steps:
        now = world if step.kind == "leave" else now
        found.append(now)
        if step.kind == "instance" and step.hit[0]:
            at = np.array([step.byte_offset // 4])
            entry = enter_instances(words, at, world[0][:, None], world[1][:, None])
            now = entry.origin[:, 0], entry.direction[:, 0]
    return found


def test_why_a_box_was_culled(walks: list[RayWalk]) -> None:
    seen: Counter[str] = Counter()
    for walk in walks:
        for number, (origin, direction) in enumerate(object_rays(walk)):
            step = walk.steps[number]
            if step.kind != "box":
                continue
            for slot, item in enumerate(walk.slots(number)):
                if item.state == "empty":
                    assert step.children[slot] == INVALID_POINTER
                    continue
                with np.errstate(divide="ignore"):
                    planes = (step.boxes[slot].astype(np.float64) - origin) / direction
                near, far = planes.min(axis=0).max(), planes.max(axis=0).min()
                if min(abs(near - far), abs(near - step.t), abs(far)) < 1e-4 * (1 + abs(near)):
                    continue
                expected = "entered"
                if near > far:
                    expected = "missed"
                elif far < 0:
                    expected = "behind the origin"
                elif near > step.t:
                    expected = f"beyond t = {step.t:.6g}"
                assert expected == (item.why or "entered")
                seen[expected.split(" ")[0]] += 1
                if expected == "entered":
                    assert abs(item.entry - max(near, 0)) < 1e-3 * (1 + abs(near))
    assert set(seen) == {"entered", "missed", "behind", "beyond"} and min(seen.values()) > 3


def test_next_child_is_the_next_step(walks: list[RayWalk]) -> None:
    taken = 0
    for walk in walks:
        for number in range(len(walk) - 1):
            if walk.steps[number].kind != "box":
                continue
            slots = walk.slots(number)
            places = sorted(item.place for item in slots if item.place)
            assert places == list(range(1, len(places) + 1))
            for item in slots:
                assert (item.state == "next") == (item.place == 1)
                if item.state == "next":
                    assert walk.steps[number + 1].node == item.pointer
                    taken += 1
                if item.state == "pushed":
                    assert item.pointer in walk.moves[number].pushed
    assert taken > 100


def test_nodes_are_those_of_the_tree(walks: list[RayWalk]) -> None:
    containers = set()
    for walk in walks:
        for number, step in enumerate(walk.steps):
            node = walk.node(number)
            if node is None:
                assert step.kind in ("leave", "end") and walk.facts(number) == []
                continue
            assert tuple(walk.tree.words(node).tolist()) == step.words
            assert walk.tree.offset(node) == step.byte_offset
            containers.add(node.container)
            assert (node.instance >= 0) == (node.container != WHOLE_TLAS)
    assert WHOLE_TLAS in containers and len(containers) > 3


def test_text_tells_every_step(walks: list[RayWalk]) -> None:
    for walk in walks:
        text = walk.text()
        assert text.count("\nstep ") == len(walk) == len(walk.moves)
        assert walk.ray.result in text and f"nodes {walk.counts['nodes']}" in text
        for number, step in enumerate(walk.steps):
            lines = walk.detail(number)
            assert lines[0] == f"step {number + 1} of {len(walk)}: {walk.title(number)}"
            if step.kind == "triangle":
                assert ("hit" in lines[0]) == step.hit[1] or "refused" in lines[0]
                assert "primitive " in lines[2]
            if step.kind == "instance":
                assert "AND the ray's 0xff" in lines[2]
        if walk.ray.hit and not walk.ray.any_hit:
            assert f"primitive {walk.ray.primitive} of" in "".join(walk.detail(walk.hit))
            assert walk.title(walk.hit).endswith(", hit")


def test_slots_in_words(walks: list[RayWalk]) -> None:
    words = {slot_text(s).split(": ")[-1].split(" at ")[0] for w in walks for s in w.slots(0)}
    assert words >= {"entered", "culled, missed"}
