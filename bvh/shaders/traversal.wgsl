// What every traversal kernel shares: its switches, its sentinels, how it fails, and which
// geometric hits count. `trace(ray, zero)` itself comes from the file in the $traverse slot:
// traverse.wgsl (fast mode) or traverse_contract.wgsl (every node through the instruction). The
// $ray_types slot says what differs between ray types: ANY_HIT, SORT and RAY_MASK.

#import bvh.layout
#import "bvh/shaders/ray.wgsl"
#import $ray_types

override TWO_LEVEL: bool = true; // false: start in the only instance's BLAS
override HAS_FP16: bool = true;
override HAS_ALPHA: bool = true; // false: every triangle counts as opaque
override WHILE_WHILE: bool = false; // true: descend to a leaf before any lane tests triangles
// true: for drivers that execute both sides of an `if` under a mask, however few lanes want one (CPU
// drivers do; bvh/gpu/default_kernel.py). What both sides read is read before them, and alpha tests
// stand in a loop of their own around the others, where lanes come that have a candidate.
override UNDER_MASK: bool = false;
override RAY_FLAGS: u32 = 0u; // bits of bvh.rays.RayFlags
override START_INSTANCE_UNIT: u32 = 0u; // with TWO_LEVEL false: that instance's node, in 64-byte units
// true: a node that does not lie in the buffer ends the ray. For bytes that nobody has validated:
// the language's own clamping would read another node and say nothing.
override CHECK_POINTERS: bool = false;

const RAY_FORCE_OPAQUE: u32 = 1u;
const RAY_FORCE_NON_OPAQUE: u32 = 2u;
const RAY_CULL_BACK: u32 = 16u;
const RAY_CULL_FRONT: u32 = 32u;
const RAY_CULL_OPAQUE: u32 = 64u;
const RAY_CULL_NON_OPAQUE: u32 = 128u;
const RAY_CULLS: u32 = 240u;
const RAY_REJECT: u32 = 65536u;

const FAILED_STACK: u32 = 1u;
const FAILED_NODE: u32 = 2u;
const FAILED_STEPS: u32 = 4u;
const FAILED_POINTER: u32 = 8u;

// Two stack values that no node has, both of type 7, so that they meet in one branch.
const LEAVE_INSTANCE: u32 = 0xfffffff7u;
const FINISHED: u32 = 0xffffffffu;
const MAX_STEPS: u32 = 100000u; // bounds a dispatch on a corrupt buffer

var<private> leaves_sphere: bool; // whether the hit is where the ray leaves a sphere

struct TraceResult {
    hit: Hit,
    failed: u32,
}

const REFUSED: u32 = 0u;
const COUNTS: u32 = 1u;
const ASK: u32 = 2u; // the alpha test decides

// Whether a geometric hit counts: facing and opacity, flags from strongest to weakest: the ray's,
// the instance's, the geometry's. `geometry` is the block's geometry word.
fn judge(front: bool, geometry: u32, instance_flags: u32) -> u32 {
    if ((RAY_FLAGS & (RAY_CULL_BACK | RAY_CULL_FRONT)) != 0u
            && (instance_flags & INSTANCE_DISABLE_FACING_CULL) == 0u) {
        let seen_front = front != ((instance_flags & INSTANCE_FLIP_FACING) != 0u);
        if ((RAY_FLAGS & select(RAY_CULL_BACK, RAY_CULL_FRONT, seen_front)) != 0u) {
            return REFUSED;
        }
    }
    var opaque = (geometry & GEOMETRY_OPAQUE) != 0u
        || (instance_flags & INSTANCE_FORCE_OPAQUE) != 0u;
    if ((instance_flags & INSTANCE_NO_FORCE_NON_OPAQUE) == 0u) { opaque = false; }
    if ((RAY_FLAGS & RAY_FORCE_OPAQUE) != 0u) { opaque = true; }
    if ((RAY_FLAGS & RAY_FORCE_NON_OPAQUE) != 0u) { opaque = false; }
    if ((RAY_FLAGS & select(RAY_CULL_NON_OPAQUE, RAY_CULL_OPAQUE, opaque)) != 0u) {
        return REFUSED;
    }
    return select(ASK, COUNTS, opaque || !HAS_ALPHA);
}
