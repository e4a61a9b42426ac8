"""Faults of drivers and libraries that this program works around, in one place.

Every workaround asks `works_around(name)` before it acts, so that it can be turned off by naming
it in the environment variable TREELINE_WITHOUT_WORKAROUNDS (names with commas between them): for a
new driver, and to see what it is good for. `treeline doctor --faults` runs a check of each fault
(treeline/fault_checks.py), through the faulty path and through the workaround. A workaround whose
fault is gone from every driver can be removed together with its entry here.
"""

import os
import re
from dataclasses import dataclass

from engine.gpu.errors import UserError

SWITCH = "TREELINE_WITHOUT_WORKAROUNDS"


@dataclass(frozen=True, slots=True)
class Fault:
    """`seen_on` matches the adapter's line (engine.gpu.device.AdapterInfo as text) where it was
    seen or must be expected; workarounds act everywhere, as they cost little. `where` are the files
    that ask for the switch."""

    name: str
    seen_on: str
    drivers: str
    symptom: str
    workaround: str
    where: tuple[str, ...]

    def expected_on(self, adapter: str) -> bool:
        return re.search(self.seen_on, adapter) is not None


FAULTS = (
    Fault(
        "arrival-counters",
        r"NVIDIA",
        "NVIDIA 580.159.04, H200; WGSL promises no order between workgroups to anyone",
        "the second child to arrive at a node reads stale words of its sibling's: 150 to 1,600 "
        "wrong nodes in trees of a million leaves, with plain, coherent and relaxed atomic data",
        "builders take a dispatch a level; a pass with counters needs the exchange chain, whose "
        "returned values go into the counter's operand, and asks the litmus first",
        ("bvh/gpu/litmus.py",),
    ),
    Fault(
        "live-stacks",
        r"NVIDIA",
        "NVIDIA 580.159.04, H200",
        "every kernel of the process takes three to five times as long once 55 to 90 compute "
        "pipelines with a private stack are alive",
        "of pipelines with a stack that nobody uses, few are kept",
        ("engine/gpu/pipelines.py",),
    ),
    Fault(
        "contraction",
        r"NVIDIA",
        "NVIDIA 580.159.04, H200; WGSL allows it",
        "a * b + c comes back with one rounding, also where the product has a name: shared edges "
        "leak, host and GPU bytes differ",
        "the product's bits go through an exclusive or with a zero that no compiler knows",
        ("engine/gpu/shader.py",),
    ),
    Fault(
        "signed-remainder",
        r"NVIDIA",
        "NVIDIA 580.159.04, H200, below naga, which writes `%` of i32 as OpSRem: Vulkan leaves its "
        "result open for negative numbers",
        "-3 % 5 is not -3: a texture that repeats and whose size is no power of two shows other "
        "texels left of and above its first ones, foliage other holes",
        "remainders are taken of unsigned numbers alone",
        ("engine/gpu/shader.py",),
    ),
    Fault(
        "unwritten-query",
        r".",
        "some versions of wgpu-native (gfx-rs/wgpu-native#296)",
        "resolving a query that was never written loses the device without a word",
        "only queries that a pass was given are resolved",
        ("engine/gpu/timer.py",),
    ),
    Fault(
        "late-timestamps",
        r"llvmpipe",
        "Mesa llvmpipe 22.3.6",
        "timestamps are written when the driver flushes: a pass whose work it had put off seems "
        "free, and a later one pays",
        "passes on CPU drivers are timed by the wall clock, each submitted and waited for",
        ("engine/gpu/device.py",),
    ),
    Fault(
        "window-abort",
        r".",
        "GLFW 3 through rendercanvas, on Linux without a display",
        "an assertion in C ends the process where a window is made",
        "the display is opened first, and what is missing is said in one line",
        ("engine/view/display.py", "treeline/cli/example.py"),
    ),
    Fault(
        "bindings-above-limit",
        r".",
        "wgpu on several drivers; a dispatch with too many bindings may do nothing",
        "a stage that binds more storage buffers than the adapter's limit draws black",
        "a stage of ours binds at most the 8 that WebGPU guarantees, or is refused by name",
        ("engine/gpu/stage.py",),
    ),
)
FAULT_BY_NAME = {fault.name: fault for fault in FAULTS}


def turned_off() -> frozenset[str]:
    """The workarounds that the environment turns off. UserError for a name that is none."""
    names = frozenset(filter(None, (n.strip() for n in os.environ.get(SWITCH, "").split(","))))
    for name in sorted(names - FAULT_BY_NAME.keys()):
        raise UserError(f"{SWITCH}: no fault is named '{name}'; known: {', '.join(FAULT_BY_NAME)}")
    return names


def works_around(name: str) -> bool:
    """Whether the workaround of the fault `name` is to act."""
    if name not in FAULT_BY_NAME:
        raise ValueError(f"no fault is named '{name}'")
    return name not in turned_off()
