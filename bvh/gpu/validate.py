"""Is a BLAS container on the GPU a valid one? One dispatch, a lane a 64-byte unit.

A unit starts a node where its parent link says so. Every lane looks up: one slot of its parent
points here; and down: its children lie behind it (so there are no cycles), link back, and are of
the section that their pointers say. A block's lane walks up to the root: each box on the way
encloses its triangles. Tallies compared with the header tell whether nodes are missing or overlap.
`bvh.validate` says more of each fault; this one keeps up with a builder that runs hundreds of
times.

Where spatial splits repeat blocks (`most_uses` above 1) a block's boxes need not enclose it: that
they all have something in common with it is asked, and triangles are counted once. That the boxes
of a triangle's blocks together cover it only `bvh.validate` knows.

What a fan's table says is checked where blocks look it up. The header's depth is not checked.

Adapters that flush denormals do not tell coordinates apart that differ by less than the smallest
normal number.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bvh.decode import node_boxes
from bvh.fan_blocks import fan_table_units
from bvh.header import (
    FAN_VERSION,
    HEADER,
    KIND_BLAS,
    MAGIC,
    VERSION,
    Header,
    unpack_header,
)
from bvh.layout import (
    BOX_WIDTH,
    FAN_GROUP_LEAVES,
    FAN_GROUP_WORDS,
    FAN_ROW_WORDS,
    HEADER_BYTES,
    INVALID_POINTER,
    NODE_BOX_FP16,
    NODE_BOX_FP32,
    NODE_TRIANGLE_1,
    NODE_TRIANGLE_2,
    NODE_TRIANGLE_3,
    ROOT_POINTER,
    TRIANGLE_PRIMITIVE_0_WORD,
    UNIT_BYTES,
    UNIT_WORDS,
)
from engine.gpu.device import Device
from engine.gpu.stage import Stage
from engine.gpu.structs import Field, Struct

U32 = NDArray[np.uint32]
I64 = NDArray[np.int64]

FAULTS = ("pointer", "link", "box", "primitive", "overlap")
TALLIES = ("FP32 nodes", "FP16 nodes", "blocks", "triangles")
BOXES = (NODE_BOX_FP16, NODE_BOX_FP32)
ROOT_UNIT = HEADER_BYTES // UNIT_BYTES
BOUNDS_WORD = HEADER.offsets["bounds_min"] // 4  # bounds_max follows
FIRST_TALLY = 2 * len(FAULTS)
GROUPS = 256  # every lane takes a share
NOWHERE = 0xFFFFFFFF

CHECK_PARAMETERS = Struct(
    "CheckParameters",
    Field("base_unit", "u32"),  # of the container in its buffers
    Field("units", "u32"),  # of the container
    Field("leaf_unit", "u32"),
    Field("most_uses", "u32"),  # blocks that may hold one primitive: 1 but for spatial splits
    Field("fan_unit", "u32"),  # where the table of fans starts, 0 without fans
    Field("pad_0", "u32"),
    Field("pad_1", "u32"),
    Field("pad_2", "u32"),
)


def wgsl() -> str:
    """The record, kinds of faults and the places of the tallies."""
    lines = [f"const FAULT_{name.upper()}: u32 = {i}u;" for i, name in enumerate(FAULTS)]
    lines.append(f"const FIRST_TALLY: u32 = {FIRST_TALLY}u;")
    lines.append(f"const HEADER_BOUNDS_WORD: u32 = {BOUNDS_WORD}u;")
    return "\n".join(["// Generated from bvh/gpu/validate.py.", *lines, CHECK_PARAMETERS.wgsl()])


@dataclass(frozen=True, slots=True)
class Finding:
    """`count` faults of one kind, the first of them at 64-byte unit `unit` (-1: no single one)."""

    kind: str
    count: int
    unit: int

    def __str__(self) -> str:
        where = f", the first at unit {self.unit}" if self.unit >= 0 else ""
        return f"{self.kind}: {self.count}{where}"


def empty_findings() -> U32:
    """What the stage starts from."""
    findings = np.zeros(FIRST_TALLY + len(TALLIES), np.uint32)
    findings[1:FIRST_TALLY:2] = NOWHERE
    return findings


def judge(findings: U32, header: Header) -> list[Finding]:
    """What is wrong, empty where nothing is."""
    found = [
        Finding(kind, int(findings[2 * i]), int(findings[2 * i + 1]))
        for i, kind in enumerate(FAULTS)
        if findings[2 * i]
    ]
    fp32, fp16, blocks, triangles = (int(n) for n in findings[FIRST_TALLY:])
    expected = (header.nodes_fp32, header.nodes_fp16, header.leaf_count, header.primitive_count)
    for name, got, said in zip(TALLIES, (fp32, fp16, blocks, triangles), expected, strict=True):
        if got != said:
            found.append(Finding(f"{name}, {said} in the header", got, -1))
    if ROOT_UNIT + 2 * fp32 + fp16 != header.leaf_unit:
        found.append(Finding("units of nodes", 2 * fp32 + fp16, -1))
    table = fan_table_units(blocks, header.fan_count)
    if header.leaf_unit + blocks + table != header.size_units:
        found.append(Finding("units of blocks", blocks, -1))
    return found


def check_header(words: U32, capacity_units: int) -> list[Finding]:
    """Whether the 32 words are a BLAS header that fits into so many units; without one nothing
    else can be asked."""
    raw = words[: HEADER_BYTES // 4].view(HEADER.dtype)[0]
    good = (
        raw["magic"] == MAGIC
        and raw["kind"] == KIND_BLAS
        and raw["root_pointer"] == ROOT_POINTER
        and ROOT_UNIT + 2 <= raw["leaf_unit"] <= raw["size_units"] <= capacity_units
    )
    if raw["version"] != VERSION:
        behind = int(raw["leaf_unit"]) + int(raw["leaf_count"])
        good = good and raw["version"] == FAN_VERSION and raw["fan_count"] > 0
        good = good and raw["fan_unit"] == behind < raw["size_units"]
    else:
        good = good and raw["fan_unit"] == 0
    return [] if good else [Finding("header", 1, 0)]


def check_units(
    parameters: NDArray[Any], words: U32, parent_links: U32, uses: U32, findings: U32
) -> None:
    """Twin of check_units.wgsl: adds to `findings` and to `uses`, one word a primitive."""
    p = parameters[0]
    base, count = int(p["base_unit"]), int(p["units"])
    units = words[base * UNIT_WORDS :][: count * UNIT_WORDS].reshape(count, UNIT_WORDS)
    links = parent_links[base:][:count].astype(np.int64)

    def fault(kind: str, at: I64) -> None:
        if len(at):
            i = 2 * FAULTS.index(kind)
            findings[i] += len(at)
            findings[i + 1] = min(int(findings[i + 1]), int(at.min()))

    unit = np.arange(3, count)
    unit = unit[links[3:] != INVALID_POINTER]
    end = int(p["fan_unit"]) or count
    fault("link", unit[unit >= end])
    unit = unit[unit < end]
    parent, parent_kind = links[unit] >> 3, links[unit] & 7
    sound = np.isin(parent_kind, BOXES) & (parent >= ROOT_UNIT) & (parent < unit)
    fault("link", unit[~sound])
    unit, parent = unit[sound], parent[sound]
    pointers = units[parent, :BOX_WIDTH].astype(np.int64)
    here = (pointers != INVALID_POINTER) & (pointers >> 3 == unit[:, None])
    once = here.sum(axis=1) == 1
    fault("link", unit[~once])
    unit, slot = unit[once], np.argmax(here[once], axis=1)
    kind = pointers[once, slot] & 7
    is_box = np.isin(kind, BOXES)
    if links[ROOT_UNIT] != INVALID_POINTER:
        fault("link", np.array([ROOT_UNIT]))

    node = np.concatenate([[ROOT_UNIT], unit[is_box]])
    node_kind = np.concatenate([[NODE_BOX_FP32], kind[is_box]])
    half = node_kind == NODE_BOX_FP16
    findings[FIRST_TALLY] += (~half).sum()
    findings[FIRST_TALLY + 1] += half.sum()
    last_kind = NODE_TRIANGLE_3 if p["fan_unit"] else NODE_TRIANGLE_1
    full = node[~half]
    fault("overlap", full[links[np.minimum(full + 1, count - 1)] != INVALID_POINTER])
    for s in range(BOX_WIDTH):
        pointer = units[node, s].astype(np.int64)
        rows = np.flatnonzero(pointer != INVALID_POINTER)
        child, child_kind = pointer[rows] >> 3, pointer[rows] & 7
        to_box = np.isin(child_kind, BOXES)
        good = (child > node[rows]) & (child < end) & ((child < int(p["leaf_unit"])) == to_box)
        good &= to_box | (child_kind <= last_kind)
        fault("pointer", node[rows[~good]])
        rows, child = rows[good], child[good]
        fault("link", child[links[child] != (node[rows] << 3 | node_kind[rows])])

    is_block = kind <= last_kind
    block, block_kind = unit[is_block], kind[is_block]
    findings[FIRST_TALLY + 2] += len(block)
    corners = np.ascontiguousarray(units[block, :15]).view(np.float32).reshape(-1, 5, 3)
    corners[block_kind == 0, 3] = corners[block_kind == 0, 2]
    corners[block_kind < 2, 4] = corners[block_kind < 2, 2]
    numbers = ~np.isnan(corners).any(axis=(1, 2))
    fault("box", block[~numbers])
    own = np.stack([corners.min(axis=1), corners.max(axis=1)], axis=1)
    header = units[:ROOT_UNIT].reshape(-1).view(HEADER.dtype)[0]
    whole = np.stack([header["bounds_min"], header["bounds_max"]])[None]
    fault("box", np.zeros(int((numbers & ~_encloses(whole, own)).sum()), np.int64))
    slot_at = np.full(count, -1)
    slot_at[unit] = slot
    walk, box = block[numbers], own[numbers]
    while len(walk):
        on = slot_at[walk] >= 0
        walk, box = walk[on], box[on]
        parent = links[walk] >> 3
        _, boxes = node_boxes(units, parent, links[walk] & 7 == NODE_BOX_FP16)
        around = boxes[np.arange(len(walk)), slot_at[walk]]
        if p["most_uses"] == 1:
            fault("box", parent[~_encloses(around, box)])
        else:
            low = np.maximum(box[:, 0], around[:, 0])
            box = np.stack([low, np.minimum(box[:, 1], around[:, 1])], axis=1)
            met = (box[:, 0] <= box[:, 1]).all(axis=1)
            fault("box", parent[~met])
            box, parent = box[met], parent[met]
        walk = parent
    ids, listed = _read_ids(units, block, int(p["fan_unit"]), int(p["leaf_unit"]))
    odd = listed != (block_kind >= NODE_TRIANGLE_2)
    odd |= (block_kind == NODE_TRIANGLE_2) & listed & (ids[:, 3] != INVALID_POINTER)
    fault("primitive", block[odd])
    late = 0
    for k in range(4):
        rows = block[block_kind >= k]
        single = p["most_uses"] == 1
        findings[FIRST_TALLY + 3] += len(rows) if single else (odd & (block_kind >= k)).sum()
        held = (block_kind >= k) & ~odd
        rows, primitive = block[held], ids[held, k]
        known = primitive < len(uses)
        fault("primitive", rows[~known])
        before = np.maximum(uses.astype(np.int64) - int(p["most_uses"]), 0).sum()
        fresh = np.unique(primitive[known])
        findings[FIRST_TALLY + 3] += 0 if single else (uses[fresh] == 0).sum()
        np.add.at(uses, primitive[known], 1)
        late += int(np.maximum(uses.astype(np.int64) - int(p["most_uses"]), 0).sum() - before)
    # How many uses come too late does not depend on the order of lanes; which unit does, so the
    # twin names none.
    findings[2 * FAULTS.index("primitive")] += late


def _read_ids(units: U32, block: I64, fan_unit: int, leaf_unit: int) -> tuple[I64, Any]:
    """(primitive ids [n, 4], whether the table has them) of blocks; 0 for what no word says."""
    ids = np.zeros((len(block), 4), np.int64)
    ids[:, :2] = units[block, TRIANGLE_PRIMITIVE_0_WORD : TRIANGLE_PRIMITIVE_0_WORD + 2]
    listed = np.zeros(len(block), np.bool_)
    if not fan_unit:
        return ids, listed
    table = units[fan_unit:].reshape(-1).astype(np.int64)
    entry = (block - leaf_unit) // FAN_GROUP_LEAVES * FAN_GROUP_WORDS
    bit = np.int64(1) << (block - leaf_unit) % FAN_GROUP_LEAVES
    inside = entry + 1 < len(table)
    entry = np.where(inside, entry, 0)
    row = (table[entry + 1] + np.bitwise_count(table[entry] & (bit - 1))) * FAN_ROW_WORDS
    listed = inside & (table[entry] & bit != 0) & (row < len(table))
    ids[listed] = table[row[listed, None] + np.arange(FAN_ROW_WORDS)]
    return ids, listed


def _encloses(outer: NDArray[np.float32], inner: NDArray[np.float32]) -> NDArray[np.bool_]:
    low = (outer[:, 0] <= inner[:, 0]).all(axis=1)
    return np.asarray(low & (outer[:, 1] >= inner[:, 1]).all(axis=1))


class GpuValidate:
    """Checks containers in buffers of the device, whose primitives are below `primitive_count`."""

    def __init__(self, device: Device, primitive_count: int, most_uses: int = 1) -> None:
        self.device = device
        self.most_uses = most_uses
        self.stage = Stage(
            device, "check_units", "bvh/gpu/shaders/check_units.wgsl", twin=check_units
        )
        self.uses = device.buffer("validate/uses", 4 * primitive_count)
        self.findings = device.buffer("validate/findings", empty_findings().nbytes)
        self.parameters = device.buffer(
            "validate/parameters", CHECK_PARAMETERS.size, "UNIFORM|COPY_DST"
        )

    def check(self, words: Any, parent_links: Any, base_bytes: int = 0) -> list[Finding]:
        """What is wrong with the container at `base_bytes` of both buffers, empty where nothing
        is. Waits for the GPU."""
        device = self.device
        raw = device.read(words, np.uint32, offset=base_bytes, count=HEADER_BYTES // 4)
        faults = check_header(raw, (words.size - base_bytes) // UNIT_BYTES)
        if faults:
            return faults
        header = unpack_header(raw)
        record = np.zeros(1, CHECK_PARAMETERS.dtype)
        record["base_unit"] = base_bytes // UNIT_BYTES
        record["units"] = header.size_units
        record["leaf_unit"] = header.leaf_unit
        record["most_uses"] = self.most_uses
        record["fan_unit"] = header.fan_unit
        device.write(self.parameters, record)
        device.write(self.findings, empty_findings())
        encoder = device.wgpu.create_command_encoder(label="validate")
        encoder.clear_buffer(self.uses)
        scope = encoder.begin_compute_pass(label="validate")
        self.stage.dispatch(
            scope,
            {
                "parameters": self.parameters,
                "words": words,
                "parent_links": parent_links,
                "uses": self.uses,
                "findings": self.findings,
            },
            GROUPS,
        )
        scope.end()
        device.wgpu.queue.submit([encoder.finish()])
        return judge(device.read(self.findings, count=len(empty_findings())), header)
