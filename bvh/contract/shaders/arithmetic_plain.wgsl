// What arithmetic_exact.wgsl replaces: the adapter's own operators, unprotected. A driver may fuse
// products into sums, flush denormals and divide with an error here. Kept to measure how many
// result words that changes; nothing else uses it.
#import "bvh/contract/shaders/float_bits.wgsl"

var<private> contract_zero: u32;

fn add4(a: vec4u, b: vec4u) -> vec4u {
    return bitcast<vec4u>(bitcast<vec4f>(a) + bitcast<vec4f>(b));
}

fn sub4(a: vec4u, b: vec4u) -> vec4u {
    return bitcast<vec4u>(bitcast<vec4f>(a) - bitcast<vec4f>(b));
}

fn mul4(a: vec4u, b: vec4u) -> vec4u {
    return bitcast<vec4u>(bitcast<vec4f>(a) * bitcast<vec4f>(b));
}

fn div(a: u32, b: u32) -> u32 {
    return bitcast<u32>(bitcast<f32>(a) / bitcast<f32>(b));
}
