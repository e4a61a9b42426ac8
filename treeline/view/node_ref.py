"""How the viewer names a node of the structure."""

from dataclasses import dataclass

WHOLE_TLAS = -1


@dataclass(frozen=True, slots=True)
class NodeRef:
    """A node of the structure: `container` is WHOLE_TLAS or a BLAS index, `pointer` a node pointer
    relative to that container; `instance` the TLAS instance it was reached through, -1 if none;
    `triangle` one of the triangles of a block, -1 the node itself."""

    container: int
    pointer: int
    instance: int = -1
    triangle: int = -1
