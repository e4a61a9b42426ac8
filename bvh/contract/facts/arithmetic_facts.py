"""Facts about the arithmetic: which rays are tested, the box test, the triangle test."""

from bvh.contract.facts.row import Row

ROWS = (
    Row(
        "ray.validity",
        "A NaN in extent, origin, direction or inverse, or an infinite origin, is refused; "
        "infinite directions and inverses are allowed.",
        "observed",
        "KY",
        rules="chapter",
    ),
    Row(
        "box.slab",
        "Per axis lo = (min - origin) * inv and hi likewise, two roundings; inv >= 0 (also -0) "
        "keeps them, else they swap. entry = max of nears, exit = min of fars, x, y, then z.",
        "observed",
        "KY, KA, GP",
    ),
    Row(
        "box.nan",
        "Minimum and maximum with a NaN operand: minNum and maxNum here. GPURT's emulation "
        "ignores NaN; the language of the chapter's helper leaves it open.",
        "unknown",
        "GP, KY",
        experiment="On RDNA2: vector box32_on_plane; child 0x10 says NaN is ignored, 0xffffffff "
        "says it wins.",
    ),
    Row(
        "box.hit_chapter",
        "Hit if exit >= 0, entry < extent (strict) and entry <= grown exit, growth adding g to "
        "the exit's bits, at most infinity.",
        "observed",
        "KY",
        ("box.INFINITY_BITS",),
        rules="chapter",
    ),
    Row(
        "box.hit_gpurt",
        "Hit if max(entry, 0) <= min(exit, extent) * (1 + g 2^-24): extent inclusive, growth 1 "
        "without effect. All entries or all exits NaN is a miss.",
        "observed",
        "GP, KA",
        ("box.GROWTH_STEP",),
        rules="gpurt",
    ),
    Row(
        "box.hardware_growth",
        "Which growth, and whether entry == extent hits on hardware (GPURT is AMD's own "
        "emulation, so the better proxy).",
        "unknown",
        "GP, KY",
        experiment="On RDNA2: vectors box32_grow1 and box32_extent_equal; each rule set predicts "
        "other words.",
    ),
    Row(
        "box.sort_chapter",
        "Keys are the bits of max(entry, 0), infinity for a miss; comparators (0,1)(2,3)(0,2)"
        "(1,3)(1,2) swap if left > right.",
        "observed",
        "KY",
        ("box.CHAPTER_NETWORK",),
        rules="chapter",
    ),
    Row(
        "box.sort_gpurt",
        "Keys are max(entry, 0); comparators (0,2)(1,3)(0,1)(2,3)(1,2) swap if the right pointer "
        "is valid and nearer, or the left is 0xffffffff (also a hit slot with that pointer).",
        "observed",
        "GP, KA",
        ("box.GPURT_NETWORK",),
        rules="gpurt",
    ),
    Row(
        "box.sort_hardware",
        "The order of equal distances on hardware.",
        "unknown",
        "-",
        experiment="On RDNA2: four slots of which the first misses and the rest tie; the two "
        "networks return different orders.",
    ),
    Row(
        "triangle.chapter",
        "Dominant axis (ties prefer x, then y), cyclic rotation, shear scaled by dz, edge values, "
        "weights edge * dz; misses on mixed signs, zero denominator, NaN numerator, negative t.",
        "observed",
        "KY",
        ("triangle.NEXT", "triangle.AFTER_NEXT", "triangle.AXIS_ORDER"),
        rules="chapter",
    ),
    Row(
        "triangle.edge_owner",
        "A zero edge is excluded by which way it runs past the ray, so one of two triangles "
        "owns a shared edge.",
        "observed",
        "KY",
        rules="chapter",
    ),
    Row(
        "triangle.gpurt",
        "Edge cross products; misses if u < 0, u > 1, v < 0, u + v > 1 or t < 0 after correctly "
        "rounded divisions. Inclusive edges, not watertight. Source 0 is (t_denom - I) - J, "
        "after a miss has overwritten t_denom.",
        "observed",
        "GP",
        rules="gpurt",
    ),
    Row(
        "triangle.scale",
        "The chapter's words are GPURT's times dz^2; t and the weights agree after division.",
        "inferred",
        "KY, GP",
    ),
    Row(
        "triangle.facing",
        "Positive t_denom is front in RADV, not negative is front in GPURT; the instruction "
        "accepts both windings.",
        "observed",
        "RV, GP",
    ),
    Row(
        "triangle.hardware",
        "Scale, rounding and edge rule of the triangle test on hardware.",
        "unknown",
        "-",
        experiment="On RDNA2: vectors tri_kind0_domX (scale) and tri_bottom_edge_excluded (edge "
        "rule).",
    ),
)  # fmt: skip
