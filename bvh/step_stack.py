"""The traversal stack that a log of steps implies, and what the steps add up to.

The kernel's rules (bvh/shaders/traverse.wgsl): of the children that a ray enters the first is next
and the others are pushed; an instance that is entered pushes a mark to leave it by; a step that
leads nowhere pops.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from bvh.layout import INVALID_POINTER
from bvh.ray_steps import Step

LEAVE_INSTANCE = 0xFFFFFFF7  # the mark, as in bvh/shaders/traversal.wgsl


@dataclass(frozen=True, slots=True)
class StackMove:
    """What one step did to the stack: the pointers pushed, first to last, the one popped to go on
    with, and all entries afterwards, the top last."""

    pushed: tuple[int, ...]
    popped: int | None
    entries: tuple[int, ...]


def stack_moves(steps: Sequence[Step]) -> list[StackMove]:
    """One move a step. `steps` may begin in a BLAS, as where the kernel skips the TLAS."""
    moves = []
    stack: list[int] = []
    for number, step in enumerate(steps):
        following = steps[number + 1] if number + 1 < len(steps) else None
        pushed: tuple[int, ...] = ()
        pops = step.kind == "leave"
        if step.kind == "box":
            pushed = tuple(reversed(step.follow[1:]))
            pops = not step.follow
        elif step.kind == "instance":
            pushed = (LEAVE_INSTANCE,) if step.hit[0] else ()
            pops = not step.hit[0]
        elif step.kind == "triangle":
            # A block's triangles are tested one after the other; what is accepted by an any-hit
            # ray ends it, and nothing is popped any more.
            same = following is not None and (following.kind, following.byte_offset) == (
                "triangle",
                step.byte_offset,
            )
            done = following is None or (following.kind == "end" and bool(stack))
            pops = not same and not done
        stack += pushed
        popped = stack.pop() if pops and stack else None
        moves.append(StackMove(pushed, popped, tuple(stack)))
    return moves


def count_steps(steps: Sequence[Step]) -> dict[str, int]:
    """The counters (bvh/counters.py) that steps tell: nodes, box_tests, box_hits, triangle_tests,
    triangle_hits, instance_hits and stack_max. Triangles that face culling dropped count as hits
    in an oracle's steps."""
    boxes = [step for step in steps if step.kind == "box"]
    triangles = [step for step in steps if step.kind == "triangle"]
    moves = stack_moves(steps)
    return {
        "nodes": len(boxes),
        "box_tests": sum(child != INVALID_POINTER for box in boxes for child in box.children),
        "box_hits": sum(sum(box.hit) for box in boxes),
        "triangle_tests": len(triangles),
        "triangle_hits": sum(step.hit[0] for step in triangles),
        "instance_hits": sum(step.kind == "instance" and step.hit[0] for step in steps),
        "stack_max": max(
            (
                len(move.entries)
                for step, move in zip(steps, moves, strict=True)
                if step.kind == "box" and step.follow
            ),
            default=0,
        ),
    }
