"""One place of a valid buffer, damaged: six kinds, each of several sorts.

Whether a mutation is structural follows from what was changed and never from what `validate` says:
structural means that the bytes no longer say one tree over one set of triangles and instances as
the scene has them. Harmless are wider boxes, other legal rotations, vertices that move inside
their box, and every bit that no reader uses. A harmless mutation may change what a ray hits; it
never makes readers disagree.
"""

from collections.abc import Callable

from bvh.fuzz.damage import Mutation, Rng
from bvh.fuzz.leaf_mutations import (
    flag_fan_table,
    flag_fourth_vertex,
    flag_geometry,
    flag_opaque,
    flag_pair,
    flag_primitive,
    flag_rotation,
    flag_unread,
    flag_vertex,
)
from bvh.fuzz.node_mutations import (
    bounds_bit,
    bounds_excluding,
    bounds_not_finite,
    bounds_of_empty_slot,
    bounds_one_step,
    bounds_swapped,
    bounds_tail,
    bounds_wider,
    pointer_bit,
    pointer_filled,
    pointer_lost,
    pointer_other,
    pointer_parent,
    pointer_parent_link,
    pointer_past_end,
    pointer_random,
    pointer_root,
    pointer_self,
    pointer_swapped,
    tag_child,
)
from bvh.fuzz.record_mutations import (
    descriptor_bit,
    descriptor_bounds,
    instance_matrix,
    instance_other_blas,
    instance_random,
    instance_word,
)
from bvh.fuzz.subjects import Subject

KINDS = ("pointer", "tag", "bounds", "flag", "instance", "descriptor")

Sort = Callable[[Subject, Rng], "Mutation | None"]

SORTS: dict[str, tuple[Sort, ...]] = {
    "pointer": (
        pointer_random,
        pointer_bit,
        pointer_self,
        pointer_root,
        pointer_parent,
        pointer_other,
        pointer_past_end,
        pointer_lost,
        pointer_filled,
        pointer_swapped,
        pointer_parent_link,
    ),
    "tag": (tag_child,),
    "bounds": (
        bounds_not_finite,
        bounds_excluding,
        bounds_one_step,
        bounds_swapped,
        bounds_wider,
        bounds_bit,
        bounds_of_empty_slot,
        bounds_tail,
    ),
    "flag": (
        flag_rotation,
        flag_unread,
        flag_opaque,
        flag_geometry,
        flag_pair,
        flag_primitive,
        flag_vertex,
        flag_fourth_vertex,
        flag_fan_table,
    ),
    "instance": (instance_word, instance_random, instance_other_blas, instance_matrix),
    "descriptor": (descriptor_bit, descriptor_bounds),
}


def mutate(subject: Subject, rng: Rng) -> Mutation:
    """A random mutation that changes at least one bit."""
    while True:
        kind = KINDS[int(rng.integers(len(KINDS)))]
        sorts = SORTS[kind]
        name = sorts[int(rng.integers(len(sorts)))]
        made = name(subject, rng)
        if made is None:
            continue
        buffers = (subject.words, subject.parents)
        if any(int(buffers[b][i]) != value for b, i, value in made.edits):
            return made


def apply(subject: Subject, mutation: Mutation) -> list[tuple[int, int, int]]:
    """Damages the subject in place; gives what `undo` needs."""
    buffers = (subject.words, subject.parents)
    before = [(b, i, int(buffers[b][i])) for b, i, _ in mutation.edits]
    for b, i, value in mutation.edits:
        buffers[b][i] = value
    return before


def undo(subject: Subject, before: list[tuple[int, int, int]]) -> None:
    """Takes `apply` back."""
    buffers = (subject.words, subject.parents)
    for b, i, value in reversed(before):
        buffers[b][i] = value
