"""What a row of the ledger is."""

from dataclasses import dataclass
from typing import Literal, get_args

Label = Literal["documented", "observed", "inferred", "unknown", "ours"]
LABELS: tuple[Label, ...] = get_args(Label)

# Where facts come from. "-" is this project's own choice.
SOURCES = {
    "KY": "KytyPS5 emitter, spirvEmitterBvh.cpp 72fc3cb958d2: the helper the chapter describes",
    "KT": "KytyPS5 fixture BvhIntersections, beee19a4b58f (32 lanes)",
    "KA": "KytyPS5 variant with GPURT's arithmetic and A16, 3e1397e10548",
    "GP": "GPUOpen-Drivers/gpurt 7b226d48b46b: node structs, software emulation, builders",
    "RV": "Mesa RADV, radv_nir_rt_common.c and bvh/*, 11547f21f6c5 and neighbours",
    "PAL": "AMD PAL gfx10 register header, sq_bvh_rsrc_t",
    "IS2": "AMD RDNA2 ISA, document 70648, as quoted by third parties; its text was not read",
    "IS3": "AMD RDNA3.5 ISA, sections 10.9.2-10.9.3",
    "IS4": "AMD RDNA4 ISA, sections 10.9.1-10.9.3",
    "CY": "Cycles OpenCL AMD path, descriptor packer",
    "LLVM": "LLVM's gfx1030 assembler, encodings as it emits them",
    "-": "this project",
}


@dataclass(frozen=True, slots=True)
class Row:
    """One fact. `covers` names the constants (`module.NAME`) and fields (`descriptor:sort`) of the
    code that rest on it. `rules` says which rule set it describes. An unknown has the smallest
    experiment that would settle it."""

    id: str
    statement: str
    label: Label
    source: str  # keys of SOURCES, joined by ", "
    covers: tuple[str, ...] = ()
    experiment: str = ""
    rules: Literal["both", "chapter", "gpurt"] = "both"
