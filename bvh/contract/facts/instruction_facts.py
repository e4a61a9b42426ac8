"""Facts about the instruction around its tests: descriptor, memory, operands, result words."""

from bvh.contract.facts.row import Row

ROWS = (
    Row(
        "descriptor.base",
        "Bits 39:0 are the base address / 256; a node lies at base + 64 * index.",
        "documented",
        "PAL, IS3",
        ("descriptor:base", "layout.BASE_ALIGN_BYTES", "descriptor.BASE_SHIFT"),
    ),
    Row(
        "descriptor.growth",
        "Bits 62:55 are the box growth in ULPs; GPURT and Cycles use 6, RADV 0.",
        "documented",
        "PAL, IS3, GP, CY, RV",
        ("descriptor:growth", "layout.DEFAULT_GROWTH"),
    ),
    Row("descriptor.sort", "Bit 63 sorts the children of a box node.", "documented", "PAL, IS3",
        ("descriptor:sort",)),
    Row(
        "descriptor.size",
        "Bits 105:64 are the number of 64-byte units minus 1.",
        "documented",
        "PAL, IS3",
        ("descriptor:last_unit",),
    ),
    Row(
        "descriptor.return_mode",
        "Bit 120 selects the triangle result: 1 barycentric numerators, 0 triangle id and hit.",
        "documented",
        "PAL, IS3",
        ("descriptor:return_mode",),
    ),
    Row(
        "descriptor.cache",
        "Bits 122:121 are the LLC policy on gfx10.3, bit 123 marks big pages; neither changes a "
        "result.",
        "documented",
        "PAL, IS3, CY",
        ("descriptor:llc_policy", "descriptor:big_page"),
    ),
    Row("descriptor.type", "Bits 127:124 are the resource type, 8 for a BVH.", "documented",
        "PAL, IS3", ("descriptor:type", "layout.DESCRIPTOR_TYPE")),
    Row(
        "descriptor.other",
        "Bits 54:40 are zero in RDNA2 and RDNA3.5; RDNA4 and gfx11 put sorting options at 54:52, "
        "RDNA3 pointer flags at 119. Kept as they are, not interpreted.",
        "documented",
        "PAL, IS3, IS4",
    ),
    Row(
        "descriptor.no_format",
        "No field selects a node format on this generation: the pointer's type does.",
        "inferred",
        "-",
    ),
    Row(
        "range.check",
        "The last block (index, or index + 1 of an FP32 box) must not exceed the size field, the "
        "type must be 8 and the node type at most 5; else the reject words.",
        "observed",
        "KY",
        rules="chapter",
    ),
    Row(
        "range.none",
        "The emulation checks neither type, size nor ray; an unreadable block gives the reject "
        "words here (ours).",
        "observed",
        "GP",
        rules="gpurt",
    ),
    Row(
        "range.hardware",
        "What hardware returns for a node beyond the descriptor's size.",
        "unknown",
        "-",
        experiment="On RDNA2: vector box32_bound_reject; four words 0xffffffff say reject, the "
        "children say no check, zeros say clamped reads.",
    ),
    Row(
        "memory.block",
        "A node is fetched in 64-byte blocks; the two of an FP32 box are translated apart, so a "
        "node may cross guest pages.",
        "observed",
        "KY",
    ),
    Row(
        "memory.page",
        "Guest pages are 64 KiB here, the granularity of the chapter's memory.",
        "ours",
        "-",
        ("memory.PAGE_BYTES", "memory.PAGE_WORDS"),
    ),
    Row(
        "memory.unavailable",
        "A block that is not available gives the reject words of its node type, and never zeros.",
        "observed",
        "KY",
    ),
    Row(
        "operands.order",
        "Address registers: node (one or two words, low first), extent, origin xyz, direction "
        "xyz, inverse direction xyz: 11 or 12. The inverse is an input, not recomputed.",
        "documented",
        "IS2, IS3, IS4, KY",
        ("wave.RAY_REGISTERS",),
    ),
    Row(
        "operands.a16",
        "A16 shrinks direction and inverse direction to halves in three words, in the order dir.x "
        "dir.y, dir.z inv.x, inv.y inv.z.",
        "inferred",
        "IS4, KA",
    ),
    Row(
        "operands.a16_order_hardware",
        "Whether RDNA2 packs A16 operands so, or (dir.k, inv.k) an axis as RDNA3.5 does.",
        "unknown",
        "IS3, IS4",
        experiment="On RDNA2: one A16 instruction on a box node with direction (1,2,4) and inverse "
        "(1,1/2,1/4), boxes that only one reading hits.",
    ),
    Row(
        "exec.inactive",
        "A lane whose EXEC bit is clear keeps its destination registers and loads nothing.",
        "observed",
        "KY",
        ("wave.WAVE_SIZES", "wave.INACTIVE"),
    ),
    Row(
        "result.box",
        "A box node returns its child pointers, 0xffffffff for a missed child; unsorted, each "
        "keeps its place.",
        "observed",
        "KY, GP",
    ),
    Row(
        "result.triangle",
        "A triangle returns t_num, t_denom, I_num, J_num in mode 1.",
        "documented",
        "IS3, IS4",
    ),
    Row(
        "result.triangle_miss",
        "A miss returns t_num infinity and t_denom 1; in mode 1 words 2 and 3 are still weights.",
        "observed",
        "KY, GP",
        ("triangle.MISS_T_NUM", "triangle.MISS_T_DENOM"),
    ),
    Row(
        "result.triangle_id",
        "Mode 0: word 2 is flag word + type (wrapping), word 3 is 1 for a hit.",
        "observed",
        "KY",
        rules="chapter",
    ),
    Row(
        "result.triangle_id_gpurt",
        "GPURT has no mode 0; words 2 and 3 are the chapter's here, while KA, which has GPURT's "
        "arithmetic, returns the flag word without the type.",
        "ours",
        "KA",
        rules="gpurt",
    ),
    Row(
        "result.triangle_id_hardware",
        "What hardware puts into word 2 in mode 0.",
        "unknown",
        "KY",
        experiment="On RDNA2: vector tri_kind1_id with a flag word of four different bytes; the "
        "word tells flag + type from one byte or a plain id.",
    ),
    Row(
        "result.reject",
        "Refused: types 0-3 give 7f800000 3f800000 ffffffff 0 in either mode, all others four "
        "words ffffffff.",
        "observed",
        "KY",
        ("intersect.TRIANGLE_REJECT", "intersect.BOX_REJECT"),
    ),
    Row("result.user_node", "Types 6 and 7 return four words ffffffff.", "observed", "GP, KY"),
    Row(
        "result.extent",
        "The extent is ignored for triangles: the shader compares t itself.",
        "observed",
        "KY, GP, RV",
    ),
    Row(
        "result.nan",
        "Every NaN in a result word is 0x7fc00000; payloads and signs are not modelled, and a "
        "comparison takes any NaN for any other.",
        "ours",
        "-",
        ("triangle.NAN_BITS",),
    ),
)  # fmt: skip
