"""The encoding of the two BVH instructions (MIMG, RDNA2), their register maps, and what we support.

    opcode = word0[24:18] | word0[0] << 7      0xE6 32-bit form, 0xE7 64-bit form
    length = 2 + word0[2:1] words              the extra words hold scattered address registers

Field positions follow the RDNA2 assembler syntax for gfx1030 and the chapter's decoder (observed).
Finding instruction starts in a program is `bvh.contract.program`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from bvh.contract.descriptor import Field
from engine.gpu.errors import UserError

MIMG_ENCODING = 0x3C  # word0[31:26]
OPCODE_BVH = 0xE6
OPCODE_BVH64 = 0xE7
OPCODE_NAMES = {
    OPCODE_BVH: "image_bvh_intersect_ray",
    OPCODE_BVH64: "image_bvh64_intersect_ray",
}
RESULT_REGISTERS = 4
NSA_ADDRESSES = 4  # registers a scattered-address word names

# Bits of the first two words, word 0 first.
MIMG_FIELDS = (
    Field("opcode_high", 0, 1),
    Field("nsa", 1, 2),
    Field("dim", 3, 3),
    Field("dlc", 7, 1),
    Field("dmask", 8, 4),
    Field("unrm", 12, 1),
    Field("glc", 13, 1),
    Field("r128", 15, 1),
    Field("tfe", 16, 1),
    Field("lwe", 17, 1),
    Field("opcode_low", 18, 7),
    Field("slc", 25, 1),
    Field("encoding", 26, 6),
    Field("vaddr", 32, 8),
    Field("vdata", 40, 8),
    Field("srsrc", 48, 5),
    Field("ssamp", 53, 5),
    Field("a16", 62, 1),
    Field("d16", 63, 1),
)


@dataclass(frozen=True, slots=True)
class Variant:
    """One value of one field: whether we execute it, and why not."""

    field: str
    values: tuple[int, ...]
    supported: bool
    reason: str
    label: str


# The matrix. A field value that stands in no row is refused; fields without a row change nothing.
VARIANTS = (
    Variant(
        "opcode", (OPCODE_BVH, OPCODE_BVH64), True, "32-bit and 64-bit node pointer", "documented"
    ),
    Variant("dmask", (0xF,), True, "all four result words", "documented"),
    Variant("dmask", tuple(range(0xF)), False, "the manual requires dmask 0xF", "documented"),
    Variant("r128", (1,), True, "a four-word descriptor", "documented"),
    Variant("r128", (0,), False, "an eight-word descriptor is no BVH resource", "documented"),
    Variant("unrm", (1,), True, "", "documented"),
    Variant("unrm", (0,), False, "the manual requires UNRM 1", "documented"),
    Variant("dim", (0,), True, "1D", "documented"),
    Variant("dim", tuple(range(1, 8)), False, "the manual requires DIM 1D", "documented"),
    Variant("lwe", (0,), True, "", "documented"),
    Variant("lwe", (1,), False, "the manual requires LWE 0", "documented"),
    Variant("tfe", (0,), True, "", "documented"),
    Variant("tfe", (1,), False, "the manual requires TFE 0", "documented"),
    Variant("d16", (0,), True, "", "documented"),
    Variant("d16", (1,), False, "results are 32-bit words", "documented"),
    Variant("a16", (0,), True, "float32 direction and inverse direction", "documented"),
    Variant(
        "a16",
        (1,),
        False,
        "the operand order on RDNA2 is inferred only; the chapter refuses it",
        "inferred",
    ),
    Variant("nsa", (0,), True, "consecutive address registers", "observed"),
    Variant("nsa", (3,), True, "11 or 12 scattered address registers", "observed"),
    Variant("nsa", (1, 2), False, "too few words for 11 or 12 scattered registers", "observed"),
)


@dataclass(frozen=True, slots=True)
class Mimg:
    """A decoded instruction. `registers` are the VGPRs of the address operands in order, as many
    as the form needs; empty if its scattered words name too few."""

    opcode: int
    nsa: int
    dmask: int
    dim: int
    r128: int
    unrm: int
    tfe: int
    lwe: int
    a16: int
    d16: int
    vdata: int
    vaddr: int
    srsrc: int
    registers: tuple[int, ...]

    @property
    def word_count(self) -> int:
        return 2 + self.nsa

    @property
    def name(self) -> str:
        return OPCODE_NAMES[self.opcode]

    @property
    def descriptor_registers(self) -> range:
        """The four SGPRs of the descriptor."""
        return range(4 * self.srsrc, 4 * self.srsrc + 4)

    @property
    def result_registers(self) -> range:
        return range(self.vdata, self.vdata + RESULT_REGISTERS)


def is_bvh_word(word: int) -> bool:
    """Whether a word would be one of the two instructions, if an instruction started there."""
    return word >> 26 == MIMG_ENCODING and opcode_of(word) in OPCODE_NAMES


def opcode_of(word0: int) -> int:
    return word0 >> 18 & 0x7F | (word0 & 1) << 7


def operand_names(opcode: int, a16: int = 0) -> tuple[str, ...]:
    """What each address register holds, in order: 11 or 12 of them, 8 or 9 with A16."""
    pointer = ("node",) if opcode == OPCODE_BVH else ("node.low", "node.high")
    origin = ("extent", "origin.x", "origin.y", "origin.z")
    if a16:
        packed = ("direction.x|direction.y", "direction.z|inverse.x", "inverse.y|inverse.z")
        return pointer + origin + packed
    vectors = tuple(f"{v}.{axis}" for v in ("direction", "inverse") for axis in "xyz")
    return pointer + origin + vectors


def decode(words: Sequence[int]) -> Mimg:
    """The instruction that starts at `words[0]`, supported or not; UserError if it is none of the
    two or its words are cut off."""
    if not words or not is_bvh_word(words[0]):
        first = f"0x{words[0]:08x}" if words else "nothing"
        raise UserError(f"{first} starts no BVH instruction (MIMG opcode 0xe6 or 0xe7)")
    length = 2 + (words[0] >> 1 & 3)
    if len(words) < length:
        raise UserError(f"the instruction has {length} words, {len(words)} are given")
    bits = words[0] | words[1] << 32
    value = {field.name: bits >> field.low & field.mask for field in MIMG_FIELDS}
    opcode = value["opcode_low"] | value["opcode_high"] << 7
    count = len(operand_names(opcode, value["a16"]))
    if value["nsa"]:
        extra = [word >> shift & 0xFF for word in words[2:length] for shift in (0, 8, 16, 24)]
        registers = (value["vaddr"], *extra)[:count]
    else:
        registers = tuple(range(value["vaddr"], value["vaddr"] + count))
    return Mimg(
        opcode=opcode,
        registers=registers if len(registers) == count else (),
        **{name: value[name] for name in Mimg.__slots__ if name in value},
    )


def refusals(instruction: Mimg) -> list[str]:
    """Why we do not execute it, one reason a field; empty if we do."""
    found = []
    for name in dict.fromkeys(variant.field for variant in VARIANTS):
        value = getattr(instruction, name)
        row = next((v for v in VARIANTS if v.field == name and value in v.values), None)
        if row is None or not row.supported:
            found.append(f"{name} {value}: {row.reason if row else 'not in the matrix'}")
    if instruction.registers and max(instruction.registers) > 255:
        found.append(f"address registers end at v{max(instruction.registers)}")
    if instruction.result_registers[-1] > 255:
        found.append(f"result registers end at v{instruction.result_registers[-1]}")
    return found


def operand_map(instruction: Mimg) -> dict[str, str]:
    """Operand name -> register, as an assembler prints them."""
    sgpr, vgpr = instruction.descriptor_registers, instruction.result_registers
    found = {"result": f"v[{vgpr[0]}:{vgpr[-1]}]", "descriptor": f"s[{sgpr[0]}:{sgpr[-1]}]"}
    names = operand_names(instruction.opcode, instruction.a16)
    found.update(
        {name: f"v{register}" for name, register in zip(names, instruction.registers, strict=False)}
    )
    return found
