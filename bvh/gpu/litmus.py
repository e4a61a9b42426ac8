"""Whether arrival counters work on this adapter: a litmus to run before anything relies on them.

A bottom-up pass in one dispatch lets the second child to arrive at a node read what its sibling's
workgroup wrote moments ago. WGSL orders nothing between workgroups, and plain, coherent and
relaxed-atomic data gave wrong nodes on an H200. The *exchange chain* did not: every word is written
by `atomicExchange`, what it returns goes into the operand of the counter's `atomicAdd`, and readers
use `atomicLoad`. No specification promises that either, so it is tried: trees of a million leaves,
six words a node, twenty times, with other numbers in each run so that a stale word shows.

The builders here do without: one dispatch a level, or chunks that one workgroup holds, were faster
in every case tried. A pass with counters has to ask `litmus(device).passed` first.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.gpu.device import AdapterInfo, Device
from engine.gpu.faults import works_around
from engine.gpu.stage import Stage, submit_pass
from engine.gpu.structs import Field, Struct

U32 = NDArray[np.uint32]

LEAVES = 1 << 20
LEAVES_ON_A_CPU = 1 << 14  # where cores are few and their caches coherent; a run takes 3 ms
RUNS = 20
WORDS = 6  # a node: what a box has
SCATTER = 40503  # odd: index * SCATTER modulo a power of two visits every leaf

LITMUS_PARAMETERS = Struct(
    "LitmusParameters",
    Field("leaves", "u32"),  # a power of two; node k has children 2k and 2k + 1, the root is 1
    Field("seed", "u32"),  # word k of a leaf is seed + k
    Field("zero", "u32"),  # 0, unknown to the compiler
    Field("reserved", "u32"),
)


@dataclass(frozen=True, slots=True)
class Litmus:
    """Nodes with a wrong sum in all `runs` over trees of `leaves` leaves."""

    leaves: int
    runs: int
    wrong: int

    @property
    def passed(self) -> bool:
        return self.wrong == 0

    def __str__(self) -> str:
        return f"{self.wrong:,} wrong nodes in {self.runs} trees of {self.leaves:,} leaves"


_results: dict[AdapterInfo, Litmus] = {}


def litmus(device: Device) -> Litmus:
    """The adapter's and driver's result; run once a process."""
    if device.info not in _results:
        leaves = LEAVES_ON_A_CPU if device.info.is_cpu else LEAVES
        _results[device.info] = run_litmus(device, leaves, RUNS)
    return _results[device.info]


def run_litmus(device: Device, leaves: int, runs: int, chain: bool | None = None) -> Litmus:
    """Runs it now; `leaves` is a power of two. Without the `chain` of exchanges (default: as
    "arrival-counters" in engine/gpu/faults.py is worked around) words are stored and loaded."""
    if leaves < 1 or leaves & (leaves - 1):
        raise ValueError(f"{leaves} leaves, not a power of two")
    chain = works_around("arrival-counters") if chain is None else chain
    climb, check = make_stages(device, chain)
    resources = {
        "sums": device.buffer("litmus/sums", 4 * WORDS * 2 * leaves),
        "arrivals": device.buffer("litmus/arrivals", 4 * leaves),
        "wrong": device.buffer("litmus/wrong", 4),
    }
    passes = []
    for run in range(runs):
        record = make_parameters(leaves, 2 * run + 1)
        parameters = device.upload("litmus/parameters", record, "UNIFORM|COPY_DST")
        passes.append({**resources, "parameters": parameters})

    def encode(scope: Any) -> None:
        for buffers in passes:
            climb.dispatch(scope, buffers, -(-leaves // 256))
            check.dispatch(scope, buffers, -(-2 * leaves // 256))

    submit_pass(device, encode, label="litmus")
    return Litmus(leaves, runs, int(device.read(resources["wrong"], np.uint32, count=1)[0]))


def make_stages(device: Device, chain: bool = True) -> tuple[Stage, Stage]:
    """The pass with counters, and the check of what it left."""
    folder = "bvh/gpu/shaders"
    return (
        Stage(
            device,
            "litmus",
            f"{folder}/litmus.wgsl",
            constants={"CHAIN": chain},
            twin=climb_tree,
        ),
        Stage(device, "litmus_check", f"{folder}/litmus_check.wgsl", twin=litmus_check),
    )


def make_parameters(leaves: int, seed: int) -> NDArray[Any]:
    """One LITMUS_PARAMETERS record."""
    record = np.zeros(1, LITMUS_PARAMETERS.dtype)
    record["leaves"], record["seed"] = leaves, seed
    return record


def _expected(parameters: NDArray[Any]) -> U32:
    """[2 * leaves, WORDS] sums; row 0 is no node."""
    leaves, seed = int(parameters["leaves"][0]), int(parameters["seed"][0])
    node = np.arange(1, 2 * leaves)
    above = np.floor(np.log2(node)).astype(np.int64)
    leaves_below = np.uint64(1) << (np.int64(leaves).item().bit_length() - 1 - above).astype("u8")
    words = (np.uint64(seed) + np.arange(WORDS, dtype=np.uint64)) * leaves_below[:, None]
    out = np.zeros((2 * leaves, WORDS), np.uint32)
    out[1:] = words & np.uint64(0xFFFFFFFF)
    return out


def climb_tree(parameters: NDArray[Any], arrivals: U32, sums: U32) -> None:
    """Twin of litmus.wgsl: what it should leave behind cleared arrivals."""
    leaves = int(parameters["leaves"][0])
    sums[WORDS : 2 * leaves * WORDS] = _expected(parameters)[1:].reshape(-1)
    arrivals[1:leaves] += 2


def litmus_check(parameters: NDArray[Any], sums: U32, arrivals: U32, wrong: U32) -> None:
    """Twin of litmus_check.wgsl: adds the wrong nodes to `wrong` and clears the arrivals."""
    leaves = int(parameters["leaves"][0])
    differs = (sums[: 2 * leaves * WORDS].reshape(-1, WORDS) != _expected(parameters)).any(axis=1)
    differs[1:leaves] |= arrivals[1:leaves] != 2
    arrivals[1:leaves] = 0
    wrong[0] += differs[1:].sum()


def wgsl() -> str:
    """The record and constants for shaders."""
    constants = {"WORDS": WORDS, "SCATTER": SCATTER}
    lines = [f"const {name}: u32 = {value}u;" for name, value in constants.items()]
    return "\n".join(["// Generated from bvh/gpu/litmus.py.", *lines, LITMUS_PARAMETERS.wgsl()])
