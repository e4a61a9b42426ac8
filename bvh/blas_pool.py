"""Handles of BLASes that are rebuilt, compacted and freed while TLASes name them.

An index or an address says where bytes are, not which: after a rebuild the same slot holds another
tree, and a TLAS made for the old one reads the new one without a complaint. A handle therefore
carries the generation of what it was given for; every change of a slot starts a new generation
and makes older handles stale. `assemble` takes handles in place of BLASes and refuses stale ones.

The pool owns BLASes on the CPU; nothing is copied before `assemble` lays a scene out.
"""

from dataclasses import dataclass

from bvh.build import Blas
from engine.gpu.errors import UserError


@dataclass(frozen=True, slots=True)
class BlasIdentity:
    """Which bytes these are. `allocation` never comes back once it is freed; `generation` counts
    the owners of the bytes' place, `content_version` what was built into it: compaction moves
    the same content, so it changes the first of the two alone."""

    allocation: int
    generation: int = 0
    content_version: int = 0


@dataclass(slots=True)
class _Slot:
    name: str
    blas: Blas | None
    identity: BlasIdentity
    last_change: str


@dataclass(frozen=True, slots=True)
class BlasHandle:
    """A BLAS of a pool as it was when the handle was given out."""

    pool: "BlasPool"
    allocation: int
    generation: int

    def resolve(self) -> tuple[Blas, BlasIdentity]:
        """The BLAS; a UserError that names it where the handle is stale."""
        return self.pool.resolve(self)


class BlasPool:
    """Gives handles out and says which are still good."""

    def __init__(self) -> None:
        self._slots: list[_Slot] = []

    def add(self, name: str, blas: Blas) -> BlasHandle:
        """A new allocation."""
        number = len(self._slots)
        self._slots.append(_Slot(name, blas, BlasIdentity(number), "built"))
        return BlasHandle(self, number, 0)

    def rebuild(self, handle: BlasHandle, blas: Blas) -> BlasHandle:
        """Other content in the same allocation (a refit is one, too); `handle` becomes stale."""
        return self._renew(handle, blas, "rebuilt", 1)

    def compact(self, handle: BlasHandle, blas: Blas) -> BlasHandle:
        """The same content in other bytes; `handle` becomes stale."""
        return self._renew(handle, blas, "compacted", 0)

    def free(self, handle: BlasHandle) -> None:
        """Ends the allocation: no handle of it is good again."""
        self._renew(handle, None, "freed", 0)

    def resolve(self, handle: BlasHandle) -> tuple[Blas, BlasIdentity]:
        """The BLAS of a handle and its identity; UserError for a stale or foreign one."""
        if handle.pool is not self or not 0 <= handle.allocation < len(self._slots):
            raise UserError(f"BLAS handle {handle.allocation} belongs to another pool")
        slot = self._slots[handle.allocation]
        if slot.blas is None or handle.generation != slot.identity.generation:
            raise UserError(
                f"BLAS '{slot.name}' was {slot.last_change}: this handle is of generation "
                f"{handle.generation}, the BLAS of {slot.identity.generation}"
            )
        return slot.blas, slot.identity

    def _renew(
        self, handle: BlasHandle, blas: Blas | None, change: str, content: int
    ) -> BlasHandle:
        self.resolve(handle)
        slot = self._slots[handle.allocation]
        slot.identity = BlasIdentity(
            handle.allocation,
            slot.identity.generation + 1,
            slot.identity.content_version + content,
        )
        slot.blas, slot.last_change = blas, change
        return BlasHandle(self, handle.allocation, slot.identity.generation)
