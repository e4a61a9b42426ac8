"""Facts about bytes: node pointers, triangle blocks, box nodes, software-defined nodes."""

from bvh.contract.facts.row import Row

ROWS = (
    Row(
        "pointer.type",
        "Bits 2:0 of a node pointer are the node type, the bits above are an index in 64-byte "
        "units from the descriptor's base.",
        "observed",
        "KY, GP, RV",
        ("layout.UNIT_BYTES", "layout.UNIT_WORDS", "pointer.TYPE_MASK", "pointer.TYPE_BITS",
         "pointer.UNIT_SHIFT"),
    ),
    Row(
        "pointer.word_index",
        "The 32-bit word index of a node is (pointer & ~7) << 1.",
        "inferred",
        "-",
    ),
    Row(
        "pointer.kinds",
        "Types 0 to 3 are triangles 0 to 3 of a block, 4 an FP16 box, 5 an FP32 box, 6 and 7 are "
        "user nodes (instance, procedural) whose bytes belong to software.",
        "observed",
        "GP, RV, KY",
        ("layout.NODE_TRIANGLE_0", "layout.NODE_TRIANGLE_1", "layout.NODE_TRIANGLE_2",
         "layout.NODE_TRIANGLE_3", "layout.NODE_BOX_FP16", "layout.NODE_BOX_FP32",
         "layout.NODE_INSTANCE", "layout.NODE_PROCEDURAL", "layout.NODE_NAMES",
         "layout.NODE_BYTES"),
    ),
    Row(
        "pointer.width",
        "The 32-bit form has 29 index bits (32 GiB of nodes), the 64-bit form 61; high bits are "
        "part of the index, and truncating them names another node.",
        "observed",
        "KY",
        ("pointer.POINTER_BITS",),
    ),
    Row(
        "pointer.address_limit",
        "The address of a node's last 64-byte block must lie below 2^48.",
        "observed",
        "KY",
        ("pointer.ADDRESS_LIMIT",),
        rules="chapter",
    ),
    Row(
        "pointer.invalid",
        "0xffffffff is the invalid child; GPURT's traversal also keeps fffffffe, fffffffd, "
        "fffffffb, fffffff9 and fffffff8 for itself.",
        "observed",
        "GP, RV",
        ("layout.INVALID_POINTER", "pointer.SENTINELS"),
    ),
    Row(
        "pointer.root",
        "GPURT's root is pointer 0x15 (byte 128, after a 128-byte header), RADV's 0x5; the root "
        "is an FP32 box in both.",
        "observed",
        "GP, RV",
        ("layout.HEADER_BYTES", "layout.ROOT_POINTER"),
    ),
    Row(
        "pointer.parent_link",
        "One u32 for each 64-byte unit, growing down: byte -(4 unit + 4) from RADV's tree base, "
        "byte -4 (unit - 1) from the start of GPURT's header; the root's is 0xffffffff.",
        "observed",
        "RV, GP",
        ("pointer.PARENT_LINK_BYTES",),
    ),
    Row(
        "triangle.vertices",
        "A triangle block holds vertices V0 to V4, three float32 each, at bytes 0, 12, 24, 36, 48.",
        "observed",
        "KY, KT",
        ("layout.TRIANGLE_V0_WORD", "layout.TRIANGLE_V1_WORD", "layout.TRIANGLE_V2_WORD",
         "layout.TRIANGLE_V3_WORD", "layout.TRIANGLE_V4_WORD"),
    ),
    Row(
        "triangle.slots",
        "Type 0 is V0,V1,V2, type 1 V1,V3,V2, type 2 V2,V3,V4, type 3 V2,V4,V0.",
        "observed",
        "KY, KA, KT, GP",
        ("layout.TRIANGLE_SLOTS",),
    ),
    Row(
        "triangle.types_2_3_on_hardware",
        "Whether an RDNA2 chip tests types 2 and 3 (GPURT's own fetch knows types 0 and 1 only).",
        "unknown",
        "GP, KY",
        experiment="On RDNA2: one block of five vertices, one ray a type through each triangle's "
        "centre; compare word 0 of types 2 and 3 with types 0 and 1 of two plain blocks.",
    ),
    Row(
        "triangle.tail",
        "Where V4 is not used, bytes 48, 52, 56 hold the geometry index (24 bits, flags above) and "
        "the primitive indices of triangles 0 and 1, as GPURT writes them for RTIP 1.1.",
        "observed",
        "GP",
        ("layout.TRIANGLE_GEOMETRY_WORD", "layout.TRIANGLE_PRIMITIVE_0_WORD",
         "layout.TRIANGLE_PRIMITIVE_1_WORD", "layout.GEOMETRY_INDEX_MASK"),
    ),
    Row(
        "triangle.geometry_opaque",
        "Bit 24 of the geometry word marks opaque geometry (GPURT's flags sit in that byte; the "
        "bit is our choice).",
        "ours",
        "-",
        ("layout.GEOMETRY_OPAQUE",),
    ),
    Row(
        "triangle.radv_tail",
        "RADV keeps the primitive id at byte 48, geometry id and flags at 52, and one triangle a "
        "block with flag word 9, plus 128 if opaque.",
        "observed",
        "RV",
    ),
    Row(
        "triangle.flag_byte",
        "Byte k of word 15 belongs to type k: bits 1:0 the source of I, 3:2 of J; with original "
        "vertices a,b,c: a = slot[3-I-J], b = slot[I], c = slot[J]; I is b's weight, J is c's.",
        "observed",
        "GP, KY",
        ("layout.TRIANGLE_FLAGS_WORD", "layout.FLAG_I_MASK", "layout.FLAG_J_SHIFT",
         "layout.ROTATION_NIBBLES", "triangle.FLAG_BYTE_BITS"),
    ),
    Row(
        "triangle.fan",
        "A pointer of type 2 or 3 leads to three or four triangles about V2. The high nibbles of "
        "its flag word hold the geometry index (15 bits, byte 0 lowest), bit 31 the opaque flag; "
        "no public builder makes such blocks.",
        "ours",
        "-",
        ("layout.FAN_GEOMETRY_LIMIT", "layout.FAN_OPAQUE"),
    ),
    Row(
        "triangle.fan_table",
        "Behind the leaves, two words for every 32 of them (which are fans; the row of the first), "
        "then rows of four primitive ids, types 0 to 3; rows count in 16 bytes from the table.",
        "ours",
        "-",
        ("layout.FAN_GROUP_LEAVES", "layout.FAN_GROUP_WORDS", "layout.FAN_ROW_WORDS"),
    ),
    Row(
        "triangle.flag_byte_high",
        "Bits 4 to 7 of a flag byte (double-sided, flip winding, procedural, opaque) are read by "
        "RTIP 2.0 and later only.",
        "observed",
        "GP",
        ("layout.FLAG_OPAQUE",),
    ),
    Row(
        "procedural.gpurt",
        "GPURT's procedural node, 64 bytes: box min at 0, max at 12, geometry and flags 48, "
        "reserved 52, primitive 56, one more word 60. The instruction reads none of it.",
        "observed",
        "GP",
        ("layout.PROCEDURAL_MIN_WORD", "layout.PROCEDURAL_MAX_WORD"),
    ),
    Row(
        "procedural.radv",
        "RADV's procedural node, 64 bytes: primitive id 0, geometry and flags 4, rest reserved.",
        "observed",
        "RV",
    ),
    Row(
        "procedural.sphere",
        "A sphere is GPURT's procedural node with the centre at byte 24, the radius at 36, its "
        "primitive id in both words 52 and 56, and 0x0909 at 60: entering and leaving it read as "
        "a block's triangles 0 and 1.",
        "ours",
        "-",
        ("layout.SPHERE_CENTER_WORD", "layout.SPHERE_RADIUS_WORD", "layout.SPHERE_RESERVED_WORD",
         "layout.SPHERE_FLAGS"),
    ),
    Row(
        "procedural.console",
        "What a console's software keeps in a procedural node.",
        "unknown",
        "-",
        experiment="On the console: capture a buffer that a game builds over procedural geometry; "
        "compare the words of its type 7 nodes with the boxes above them.",
    ),
    Row(
        "triangle.source_3_chapter",
        "Source value 3 selects the weight of source 0.",
        "observed",
        "KY",
        rules="chapter",
    ),
    Row(
        "triangle.source_3_gpurt",
        "Source value 3 indexes past GPURT's three entries; +0 here, as KA does.",
        "ours",
        "GP, KA",
        rules="gpurt",
    ),
    Row(
        "box.fp16",
        "FP16 box, 64 bytes: words 0-3 children, child c in words 4+3c..6+3c as min.x|min.y<<16, "
        "min.z|max.x<<16, max.y|max.z<<16. Halves convert exactly before the test.",
        "observed",
        "KY, GP, RV",
        ("layout.BOX_WIDTH", "layout.BOX_BOUNDS_WORD", "layout.BOX_FP16_CHILD_WORDS"),
    ),
    Row(
        "box.fp32",
        "FP32 box, 128 bytes: words 0-3 children, child c in words 4+6c..9+6c as min xyz, max "
        "xyz; words 28-31 are not read by the test.",
        "observed",
        "KY, GP, RV",
        ("layout.BOX_FP32_CHILD_WORDS", "layout.BOX_FP32_TAIL_WORD"),
    ),
    Row(
        "box.tail",
        "GPURT keeps four flag bytes in word 28 and a primitive count in word 29, RADV opacity "
        "flags in word 28; RTIP 1.1 reads neither.",
        "observed",
        "GP, RV",
    ),
    Row(
        "box.empty_slot",
        "RADV marks an empty slot by pointer 0xffffffff and NaN bounds: the only marker that "
        "misses in all three models. GPURT's zero bounds can be hit by a ray from zero.",
        "observed",
        "RV, GP",
        ("layout.EMPTY_BOUND_FP32", "layout.EMPTY_BOUND_FP16"),
    ),
    Row(
        "box.denormals",
        "Whether hardware flushes denormal halves or floats in the box test; they are kept here.",
        "unknown",
        "-",
        experiment="On RDNA2: an FP16 box of bounds +-2^-24 and a ray that misses the zero-sized "
        "box by 2^-25; a hit says that denormals are kept.",
    ),
    Row(
        "box.fp16_rounding",
        "Builders round minima toward -infinity and maxima toward +infinity.",
        "observed",
        "GP",
    ),
    Row(
        "box.fp16_overflow",
        "Beyond 65504 directed rounding gives infinity on the outer side and 65504 on the inner.",
        "inferred",
        "-",
        ("half.HALF_INFINITY", "half.HALF_MAX", "half.HALF_NAN"),
    ),
    Row(
        "instance.radv",
        "RADV's instance node, 128 bytes: 0 u64 BLAS pointer, 8 custom index and mask, 12 SBT "
        "offset and flags, 16 world-to-object 3x4, 64 instance id, 68 BLAS offset, 80 "
        "object-to-world 3x4.",
        "observed",
        "RV",
        ("layout.INSTANCE_BLAS_WORD", "layout.INSTANCE_CUSTOM_WORD",
         "layout.INSTANCE_OBJECT_WORD", "layout.INSTANCE_WORLD_TO_OBJECT_WORD",
         "layout.INSTANCE_ID_WORD", "layout.INSTANCE_OBJECT_TO_WORLD_WORD",
         "layout.INSTANCE_INDEX_MASK", "layout.INSTANCE_MASK_SHIFT",
         "layout.INSTANCE_FORCE_OPAQUE", "layout.INSTANCE_NO_FORCE_NON_OPAQUE",
         "layout.INSTANCE_DISABLE_FACING_CULL", "layout.INSTANCE_FLIP_FACING"),
    ),
    Row(
        "instance.ours",
        "Our instance node is RADV's with the BLAS base in 64-byte units at byte 68, its geometry "
        "count at 72, and the SBT offset as index of the first object.",
        "ours",
        "-",
        ("layout.INSTANCE_BLAS_BASE_WORD", "layout.INSTANCE_GEOMETRY_COUNT_WORD",
         "layout.INSTANCE_RESERVED_WORD"),
    ),
    Row(
        "instance.gpurt",
        "GPURT's instance node, 128 bytes: 0 inverse 3x4, 48 id and mask, 52 hit contribution and "
        "flags, 56 u64 BLAS base pointer, 64 instance index, 68 BLAS node pointer, 80 3x4.",
        "observed",
        "GP",
    ),
    Row(
        "instance.console",
        "How a console's builder lays out an instance node.",
        "unknown",
        "-",
        experiment="One captured scene with one translated instance, then the same with another "
        "translation: the words of the type 6 node that change are its matrix.",
    ),
    Row(
        "instance.entry",
        "Entering an instance tests the mask, transforms the origin as a point and the direction "
        "as a vector without renormalising, and recomputes 1/direction.",
        "observed",
        "GP, RV",
    ),
)  # fmt: skip
