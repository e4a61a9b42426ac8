"""Facts about the instruction's encoding and about finding it in a program."""

from bvh.contract.facts.row import Row

ROWS = (
    Row(
        "mimg.opcode",
        "opcode = word0[24:18] | word0[0] << 7; 0xE6 takes a 32-bit pointer, 0xE7 a 64-bit one. "
        "word0[31:26] is 0x3C.",
        "observed",
        "KY, LLVM",
        ("mimg.MIMG_ENCODING", "mimg.OPCODE_BVH", "mimg.OPCODE_BVH64", "mimg.OPCODE_NAMES",
         "mimg:opcode_low", "mimg:opcode_high", "mimg:encoding"),
    ),
    Row(
        "mimg.length",
        "An MIMG instruction has 2 + word0[2:1] words; each extra word names four registers.",
        "observed",
        "KY, LLVM",
        ("mimg:nsa", "mimg.NSA_ADDRESSES"),
    ),
    Row(
        "mimg.registers",
        "word1: address register or the first of them 7:0, first of four result registers 15:8, "
        "descriptor SGPR / 4 at 20:16.",
        "observed",
        "LLVM",
        ("mimg:vaddr", "mimg:vdata", "mimg:srsrc", "mimg:ssamp", "mimg.RESULT_REGISTERS"),
    ),
    Row(
        "mimg.restrictions",
        "dmask 0xF, D16 0, R128 1, UNRM 1, DIM 1D, LWE 0, TFE 0.",
        "documented",
        "IS2, IS3, IS4",
        ("mimg:dmask", "mimg:d16", "mimg:r128", "mimg:unrm", "mimg:dim", "mimg:lwe", "mimg:tfe",
         "mimg.VARIANTS"),
    ),
    Row("mimg.cache", "GLC, SLC and DLC set cache policies and change no result.", "observed",
        "LLVM", ("mimg:glc", "mimg:slc", "mimg:dlc")),
    Row("mimg.a16", "word1[30] is A16; refused (see operands.a16).", "observed", "LLVM, KY",
        ("mimg:a16",)),
    Row(
        "program.lengths",
        "Instruction lengths follow the RDNA2 encodings: literals of source 255, DPP and SDWA "
        "words, constants of the multiply-add VOP2s, a literal behind VOP3.",
        "observed",
        "LLVM",
        ("program.LITERAL", "program.EXTRA_WORD_SOURCES", "program.CONSTANT_VOP2",
         "program.SOPK_SETREG_IMM32", "program.VINTRP", "program.VOP3P", "program.VOP3",
         "program.TWO_WORD"),
    ),
    Row(
        "program.flow",
        "Branches, calls, loops and program ends are followed; indirect jumps are reported.",
        "observed",
        "LLVM",
        ("program.SOPK_CALL", "program.SOPK_LOOPS", "program.SOPP_ENDS", "program.SOPP_BRANCH",
         "program.SOPP_CONDITIONAL", "program.SOP1_SETPC"),
    ),
)  # fmt: skip
