"""A scene buffer as a tree that is read node by node: TLAS, instances, BLAS, boxes, blocks,
triangles.

A million-triangle BLAS opens at once, because only the nodes that are looked at are decoded.
Boxes are those stored in the parent's slot; a root's is its header's. What is no node of the
buffer is a UserError that names the pointer.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from bvh.decode import TriangleRows, decode_triangles, node_boxes
from bvh.fan_blocks import find_fan_rows
from bvh.header import Header, unpack_header
from bvh.layout import (
    BOX_WIDTH,
    FAN_ROW_WORDS,
    INSTANCE_BLAS_BASE_WORD,
    INSTANCE_ID_WORD,
    INSTANCE_OBJECT_TO_WORLD_WORD,
    INVALID_POINTER,
    NODE_BOX_FP16,
    NODE_BOX_FP32,
    NODE_BYTES,
    NODE_INSTANCE,
    NODE_PROCEDURAL,
    NODE_TRIANGLE_2,
    NODE_TRIANGLE_3,
    ROOT_POINTER,
    UNIT_BYTES,
    UNIT_WORDS,
    pack_pointer,
    unpack_pointer,
)
from bvh.scene_bvh import SceneBvh
from bvh.spheres import SphereRows, decode_spheres
from bvh.tree import half_area
from engine.gpu.errors import UserError
from treeline.view.node_ref import WHOLE_TLAS, NodeRef

F32 = NDArray[np.float32]
U32 = NDArray[np.uint32]

# Kinds as the Radeon Raytracing Analyzer names them; a block is the bytes of its triangles.
BOX_32, BOX_16, BLOCK, TRIANGLE, INSTANCE = "Box32", "Box16", "Block", "Triangle", "Instance"
SPHERE = "Sphere"
TLAS_ROOT = NodeRef(WHOLE_TLAS, ROOT_POINTER)


@dataclass(frozen=True, slots=True)
class NodeRow:
    """What a table says of a node. `offset` is its byte in the scene buffer, `pointer` counts from
    its container and `pointer_64` from the scene buffer, as an instance's BLAS pointer does.
    `parent` is INVALID_POINTER above a root. `level` counts from the container's root."""

    kind: str
    offset: int
    pointer: int
    pointer_64: int
    parent: int
    level: int
    children: int
    half_area: float


class StructureTree:
    """Reads `bvh`; keeps nothing of it but headers."""

    def __init__(self, bvh: SceneBvh) -> None:
        self.bvh = bvh
        self.units = bvh.words.reshape(-1, UNIT_WORDS)
        self._headers: dict[int, Header] = {}
        self._blas_of_base = {int(base): i for i, base in enumerate(bvh.blas_bases)}

    # -- what a lazy tree asks for ---------------------------------------------------------------

    def roots(self) -> Sequence[NodeRef]:
        """The TLAS, then every BLAS on its own."""
        count = len(self.bvh.blas_bases)
        return [TLAS_ROOT, *(NodeRef(index, ROOT_POINTER) for index in range(count))]

    def children(self, ref: NodeRef) -> tuple[NodeRef, ...]:
        """The nodes below, in slot order; empty slots are left out."""
        kind = self.kind(ref)
        if kind in (BOX_16, BOX_32):
            pointers = self.words(ref)[:BOX_WIDTH].tolist()
            return tuple(replace(ref, pointer=p) for p in pointers if p != INVALID_POINTER)
        if kind == INSTANCE:
            return (NodeRef(self.blas_of(ref), ROOT_POINTER, self.instance_of(ref)),)
        if kind == BLOCK:
            return tuple(replace(ref, triangle=k) for k in range((ref.pointer & 7) + 1))
        return ()

    def label(self, ref: NodeRef) -> str:
        """What the tree shows of a node: its kind and what tells it from its siblings."""
        kind = self.kind(ref)
        if ref.pointer == ROOT_POINTER and ref.container == WHOLE_TLAS:
            return "TLAS"
        if ref.pointer == ROOT_POINTER:
            return f"BLAS {ref.container} {self.bvh.blas_names[ref.container]}"
        if kind == SPHERE:
            return f"{kind} {int(self.sphere(ref).primitive[0])}"
        if kind == INSTANCE:
            number = self.instance_of(ref)
            return f"{kind} {number} {self.bvh.instances[number].name}".rstrip()
        if kind == TRIANGLE:
            return f"{kind} {int(self.triangles(ref).primitive[ref.triangle])}"
        if kind == BLOCK:
            return f"{kind} of {(ref.pointer & 7) + 1}"
        return kind

    def row(self, ref: NodeRef) -> NodeRow:
        """A table's cells of a node."""
        offset = self.offset(ref)
        return NodeRow(
            kind=self.kind(ref),
            offset=offset,
            pointer=ref.pointer,
            pointer_64=pack_pointer(offset, ref.pointer & 7),
            parent=self.parent_pointer(ref),
            level=len(self.path_in_container(ref)) - 1,
            children=len(self.children(ref)),
            half_area=float(half_area(self.box(ref))),
        )

    # -- one node --------------------------------------------------------------------------------

    def kind(self, ref: NodeRef) -> str:
        """One of the kinds above, from the pointer and what its container's leaves are."""
        kind = ref.pointer & 7
        if kind == NODE_BOX_FP32:
            return BOX_32
        if kind == NODE_BOX_FP16:
            return BOX_16
        if ref.container == WHOLE_TLAS:
            if kind == NODE_INSTANCE:
                return INSTANCE
        elif self.header(ref.container).sphere_count:
            if kind == NODE_PROCEDURAL:
                return SPHERE
        elif kind <= NODE_TRIANGLE_3:
            return BLOCK if ref.triangle < 0 else TRIANGLE
        raise UserError(f"node pointer 0x{ref.pointer:08x}: no node of type {kind} is here")

    def base(self, container: int) -> int:
        """Byte of the scene buffer where a container starts."""
        if container == WHOLE_TLAS:
            return 0
        if not 0 <= container < len(self.bvh.blas_bases):
            raise UserError(f"no BLAS {container}, there are {len(self.bvh.blas_bases)}")
        return int(self.bvh.blas_bases[container])

    def header(self, container: int) -> Header:
        if container not in self._headers:
            self._headers[container] = unpack_header(self.bvh.words[self.base(container) // 4 :])
        return self._headers[container]

    def offset(self, ref: NodeRef) -> int:
        """Byte of the scene buffer where the node starts."""
        offset, kind = unpack_pointer(ref.pointer)
        if offset + NODE_BYTES[kind] > self.header(ref.container).size_bytes:
            raise UserError(f"node pointer 0x{ref.pointer:08x} lies outside its container")
        return self.base(ref.container) + offset

    def words(self, ref: NodeRef) -> U32:
        """The node's raw words, a view: 16 or 32."""
        first = self.offset(ref) // 4
        return self.bvh.words[first : first + NODE_BYTES[ref.pointer & 7] // 4]

    def slot_boxes(self, ref: NodeRef) -> tuple[U32, F32]:
        """(pointers [4], boxes [4, 2, 3]) of a box node; NaN in empty slots."""
        at = np.array([self.offset(ref) // UNIT_BYTES])
        half = np.array([ref.pointer & 7 == NODE_BOX_FP16])
        pointers, boxes = node_boxes(self.units, at, half)
        return pointers[0], boxes[0]

    def sphere(self, ref: NodeRef) -> SphereRows:
        """The one row of a sphere's node."""
        return decode_spheres(self.words(ref)[None])

    def triangles(self, ref: NodeRef) -> TriangleRows:
        """All triangles of the block that `ref` is, or is in; none of a sphere."""
        kind = ref.pointer & 7
        ids = None
        if NODE_TRIANGLE_2 <= kind <= NODE_TRIANGLE_3:
            base = np.array([self.base(ref.container) // 4])
            row = int(find_fan_rows(self.bvh.words, base, np.array([self.offset(ref) // 4]))[0])
            ids = self.bvh.words[row : row + FAN_ROW_WORDS][None] if row >= 0 else None
        return decode_triangles(self.words(ref)[None], np.array([kind], np.uint8), ids)

    def box(self, ref: NodeRef) -> F32:
        """[2, 3] in the container's space; min +inf and max -inf when empty."""
        if ref.triangle >= 0:
            corners = self.triangles(ref).positions[ref.triangle]
            return np.stack([corners.min(axis=0), corners.max(axis=0)])
        parent = self.parent_pointer(ref)
        if parent == INVALID_POINTER:
            return self.header(ref.container).bounds
        pointers, boxes = self.slot_boxes(replace(ref, pointer=parent))
        slots = np.flatnonzero(pointers == ref.pointer)
        if not len(slots):
            raise UserError(f"node pointer 0x{ref.pointer:08x} is in no slot of its parent")
        return np.asarray(boxes[slots[0]])

    # -- instances -------------------------------------------------------------------------------

    @cached_property
    def _instance_pointers(self) -> dict[int, int]:
        """Node pointer by instance id. Instances of an empty BLAS have no node."""
        header = self.header(WHOLE_TLAS)
        size = NODE_BYTES[NODE_INSTANCE] // UNIT_BYTES
        at = header.leaf_unit + size * np.arange(header.leaf_count)
        ids = self.units[at + INSTANCE_ID_WORD // UNIT_WORDS, INSTANCE_ID_WORD % UNIT_WORDS]
        pointers = pack_pointer(at * UNIT_BYTES, NODE_INSTANCE)
        return dict(zip(ids.tolist(), pointers.tolist(), strict=True))

    def instance_node(self, instance: int) -> NodeRef | None:
        """The TLAS node of an instance, None where it has none."""
        pointer = self._instance_pointers.get(instance)
        return None if pointer is None else NodeRef(WHOLE_TLAS, pointer)

    def instance_of(self, ref: NodeRef) -> int:
        """The instance that a node is, or was reached through; -1 if none."""
        if ref.container == WHOLE_TLAS and ref.pointer & 7 == NODE_INSTANCE:
            return int(self.words(ref)[INSTANCE_ID_WORD])
        return ref.instance

    def blas_of(self, ref: NodeRef) -> int:
        """The BLAS that an instance node places."""
        base = int(self.words(ref)[INSTANCE_BLAS_BASE_WORD]) * UNIT_BYTES
        if base not in self._blas_of_base:
            raise UserError(f"instance at byte {self.offset(ref)}: no BLAS starts at byte {base}")
        return self._blas_of_base[base]

    def transform(self, instance: int) -> F32:
        """[3, 4] object to world; the identity for -1 and for instances without a node."""
        ref = self.instance_node(instance)
        if ref is None:
            return np.eye(3, 4, dtype=np.float32)
        first = INSTANCE_OBJECT_TO_WORLD_WORD
        return self.words(ref)[first : first + 12].view(np.float32).reshape(3, 4)

    def world_box(self, ref: NodeRef) -> F32:
        """[2, 3] around the node's box in the world. A BLAS that was reached through no instance
        stays in its own space."""
        box = self.box(ref)
        if ref.instance < 0 or not np.isfinite(box).all():
            return box
        matrix = self.transform(ref.instance)
        middle = matrix[:, :3] @ (0.5 * (box[0] + box[1])) + matrix[:, 3]
        reach = np.abs(matrix[:, :3]) @ (0.5 * (box[1] - box[0]))
        return np.stack([middle - reach, middle + reach])

    # -- upward ----------------------------------------------------------------------------------

    def parent_pointer(self, ref: NodeRef) -> int:
        """The box node above, INVALID_POINTER above a root, by the parent links. A triangle's is
        that of its block."""
        return int(self.bvh.parents[self.offset(ref) // UNIT_BYTES])

    def parent(self, ref: NodeRef) -> NodeRef | None:
        """The node above: a triangle's block, a box node, or the instance that placed a BLAS."""
        if ref.triangle >= 0:
            return replace(ref, triangle=-1)
        pointer = self.parent_pointer(ref)
        if pointer != INVALID_POINTER:
            return replace(ref, pointer=pointer)
        return self.instance_node(ref.instance) if ref.container != WHOLE_TLAS else None

    def path_in_container(self, ref: NodeRef) -> list[NodeRef]:
        """From the container's root to the node."""
        path = [ref]
        limit = self.header(ref.container).depth + 2
        while (above := self.parent(path[-1])) is not None and above.container == ref.container:
            path.append(above)
            if len(path) > limit:
                raise UserError(f"parent links of 0x{ref.pointer:08x} reach no root")
        return path[::-1]

    def path_to(self, ref: NodeRef) -> tuple[NodeRef, ...]:
        """From the TLAS's root, or that of a BLAS that was reached through no instance, to the
        node."""
        path = self.path_in_container(ref)
        above = self.parent(path[0])
        return (*(self.path_in_container(above) if above else ()), *path)

    def holds(self, ref: NodeRef) -> bool:
        """Whether the node can be reached from a root: each one on its path is a child of the one
        before."""
        try:
            path = self.path_to(ref)
            root = path[0].pointer == ROOT_POINTER and path[0].instance < 0
            return root and all(
                below in self.children(above) for above, below in zip(path, path[1:], strict=False)
            )
        except UserError:
            return False
