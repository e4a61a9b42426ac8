"""Records of the trees that single workgroups build: the TLAS and batches of small BLASes.

A segment is what one workgroup takes: up to SEGMENT boxes that follow each other. Its inner nodes
lie from `first` plus its own number on: one more than it has boxes, so that no two segments meet.
A node's record holds, beside its box and children, what a collapse to four wide needs to know of
the subtree: see `bvh.gpu.cluster_tree`.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bvh.header import KIND_TLAS, MAGIC, VERSION
from bvh.layout import pack_descriptor
from bvh.tree import MAX_DEPTH, STACK_LIMIT
from engine.gpu.device import Device
from engine.gpu.structs import Field, Struct

SEGMENT = 512  # boxes a workgroup: 23 KiB of its memory
ROOT_PARENT = 0xFFFFFFFF
NARROW = 1 << 6  # in `shares`: as a wide node it has its two binary children only
HALF = 1 << 7  # in `shares`: FP16
# A node of h binary levels below and including itself needs at most h + SPARE_ENTRIES of stack.
SPARE_ENTRIES = STACK_LIMIT - MAX_DEPTH
NODE_FORMAT_CODES = {"fp32": 0, "fp16": 1, "auto": 2}
# Sides of boxes are taken as this long at least and at most, so that no area is denormal or
# overflows; used to compare areas only.
SHORTEST_SIDE = np.float32(2.0**-60)
LONGEST_SIDE = np.float32(1e18)

CLUSTER_PARAMETERS = Struct(
    "ClusterParameters",
    Field("segments", "u32"),  # number of them, the one over the others' roots not counted
    Field("radius", "u32"),  # neighbours looked at on each side
    Field("roots", "u32"),  # a segment's clusters are merged until so many are left
    Field("top", "u32"),  # 1: the one workgroup that goes on from all segments' roots
    Field("max_levels", "u32"),  # of the trees that this dispatch may leave
    Field("node_format", "u32"),  # NODE_FORMAT_CODES
    Field("zero", "u32"),  # 0, unknown to the compiler
    Field("finish", "u32"),  # 1: what is left is a whole tree, its root an inner node always
    Field("kind", "u32"),  # KIND_BLAS: every segment is a tree; KIND_TLAS: all are one
    Field("leaf_units", "u32"),  # 64-byte units a leaf
    Field("parts", "u32"),  # workgroups of the encoder a segment
    Field("align_units", "u32"),  # of containers; what is left up to there is cleared
    Field("roots_below", "u32"),  # `roots` of the segments, for the top
)
CLUSTER_SEGMENT = Struct(
    "ClusterSegment",
    Field("first", "u32"),  # box
    Field("count", "u32"),  # of boxes
    Field("root", "u32"),  # the inner node left, of a finished tree
    Field("roots", "u32"),  # clusters left
    Field("levels", "u32"),  # bound on those of its trees
    Field("created", "u32"),  # inner nodes
    Field("reserved", "u32", 2),
)
# Triples are for a node that fills 1 (as a wide node), 2 or 3 slots of its wide parent.
CLUSTER_NODE = Struct(
    "ClusterNode",
    Field("low", "vec3f"),
    Field("left", "i32"),  # inner node, ~box or EMPTY
    Field("high", "vec3f"),
    Field("right", "i32"),
    Field("cost", "vec3f"),  # area of the wide nodes below and including
    Field("shares", "u32"),  # slots that go left, of 4 (bits 1:0), of 2, of 3; 0: not opened
    Field("units", "vec3u"),  # 64-byte units of the wide nodes
    Field("leaves", "u32"),
    Field("counts", "vec3u"),  # wide nodes
    Field("parent", "u32"),
    Field("stack", "u32"),  # entries a traversal needs, a byte each; binary levels in the top one
    Field("depth", "u32"),  # levels of wide nodes, a byte each; slots used of 2 and of 3 above
    Field("reserved", "u32", 2),
)
TREE_RECORD = Struct(
    "ClusterTree",
    Field("base_unit", "u32"),  # of the container in the scene buffer, in 64-byte units
    Field("primitives", "u32"),  # triangles, or instances
    Field("geometries", "u32"),
    Field("limit_unit", "u32"),  # nothing is written from here on
    Field("first_geometry", "u32"),  # that leaves count from
    Field("reserved", "u32", 3),
)


def make_cluster_parameters(**fields: int) -> NDArray[Any]:
    """One CLUSTER_PARAMETERS record."""
    record = np.zeros(1, CLUSTER_PARAMETERS.dtype)
    for name, value in fields.items():
        record[name] = value
    return record


def node_capacity(boxes: int, segments: int) -> int:
    """Node records for so many boxes in so many segments, and a top over their roots."""
    return boxes + segments + SEGMENT + 1


def lanes_slot(device: Device) -> dict[str, str]:
    """The slot that says how many lanes take a segment, for stages that do."""
    lanes = 64 if device.info.is_cpu else 256
    return {"lanes": f"bvh/gpu/shaders/lanes_{lanes}.wgsl"}


def wgsl() -> str:
    """The records and constants for shaders, which import `bvh.gpu.build_records` too."""
    descriptor = pack_descriptor(0, 0)
    constants = {
        "SEGMENT": f"u32 = {SEGMENT}u",
        "MAGIC": f"u32 = {MAGIC}u",
        "VERSION": f"u32 = {VERSION}u",
        "KIND_TLAS": f"u32 = {KIND_TLAS}u",
        "DESCRIPTOR_WORD_1": f"u32 = {descriptor[1]}u",
        "DESCRIPTOR_WORD_3": f"u32 = {descriptor[3]}u",
        "ROOT_PARENT": f"u32 = {ROOT_PARENT}u",
        "NARROW": f"u32 = {NARROW}u",
        "HALF": f"u32 = {HALF}u",
        "SPARE_ENTRIES": f"u32 = {SPARE_ENTRIES}u",
        "SHORTEST_SIDE": "f32 = 0x1p-60",
        "LONGEST_SIDE": "f32 = 1e18",
    }
    lines = [f"const {name}: {value};" for name, value in constants.items()]
    structs = (CLUSTER_PARAMETERS, CLUSTER_SEGMENT, CLUSTER_NODE, TREE_RECORD)
    return "\n".join(
        ["// Generated from bvh/gpu/cluster_records.py.", *lines, *(s.wgsl() for s in structs)]
    )
