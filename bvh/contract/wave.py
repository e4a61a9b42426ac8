"""The wave form: the instruction as a wave of lanes executes it, with EXEC and registers.

Every lane reads its own address registers; the descriptor is one for the wave (scalar registers).
Lanes whose EXEC bit is clear keep their destination registers and load nothing. All sources are
read before any destination is written, so the two may overlap (observed: the chapter's helper).
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bvh.contract.cases import Cases, Rules
from bvh.contract.intersect import intersect
from bvh.contract.memory import GuestMemory
from bvh.contract.mimg import Mimg, refusals
from engine.gpu.errors import UserError

U32 = NDArray[np.uint32]
I64 = NDArray[np.int64]

RAY_REGISTERS = 10  # extent, origin xyz, direction xyz, inverse direction xyz
WAVE_SIZES = (32, 64)
INACTIVE = -1  # in the returned status


def intersect_wave(
    exec_mask: int,
    registers: U32,
    destination: int,
    addresses: Sequence[int],
    descriptor: Sequence[int],
    memory: GuestMemory,
    rules: Rules = "chapter",
) -> I64:
    """Executes one instruction on `registers [VGPRs, lanes]`, in place.

    exec_mask has bit i set for an active lane i; `addresses` are 11 or 12 VGPRs in operand order
    (node or node low and high, then the ray); `destination` is the first of four VGPRs. Returns
    `Status` `[lanes]`, INACTIVE where EXEC is clear. UserError for registers or a wave that do
    not exist, before anything is written.
    """
    vgprs, lanes = registers.shape
    pointer_words = len(addresses) - RAY_REGISTERS
    if lanes not in WAVE_SIZES or not 0 <= exec_mask < 1 << lanes:
        raise UserError(f"a wave has 32 or 64 lanes and EXEC bits for them, not {lanes} lanes")
    if pointer_words not in (1, 2):
        raise UserError(f"{len(addresses)} address registers; the two forms have 11 and 12")
    if min(addresses) < 0 or max(*addresses, destination + 3) >= vgprs or destination < 0:
        raise UserError(f"a register outside the {vgprs} that the wave has")
    active = np.array([lane for lane in range(lanes) if exec_mask >> lane & 1], np.int64)
    status = np.full(lanes, INACTIVE, np.int64)
    sources = registers[list(addresses)][:, active]  # a copy: taken before the result is written
    ray = sources[pointer_words:].T
    cases = Cases(
        descriptor=np.tile(np.array(descriptor, np.uint32), (len(active), 1)),
        pointer_low=sources[0],
        pointer_high=sources[1] if pointer_words == 2 else np.zeros_like(sources[0]),
        node_words=np.empty((len(active), 0), np.uint32),
        backed=np.zeros(len(active), np.uint32),
        extent=ray[:, 0],
        origin=np.ascontiguousarray(ray[:, 1:4]),
        direction=np.ascontiguousarray(ray[:, 4:7]),
        inverse_direction=np.ascontiguousarray(ray[:, 7:10]),
    )
    result = intersect(memory, cases, rules)
    registers[destination : destination + 4, active] = result.words.T
    status[active] = result.status
    return status


def execute(
    instruction: Mimg,
    exec_mask: int,
    registers: U32,
    scalars: Sequence[int],
    memory: GuestMemory,
    rules: Rules = "chapter",
) -> I64:
    """The same from a decoded instruction; `scalars` are the SGPRs. UserError naming the field of
    a variant that is not supported."""
    reasons = refusals(instruction)
    if reasons:
        raise UserError(f"{instruction.name} is not supported: {'; '.join(reasons)}")
    if instruction.descriptor_registers[-1] >= len(scalars):
        raise UserError(f"s{instruction.descriptor_registers[-1]} of {len(scalars)} SGPRs")
    return intersect_wave(
        exec_mask,
        registers,
        instruction.vdata,
        instruction.registers,
        [scalars[i] for i in instruction.descriptor_registers],
        memory,
        rules,
    )
