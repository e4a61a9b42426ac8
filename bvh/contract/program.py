"""Instruction starts in a stream of RDNA2 words, so that a literal is not taken for an opcode.

Follows the control flow from word 0 and knows each encoding's length: the literal of a 32-bit
encoding or of VOP3, the DPP and SDWA words, the scattered-address words of MIMG. What no path
reaches is data. Lengths follow the RDNA2 encodings as the gfx1030 assembler emits them (observed).
Not a disassembler: it names no instruction but the two BVH ones.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from bvh.contract.mimg import MIMG_ENCODING, Mimg, decode, is_bvh_word

LITERAL = 0xFF
# Source selectors that add a word: DPP8, DPP8 with FI, SDWA, DPP16.
EXTRA_WORD_SOURCES = (0xE9, 0xEA, 0xF9, 0xFA)
# VOP2 opcodes with a constant word of their own: MADMK, MADAK, FMAMK, FMAAK (F32 and F16).
CONSTANT_VOP2 = (0x20, 0x21, 0x2C, 0x2D, 0x37, 0x38)
SOPK_SETREG_IMM32 = 0x15
SOPK_CALL = 0x16
SOPK_LOOPS = (0x1B, 0x1C)
SOPP_ENDS = (0x01, 0x1B, 0x1E, 0x1F)  # the kinds of s_endpgm, and s_code_end
SOPP_BRANCH = 0x02
SOPP_CONDITIONAL = (*range(0x04, 0x0A), *range(0x17, 0x1B))
SOP1_SETPC = 0x20
# Encodings told by bits 31:26.
VINTRP = 0x32  # one word
VOP3P, VOP3 = 0x33, 0x35  # two, and a literal if a source says so
TWO_WORD = (0x36, 0x37, 0x38, 0x3A, 0x3D, 0x3E)  # DS, FLAT, MUBUF, MTBUF, SMEM, EXP


class Role(StrEnum):
    """What a word of the stream is."""

    START = "instruction"
    REST = "operand word"  # second and later words of an encoding
    LITERAL = "literal"
    UNREACHED = "not reached"


@dataclass(frozen=True, slots=True)
class Scan:
    """`roles` one a word. `found` are the BVH instructions by word index. `lookalikes` are word
    indices whose bits would be one but where none starts. `notes` say where the flow was lost."""

    roles: tuple[Role, ...]
    found: dict[int, Mimg]
    lookalikes: tuple[int, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Shape:
    words: int
    literal: bool = False  # the last of `words` is a literal
    targets: tuple[int, ...] = ()  # relative to the next instruction, in words
    falls_through: bool = True
    indirect: bool = False


def scan(words: Sequence[int]) -> Scan:
    """Every BVH instruction that a path from word 0 reaches."""
    roles = [Role.UNREACHED] * len(words)
    found: dict[int, Mimg] = {}
    notes: list[str] = []
    todo = [0] if words else []
    while todo:
        at = todo.pop()
        while 0 <= at < len(words) and roles[at] != Role.START:
            if roles[at] != Role.UNREACHED:
                notes.append(f"word {at} is entered as an instruction and is a {roles[at]}")
                break
            shape = _shape(words[at], words[at + 1] if at + 1 < len(words) else 0)
            if shape is None:
                notes.append(f"word {at}: 0x{words[at]:08x} is no RDNA2 encoding")
                break
            end = at + shape.words
            if end > len(words):
                notes.append(f"word {at}: the instruction is cut off")
                break
            roles[at] = Role.START
            roles[at + 1 : end] = [Role.REST] * (shape.words - 1)
            if shape.literal:
                roles[end - 1] = Role.LITERAL
            if is_bvh_word(words[at]):
                found[at] = decode(words[at:end])
            if shape.indirect:
                notes.append(f"word {at}: an indirect jump, its target is not followed")
            todo += [end + target for target in shape.targets]
            if not shape.falls_through:
                break
            at = end
        else:
            if not 0 <= at <= len(words):  # to run off the end of a fragment is no jump
                notes.append(f"the flow leaves the stream at word {at}")
    lookalikes = [i for i, w in enumerate(words) if is_bvh_word(w) and roles[i] != Role.START]
    return Scan(tuple(roles), dict(sorted(found.items())), tuple(lookalikes), tuple(notes))


def _shape(word: int, following: int) -> _Shape | None:
    if word >> 31 == 0:
        return _vector(word)
    if word >> 30 == 0b10:
        return _scalar(word)
    encoding = word >> 26
    if encoding == VINTRP:
        return _Shape(1)
    if encoding == MIMG_ENCODING:
        return _Shape(2 + (word >> 1 & 3))
    if encoding in (VOP3, VOP3P):
        sources = (following & 0x1FF, following >> 9 & 0x1FF, following >> 18 & 0x1FF)
        return _Shape(2 + (LITERAL in sources), literal=LITERAL in sources)
    return _Shape(2) if encoding in TWO_WORD else None


def _vector(word: int) -> _Shape:
    """VOP1, VOP2, VOPC."""
    source = word & 0x1FF
    opcode = word >> 25
    constant = opcode < 0x3E and opcode in CONSTANT_VOP2
    literal = source == LITERAL
    extra = constant or literal or source in EXTRA_WORD_SOURCES
    return _Shape(1 + extra, literal=constant or literal)


def _scalar(word: int) -> _Shape:
    offset = (word & 0xFFFF ^ 0x8000) - 0x8000
    top = word >> 23
    if top == 0b101111111:
        opcode = word >> 16 & 0x7F
        if opcode in SOPP_ENDS:
            return _Shape(1, falls_through=False)
        if opcode == SOPP_BRANCH:
            return _Shape(1, targets=(offset,), falls_through=False)
        return _Shape(1, targets=(offset,) if opcode in SOPP_CONDITIONAL else ())
    if top == 0b101111101:
        literal = word & 0xFF == LITERAL
        jump = word >> 8 & 0xFF
        return _Shape(
            1 + literal,
            literal=literal,
            falls_through=jump != SOP1_SETPC,
            indirect=jump in (SOP1_SETPC, SOP1_SETPC + 1),
        )
    if word >> 28 == 0b1011 and top != 0b101111110:
        opcode = word >> 23 & 0x1F
        literal = opcode == SOPK_SETREG_IMM32
        jumps = opcode == SOPK_CALL or opcode in SOPK_LOOPS
        return _Shape(1 + literal, literal=literal, targets=(offset,) if jumps else ())
    literal = LITERAL in (word & 0xFF, word >> 8 & 0xFF)
    return _Shape(1 + literal, literal=literal)
