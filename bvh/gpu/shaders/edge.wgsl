// Edges of triangles by their vertices' bits, and what a pair of triangles wastes: see
// bvh/gpu/pairing.py.

fn hash_vertex(bits: vec3u) -> u32 {
    var h = bits.x * 0x9e3779b1u;
    h = ((h ^ h >> 15u) + bits.y) * 0x85ebca77u;
    h = ((h ^ h >> 13u) + bits.z) * 0xc2b2ae3du;
    return h ^ h >> 16u;
}

// The same for both directions; never 0.
fn edge_key(start: u32, end: u32) -> u32 {
    var k = start + end;
    k = (k ^ k >> 15u) * 0x2c1b3c6du;
    return max(k ^ k >> 12u, 1u);
}

// Where the table of all edges has this one, by direction.
fn table_place(start: u32, end: u32, seed: u32, mask: u32) -> u32 {
    var k = (edge_key(start, end) ^ seed) * 0x9e3779b1u;
    k = (k ^ k >> 15u) & mask;
    return 2u * k + select(0u, 1u, start > end);
}

fn rounded_product(a: f32, b: f32, zero: u32) -> f32 {
    return bitcast<f32>(bitcast<u32>(a * b) ^ zero);
}

fn scaled_area(box: Box, factor: f32, zero: u32) -> f32 {
    let side = (box.high * 0.5 - box.low * 0.5) * factor;
    let two = rounded_product(side.x, side.y, zero) + rounded_product(side.y, side.z, zero);
    return two + rounded_product(side.z, side.x, zero);
}

// Power of two that brings a box's longest side to [1, 2).
fn area_factor(box: Box) -> f32 {
    let side = box.high * 0.5 - box.low * 0.5;
    let exponent = bitcast<u32>(max(max(side.x, side.y), side.z)) >> 23u;
    return bitcast<f32>((254u - clamp(exponent, 1u, 253u)) << 23u);
}

// joint / total in steps of `step`, rounded up, by comparisons alone; NONE where it is beyond 1.3
// or undefined. `half` is the highest bit of the steps.
fn waste_steps(joint: f32, total: f32, step: f32, half: u32, zero: u32) -> u32 {
    if (!(total > 0.0) || joint > rounded_product(total, WORST_RATIO, zero)) { return NONE; }
    var steps = 0u;
    for (var bit = half; bit > 0u; bit /= 2u) {
        // Not yet enough with all lower steps: this one is needed.
        let less = f32(steps + bit - 1u) * step;
        if (joint > rounded_product(total, less, zero)) { steps += bit; }
    }
    return steps;
}

// area(union) / (area(a) + area(b)) in steps of 1/512.
fn waste(a: Box, b: Box, zero: u32) -> u32 {
    let both = unite(a, b);
    let factor = area_factor(both);
    let total = scaled_area(a, factor, zero) + scaled_area(b, factor, zero);
    return waste_steps(scaled_area(both, factor, zero), total, 0x1p-9, 512u, zero);
}

// Orders candidates by waste; ties by a number that has nothing to do with place, so that rounds of
// mutual choices need not wait for one another along a strip.
fn candidate_rank(steps: u32, a: u32, b: u32) -> u32 {
    return steps << 22u | (min(a, b) * 0x9e3779b1u) >> 10u;
}
