"""Checks a scene buffer and names the first bad node, its byte and its raw words.

A box passes when it encloses every triangle, sphere or placed BLAS below it; the boxes of an FP16
node may be looser than the box its own parent holds for it, because tight parents cost nothing and
lose nothing. When a box is too small, what lies outside it is cut off before the levels above are
checked, so that one bad box is one fault and not a chain of them up to the root.
"""

import numpy as np

from bvh.fan_blocks import fan_table_units
from bvh.header import KIND_BLAS, KIND_TLAS, Header, pack_header, unpack_header
from bvh.layout import (
    HEADER_BYTES,
    NODE_BOX_FP32,
    NODE_BYTES,
    NODE_INSTANCE,
    UNIT_BYTES,
)
from bvh.scene_bvh import SceneBvh
from bvh.tree import empty_bounds
from bvh.validate_blas import check_blas
from bvh.validate_tlas import check_tlas
from bvh.walk import ROOT_UNIT, Container, Fault


def validate(bvh: SceneBvh) -> list[Fault]:
    """Every fault found, by byte offset within each container, BLASes first; at most a few of
    one sort a container. Empty for a sound buffer."""
    faults: list[Fault] = []
    blas_bounds = empty_bounds(len(bvh.blas_bases))
    headers: list[Header | None] = []
    for i, base in enumerate(int(b) for b in bvh.blas_bases):
        name = f"BLAS {i} '{bvh.blas_names[i]}'"
        container = _open(bvh, name, base, KIND_BLAS, faults)
        headers.append(container.header if container else None)
        if container:
            blas_bounds[i] = check_blas(container)
            faults += sorted(container.faults, key=lambda fault: fault.byte_offset)
    container = _open(bvh, "TLAS", 0, KIND_TLAS, faults)
    if container:
        check_tlas(container, bvh, blas_bounds, headers)
        faults += sorted(container.faults, key=lambda fault: fault.byte_offset)
    return faults


def _open(bvh: SceneBvh, name: str, base: int, kind: int, faults: list[Fault]) -> Container | None:
    def refuse(message: str) -> None:
        words = bvh.words[base // 4 : base // 4 + HEADER_BYTES // 4]
        faults.append(Fault(name, message, base, 0, tuple(int(w) for w in words)))

    if base % 256 or base + HEADER_BYTES + NODE_BYTES[NODE_BOX_FP32] > 4 * len(bvh.words):
        refuse(f"no container can start at byte {base} of {4 * len(bvh.words)}")
        return None
    try:
        header = unpack_header(bvh.words[base // 4 :])
    except ValueError as error:
        refuse(f"header: {error}")
        return None
    leaf_units = NODE_BYTES[NODE_INSTANCE if kind == KIND_TLAS else 0] // UNIT_BYTES
    nodes = ROOT_UNIT + 2 * header.nodes_fp32 + header.nodes_fp16
    if header.kind != kind:
        refuse(f"header: kind {header.kind}, expected {kind}")
    elif base + header.size_bytes > 4 * len(bvh.words):
        refuse(f"header: {header.size_bytes} bytes do not fit the buffer")
    elif header.leaf_unit != nodes:
        refuse(f"header: leaves start at unit {header.leaf_unit}, its node counts say {nodes}")
    elif kind == KIND_TLAS and (header.fan_unit or header.sphere_count):
        refuse("header: a TLAS has neither fans nor spheres")
    elif header.sphere_count not in (0, header.leaf_count):
        refuse(f"header: {header.sphere_count} spheres of {header.leaf_count} leaves")
    elif header.fan_unit not in (0, nodes + leaf_units * header.leaf_count):
        refuse(f"header: fan table at unit {header.fan_unit}, not behind the leaves")
    elif bool(header.fan_unit) != bool(header.fan_count) or header.fan_count > header.leaf_count:
        refuse(f"header: {header.fan_count} fans of {header.leaf_count} leaves")
    elif header.size_units != nodes + leaf_units * header.leaf_count + fan_table_units(
        header.leaf_count, header.fan_count
    ):
        refuse(f"header: size of {header.size_units} units does not match its counts")
    elif header.base_bytes != base:
        refuse(f"header: the descriptor's base is {header.base_bytes}")
    else:
        words = bvh.words[base // 4 :]
        container = Container(name, words, bvh.parents[base // UNIT_BYTES :], base, header)
        expected = pack_header(header)
        for i in np.flatnonzero(words[: len(expected)] != expected):
            container.header_fault(f"header word {i} is 0x{words[i]:x}, not 0x{expected[i]:x}")
        return container
    return None
