// Float32 arithmetic on bits, IEEE 754 to the last bit on every adapter: round to nearest even,
// one rounding an operation, denormals kept, every NaN result 7fc00000.
//
// WGSL lets a compiler fuse a product into a sum, flush denormals, assume that no NaN exists and
// divide with an error. So values are u32 here. Where both operands are of a size at which no
// result can be denormal or overflow, the adapter's own `+` and `*` are used, each with a barrier
// (an exclusive or with a zero from a buffer) that keeps a driver from fusing or factoring them:
// drivers were seen to turn a*b + c into one rounding and a*b + c*b into (a + c)*b, and to see
// through everything but an integer operation on the bits that they cannot fold. All else, division
// included, is integer arithmetic. engine/gpu/probe.py checks the two assumptions: normal sums and
// products are rounded to nearest, and the barrier holds.
//
// Drivers paste all of this wherever it is called, so users call it in loops where they can: lines
// of calls made kernels that took a CPU driver 5 s to compile.
#import "bvh/contract/shaders/float_bits.wgsl"

// 0, from a buffer, so that no compiler can fold it away. Whoever uses this file sets it first.
var<private> contract_zero: u32;

// Sums of numbers that are 0 or have exponent fields of 25 to 253 are exact multiples of 2^-125:
// 0 or normal, never infinite.
fn sum_is_plain(x: vec4u) -> vec4<bool> {
    let m = x & vec4u(MAGNITUDE);
    return (m == vec4u(0u)) | ((m - vec4u(25u << 23u)) < vec4u(229u << 23u));
}

// Products of normal numbers whose exponent fields sum to 128 to 380 are normal; zeros may meet
// anything finite.
fn product_is_plain(a: vec4u, b: vec4u) -> vec4<bool> {
    let m = a & vec4u(MAGNITUDE);
    let n = b & vec4u(MAGNITUDE);
    let inside = vec4u(254u << 23u);
    let smallest = vec4u(1u << 23u);
    let normal = ((m - smallest) < inside) & ((n - smallest) < inside);
    let exponents = (m >> vec4u(23u)) + (n >> vec4u(23u));
    let zero = ((m == vec4u(0u)) & (n < vec4u(INFINITY)))
        | ((n == vec4u(0u)) & (m < vec4u(INFINITY)));
    return zero | (normal & ((exponents - vec4u(128u)) < vec4u(253u)));
}

fn add4(a: vec4u, b: vec4u) -> vec4u {
    var sum = bitcast<vec4u>(bitcast<vec4f>(a) + bitcast<vec4f>(b)) ^ vec4u(contract_zero);
    let plain = sum_is_plain(a) & sum_is_plain(b);
    if (!all(plain)) {
        for (var lane = 0u; lane < 4u; lane += 1u) {
            if (!plain[lane]) { sum[lane] = soft_add(a[lane], b[lane]); }
        }
    }
    return sum;
}

fn mul4(a: vec4u, b: vec4u) -> vec4u {
    var product = bitcast<vec4u>(bitcast<vec4f>(a) * bitcast<vec4f>(b)) ^ vec4u(contract_zero);
    let plain = product_is_plain(a, b);
    if (!all(plain)) {
        for (var lane = 0u; lane < 4u; lane += 1u) {
            if (!plain[lane]) { product[lane] = soft_mul(a[lane], b[lane]); }
        }
    }
    return product;
}

fn sub4(a: vec4u, b: vec4u) -> vec4u {
    return add4(a, negate4(b));
}

fn div(a: u32, b: u32) -> u32 {
    return soft_div(a, b);
}

// A 27-bit significand (leading one at bit 26, the lowest bit sticky) at exponent field `exponent`
// (any value) -> the nearest float.
fn round_pack(sign: u32, given_exponent: i32, given: u32) -> u32 {
    var exponent = given_exponent;
    var significand = given;
    if (exponent < 1) {
        let shift = min(u32(1 - exponent), 27u);
        let lost = significand & ((1u << shift) - 1u);
        significand = (significand >> shift) | select(0u, 1u, lost != 0u);
        exponent = 1;
    }
    if (exponent > 254) { return sign | INFINITY; }
    let tail = significand & 7u;
    var kept = significand >> 3u;
    if (tail > 4u || (tail == 4u && (kept & 1u) == 1u)) { kept += 1u; }
    // The leading one adds the last unit of the exponent; without it the number is denormal.
    return sign | min((u32(exponent - 1) << 23u) + kept, INFINITY);
}

fn soft_add(a: u32, b: u32) -> u32 {
    if (is_nan(a) || is_nan(b)) { return QUIET_NAN; }
    let swap = (a & MAGNITUDE) < (b & MAGNITUDE);
    let large = select(a, b, swap);
    let small = select(b, a, swap);
    let sign = large & SIGN;
    let opposite = ((a ^ b) & SIGN) != 0u;
    let large_field = (large & MAGNITUDE) >> 23u;
    let small_field = (small & MAGNITUDE) >> 23u;
    if (large_field == 255u) {
        if (small_field == 255u && opposite) { return QUIET_NAN; }
        return large;
    }
    var exponent = i32(max(large_field, 1u));
    let m = ((large & 0x7fffffu) | select(0u, 0x800000u, large_field > 0u)) << 3u;
    let given = ((small & 0x7fffffu) | select(0u, 0x800000u, small_field > 0u)) << 3u;
    let shift = min(u32(exponent) - max(small_field, 1u), 27u);
    let lost = given & ((1u << shift) - 1u);
    let n = (given >> shift) | select(0u, 1u, lost != 0u);
    if (!opposite) {
        var sum = m + n;
        if (sum >= 0x8000000u) {
            sum = (sum >> 1u) | (sum & 1u);
            exponent += 1;
        }
        return round_pack(sign, exponent, sum);
    }
    let difference = m - n;
    if (difference == 0u) { return 0u; }
    let rise = min(countLeadingZeros(difference) - 5u, u32(exponent) - 1u);
    return round_pack(sign, exponent - i32(rise), difference << rise);
}

struct Unpacked {
    exponent: i32,
    significand: u32, // 24 bits, leading one at bit 23
}

fn unpack_normal(x: u32) -> Unpacked {
    let field = (x & MAGNITUDE) >> 23u;
    let fraction = x & 0x7fffffu;
    if (field > 0u) { return Unpacked(i32(field), fraction | 0x800000u); }
    let rise = countLeadingZeros(fraction) - 8u;
    return Unpacked(1 - i32(rise), fraction << rise);
}

fn soft_mul(a: u32, b: u32) -> u32 {
    let sign = (a ^ b) & SIGN;
    let m = a & MAGNITUDE;
    let n = b & MAGNITUDE;
    if (max(m, n) > INFINITY) { return QUIET_NAN; }
    if (max(m, n) == INFINITY) { return select(sign | INFINITY, QUIET_NAN, min(m, n) == 0u); }
    if (min(m, n) == 0u) { return sign; }
    let x = unpack_normal(m);
    let y = unpack_normal(n);
    // 24 x 24 bits in halves of 12: high * 2^24 + low.
    let xh = x.significand >> 12u;
    let xl = x.significand & 0xfffu;
    let yh = y.significand >> 12u;
    let yl = y.significand & 0xfffu;
    let middle = xh * yl + xl * yh;
    let sum = xl * yl + ((middle & 0xfffu) << 12u);
    let high = xh * yh + (middle >> 12u) + (sum >> 24u);
    let low = sum & 0xffffffu;
    let exponent = x.exponent + y.exponent - 127;
    if (high >= 0x800000u) {
        let sticky = select(0u, 1u, (low & 0x1fffffu) != 0u);
        return round_pack(sign, exponent + 1, (high << 3u) | (low >> 21u) | sticky);
    }
    let sticky = select(0u, 1u, (low & 0xfffffu) != 0u);
    return round_pack(sign, exponent, (high << 4u) | (low >> 20u) | sticky);
}

fn soft_div(a: u32, b: u32) -> u32 {
    let sign = (a ^ b) & SIGN;
    let m = a & MAGNITUDE;
    let n = b & MAGNITUDE;
    if (max(m, n) > INFINITY || (m == n && (m == 0u || m == INFINITY))) { return QUIET_NAN; }
    if (m == INFINITY || n == 0u) { return sign | INFINITY; }
    if (m == 0u || n == INFINITY) { return sign; }
    let x = unpack_normal(m);
    let y = unpack_normal(n);
    var exponent = x.exponent - y.exponent + 127;
    let divisor: u32 = y.significand;
    var rest = x.significand;
    if (rest < divisor) {
        rest <<= 1u;
        exponent -= 1;
    }
    // Long division: one bit, then three digits of 8 bits and one of 2.
    var quotient = 1u;
    rest -= divisor;
    for (var digit = 0u; digit < 3u; digit += 1u) {
        rest <<= 8u;
        quotient = (quotient << 8u) | (rest / divisor);
        rest %= divisor;
    }
    rest <<= 2u;
    quotient = (quotient << 2u) | (rest / divisor);
    rest %= divisor;
    return round_pack(sign, exponent, quotient | select(0u, 1u, rest != 0u));
}
