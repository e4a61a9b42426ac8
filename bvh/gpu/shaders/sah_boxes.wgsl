// Boxes of ordered coordinates: see bvh/gpu/binned_sah_records.py.

struct OrderedBox {
    low: vec3u,
    high: vec3u,
}

fn ordered(value: vec3f) -> vec3u {
    let bits = bitcast<vec3u>(value);
    return bits ^ select(vec3u(0x80000000u), vec3u(0xffffffffu), bits >= vec3u(0x80000000u));
}

fn value_of(code: vec3u) -> vec3f {
    return bitcast<vec3f>(
        code ^ select(vec3u(0xffffffffu), vec3u(0x80000000u), code >= vec3u(0x80000000u)));
}

fn no_box() -> OrderedBox {
    return OrderedBox(vec3u(0xffffffffu), vec3u(0u));
}

// Of a work record's two vectors.
fn record_box(a: vec4u, b: vec4u) -> OrderedBox {
    return OrderedBox(a.xyz, vec3u(a.w, b.xy));
}

fn join(a: OrderedBox, b: OrderedBox) -> OrderedBox {
    return OrderedBox(min(a.low, b.low), max(a.high, b.high));
}

// Values that the driver cannot see through, so that products and sums stay as they are written.
fn rounded(value: f32) -> f32 {
    return bitcast<f32>(bitcast<u32>(value) ^ parameters.zero);
}

fn rounded_3(value: vec3f) -> vec3f {
    return bitcast<vec3f>(bitcast<vec3u>(value) ^ vec3u(parameters.zero));
}

// An eighth of min + max. A driver that put the factor outside could overflow.
fn centre_of(box: OrderedBox) -> vec3f {
    return rounded_3(rounded_3(value_of(box.low) * 0.125) + value_of(box.high) * 0.125);
}

// Power of two that takes the longest side into [1, 2); 0 for a box without sides.
fn area_scale(box: OrderedBox) -> f32 {
    let side = value_of(box.high) * 0.25 - rounded_3(value_of(box.low) * 0.25);
    let exponent = bitcast<u32>(max(max(side.x, side.y), side.z)) >> 23u & 0xffu;
    if (exponent == 0u) { return 0.0; }
    return bitcast<f32>(u32(max(252i - i32(exponent), 1i)) << 23u);
}

fn scaled_area(box: OrderedBox, scale: f32) -> f32 {
    let side = value_of(box.high) * scale - rounded_3(value_of(box.low) * scale);
    let two = rounded(rounded(side.x * side.y) + rounded(side.y * side.z));
    return two + rounded(side.z * side.x);
}

// Of the cut of a node into two boxes with so many primitives.
fn cut_cost(left: OrderedBox, lefts: u32, right: OrderedBox, rights: u32, scale: f32) -> f32 {
    let a = rounded(scaled_area(left, scale) * f32(lefts));
    return a + rounded(scaled_area(right, scale) * f32(rights));
}

// Primitives that a child of a node at `depth` (1 = the root) may hold.
fn most_below(depth: u32, max_depth: u32) -> u32 {
    return 1u << min(max(max_depth, depth) - depth, 30u);
}
