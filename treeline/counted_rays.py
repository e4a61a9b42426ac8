"""What each ray of a counted frame did, so that two frames can be compared ray by ray.

A ray is the same one in two frames if it has the same slot and starts alike. A switch that sends
fewer rays, or that has others end elsewhere, then says nothing about what the rest of them visit.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from passes.frame_data import FrameData
from passes.rays import RayType

# Trees list a triangle's vertices in another order: what is computed from a hit moves by rounding.
RELATIVE, METRES = 1e-4, 1e-4
PACKED_STEPS = 2  # of 16-bit values that are packed by twos

Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class TypeRays:
    """One ray type, arrays over its slots. `floats` [slots, fields] and `words` hold the records
    but their slots, zeros where no ray was sent. `parents` names, for each slot of a pixel, what
    its ray starts at."""

    parents: tuple[str, ...]
    sent: Bools
    floats: NDArray[np.float32]
    words: NDArray[np.uint32]
    nodes: NDArray[np.uint32]
    any_hits: NDArray[np.uint32]

    def by_pixel(self, values: NDArray[Any]) -> NDArray[Any]:
        """[pixels, slots a pixel]."""
        return values.reshape(-1, len(self.parents))


@dataclass(frozen=True, slots=True)
class CountedRays:
    """`depth` [pixels] in metres of what is seen first, inf where nothing is."""

    depth: NDArray[np.float32]
    types: Mapping[str, TypeRays]
    layout_bytes: int

    def kinds(self) -> dict[tuple[str, int], int]:
        """Rays by type and slot of a pixel's."""
        return {
            (name, kind): int(count)
            for name, rays in self.types.items()
            for kind, count in enumerate(rays.by_pixel(rays.sent).sum(axis=0))
        }


_NOTHING = np.zeros(0, np.uint32)
NO_RAYS = TypeRays(
    (), _NOTHING.astype(bool), np.zeros((0, 1), np.float32), _NOTHING[:, None], _NOTHING, _NOTHING
)


def read_counted(data: FrameData, layout_bytes: int) -> CountedRays:
    """Of the last frame, which counted; waits."""
    depth = data.read_texture("depth").reshape(-1)
    return CountedRays(depth, {ray.name: _read(data, ray) for ray in data.rays}, layout_bytes)


def _read(data: FrameData, ray: RayType) -> TypeRays:
    records = data.read_records(ray)
    slots = records[ray.slot_field]
    columns: dict[str, list[Any]] = {"f": [], "u": []}
    for name in records.dtype.names or ():
        if name != ray.slot_field:
            column = records[name].reshape(len(records), records.dtype[name].itemsize // 4)
            columns["f" if column.dtype.kind == "f" else "u"].append(column)
    count = data.pixels * ray.slots_per_pixel

    def spread(parts: list[Any], dtype: type) -> NDArray[Any]:
        table = np.zeros((count, sum(part.shape[1] for part in parts)), dtype)
        if parts:
            table[slots] = np.concatenate(parts, axis=1)
        return table

    sent = np.zeros(count, bool)
    sent[slots] = True
    return TypeRays(
        parents=ray.starts_at,
        sent=sent,
        floats=spread(columns["f"], np.float32),
        words=spread(columns["u"], np.uint32),
        nodes=data.read_slot_counts(ray, "nodes"),
        any_hits=data.read_slot_counts(ray, "any_hits"),
    )


def same_rays(on: TypeRays, off: TypeRays) -> Bools:
    """[slots] whether both frames send the ray."""
    same = on.sent & off.sent
    if not same.any():
        return same
    same &= np.isclose(on.floats, off.floats, RELATIVE, METRES).all(axis=1)
    halves = ((on.words & 0xFFFF, off.words & 0xFFFF), (on.words >> 16, off.words >> 16))
    for first, second in halves:
        steps = np.abs(first.astype(np.int64) - second.astype(np.int64))
        same &= (np.minimum(steps, 0x10000 - steps) <= PACKED_STEPS).all(axis=1)
    return same


def aligned(on: CountedRays, off: CountedRays) -> tuple[CountedRays, CountedRays]:
    """Both with the same ray types and slots: the n-th slot that starts at something is the same
    slot in both frames, and one that a frame does not have sends nothing there."""
    parents = {
        name: _all_slots(*(frame.types[name].parents for frame in (on, off) if name in frame.types))
        for name in dict.fromkeys([*on.types, *off.types])
    }
    return _laid_out(on, parents), _laid_out(off, parents)


def _all_slots(*layouts: tuple[str, ...]) -> tuple[str, ...]:
    """What the slots of a pixel start at, those of every layout."""
    names = dict.fromkeys(parent for layout in layouts for parent in layout)
    return tuple(n for n in names for _ in range(max(layout.count(n) for layout in layouts)))


def _laid_out(frame: CountedRays, parents: Mapping[str, tuple[str, ...]]) -> CountedRays:
    types = {}
    for name, slots in parents.items():
        rays = frame.types.get(name, NO_RAYS)
        if rays.parents != slots:
            rays = _moved(rays, slots, len(frame.depth))
        types[name] = rays
    return replace(frame, types=types)


def _moved(rays: TypeRays, parents: tuple[str, ...], pixels: int) -> TypeRays:
    """The same rays in the slots of another layout."""
    free = list(range(len(parents)))
    places = []
    for parent in rays.parents:
        places.append(next(i for i in free if parents[i] == parent))
        free.remove(places[-1])

    def move(values: NDArray[Any]) -> NDArray[Any]:
        shape = (pixels, len(parents), *values.shape[1:])
        moved = np.zeros(shape, values.dtype)
        moved[:, places] = values.reshape(pixels, len(places), *values.shape[1:])
        return moved.reshape(-1, *values.shape[1:])

    arrays = (rays.sent, rays.floats, rays.words, rays.nodes, rays.any_hits)
    return TypeRays(parents, *map(move, arrays))


def same_parents(on: CountedRays, off: CountedRays, name: str) -> Bools:
    """[slots] of type `name` in two `aligned` frames: whether what the slot's ray starts at, if it
    is sent, is the same in both: the surface that the pixel sees, or a ray that both send and that
    asks as many candidates whether they are there, so that it finds the same hit."""
    columns = []
    parents = on.types[name].parents
    for slot, parent in enumerate(parents):
        if parent not in on.types:  # the primary ray
            nothing = np.isinf(on.depth) & np.isinf(off.depth)
            columns.append(nothing | np.isclose(on.depth, off.depth, RELATIVE, METRES))
            continue
        before, after = on.types[parent], off.types[parent]
        number = parents[:slot].count(parent)
        if parent != name:  # several of ours may start at each of theirs
            number = number * len(before.parents) // parents.count(parent)
        same = same_rays(before, after) & (before.any_hits == after.any_hits)
        columns.append(before.by_pixel(same)[:, number])
    return np.stack(columns, axis=1).reshape(-1)
