// binary16 bounds rounded outward, by integers: bvh.layout.round_half_outward.

fn half_magnitude(value: f32, away: bool) -> u32 {
    let bits = bitcast<u32>(value) & 0x7fffffffu;
    if (bits >= 0x47800000u) { return select(0x7bffu, 0x7c00u, away); }
    var half: u32;
    var inexact: bool;
    if (bits >= 0x38800000u) {
        half = (bits - 0x38000000u) >> 13u;
        inexact = (bits & 0x1fffu) != 0u;
    } else {
        let shift = min(126u - (bits >> 23u), 31u);
        let mantissa = (bits & 0x7fffffu) | 0x800000u;
        half = mantissa >> shift;
        inexact = bits != 0u && (half << shift) != mantissa;
    }
    return half + select(0u, 1u, away && inexact);
}

fn half_down(value: f32) -> u32 {
    let sign = bitcast<u32>(value) >> 31u;
    return half_magnitude(value, sign == 1u) | sign << 15u;
}

fn half_up(value: f32) -> u32 {
    let sign = bitcast<u32>(value) >> 31u;
    return half_magnitude(value, sign == 0u) | sign << 15u;
}

fn half_in_range(half: u32) -> bool {
    return (half & 0x7fffu) < 0x7c00u;
}

// The float32 of a finite half, denormal ones too.
fn half_value(half: u32) -> f32 {
    let magnitude = half & 0x7fffu;
    var value = f32(magnitude) * 0x1p-24;
    if (magnitude >= 0x400u) { value = bitcast<f32>((magnitude << 13u) + 0x38000000u); }
    return select(value, -value, (half & 0x8000u) != 0u);
}
