// Float32 values as bits: what needs no arithmetic. WGSL may assume that NaN and infinity do not
// occur, so they are recognised, compared and ordered as integers.

const SIGN: u32 = 0x80000000u;
const MAGNITUDE: u32 = 0x7fffffffu;
const INFINITY: u32 = 0x7f800000u;
const QUIET_NAN: u32 = 0x7fc00000u; // what every NaN result is written as (ours)
const ONE: u32 = 0x3f800000u;

fn is_nan(x: u32) -> bool {
    return (x & MAGNITUDE) > INFINITY;
}

fn is_nan4(x: vec4u) -> vec4<bool> {
    return (x & vec4u(MAGNITUDE)) > vec4u(INFINITY);
}

fn negate4(x: vec4u) -> vec4u {
    return x ^ vec4u(SIGN);
}

// An integer that orders like the number; both zeros give 0. NaN has to be tested apart.
fn order4(x: vec4u) -> vec4i {
    let m = vec4i(x & vec4u(MAGNITUDE));
    return select(m, -m, (x & vec4u(SIGN)) != vec4u(0u));
}

// Comparisons are false where either side is NaN.
fn less4(a: vec4u, b: vec4u) -> vec4<bool> {
    return (order4(a) < order4(b)) & !(is_nan4(a) | is_nan4(b));
}

fn less_equal4(a: vec4u, b: vec4u) -> vec4<bool> {
    return (order4(a) <= order4(b)) & !(is_nan4(a) | is_nan4(b));
}

fn less(a: u32, b: u32) -> bool {
    return less4(vec4u(a), vec4u(b)).x;
}

// minNum and maxNum of IEEE 754-2008: a NaN loses against a number.
fn min_num4(a: vec4u, b: vec4u) -> vec4u {
    return select(b, a, is_nan4(b) | (less_equal4(a, b)));
}

fn max_num4(a: vec4u, b: vec4u) -> vec4u {
    return select(b, a, is_nan4(b) | (less_equal4(b, a)));
}

// binary16 in the low 16 bits -> float32, exact: denormals stay, NaN becomes the quiet one.
fn half_to_float4(halves: vec4u) -> vec4u {
    let sign = (halves & vec4u(0x8000u)) << vec4u(16u);
    let m = halves & vec4u(0x7fffu);
    let normal = (m << vec4u(13u)) + vec4u(112u << 23u);
    // A denormal half is m * 2^-24: put its leading one where float32 implies it.
    let rise = countLeadingZeros(max(m, vec4u(1u))) - vec4u(8u);
    let small = ((vec4u(125u) - rise) << vec4u(23u)) + (m << rise);
    var bits = select(normal, small, m < vec4u(0x400u));
    bits = select(bits, vec4u(0u), m == vec4u(0u));
    bits = select(bits, vec4u(INFINITY), m == vec4u(0x7c00u));
    bits = select(bits, vec4u(QUIET_NAN), m > vec4u(0x7c00u));
    return sign | bits;
}
