// Boxes of a refit as integers that are ordered like the floats they stand for (-0 below +0), so
// that neither a driver's flushing of denormals nor its minimum of two zeros shows; and their
// outward rounding to binary16, in integers as well. Twin: bvh/gpu/refit_twins.py.

#import "bvh/gpu/shaders/half_bounds.wgsl"

struct OrderedBox {
    low: vec3i,
    high: vec3i,
}

// Float bits to ordered integers, and back.
fn ordered(bits: vec3i) -> vec3i {
    return bits ^ (bits >> vec3u(31u) & vec3i(0x7fffffff));
}

fn inverted_box() -> OrderedBox {
    return OrderedBox(vec3i(0x7fffffff), vec3i(-0x7fffffff));
}

fn join(a: OrderedBox, b: OrderedBox) -> OrderedBox {
    return OrderedBox(min(a.low, b.low), max(a.high, b.high));
}

// A box as the pyramid stores it, three vec2i, and back.
fn pack_box(box: OrderedBox) -> array<vec2i, 3> {
    return array<vec2i, 3>(box.low.xy, vec2i(box.low.z, box.high.x), box.high.yz);
}

fn unpack_box(a: vec2i, b: vec2i, c: vec2i) -> OrderedBox {
    return OrderedBox(vec3i(a, b.x), vec3i(b.y, c));
}

// The three words of a box in an FP16 node.
fn pack_half_box(box: OrderedBox) -> vec3u {
    let low = bitcast<vec3f>(ordered(box.low));
    let high = bitcast<vec3f>(ordered(box.high));
    return vec3u(
        half_down(low.x) | half_down(low.y) << 16u,
        half_down(low.z) | half_up(high.x) << 16u,
        half_up(high.y) | half_up(high.z) << 16u,
    );
}

// Whether a bound became infinite as a half.
fn half_overflows(words: vec3u) -> bool {
    let low = words & vec3u(0x7fffu);
    let high = words >> vec3u(16u) & vec3u(0x7fffu);
    return any(low == vec3u(0x7c00u)) || any(high == vec3u(0x7c00u));
}
