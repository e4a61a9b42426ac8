// Sort key and index of every box: see bvh/gpu/morton.py.

#import bvh.gpu.build_records
#import "bvh/gpu/shaders/box.wgsl"

@group(0) @binding(0) var<uniform> parameters: BuildParameters;
@group(0) @binding(1) var<storage, read> state: array<BuildState>;
@group(0) @binding(2) var<storage, read> boxes: array<vec2f>;
@group(0) @binding(3) var<storage, read_write> keys: array<u32>;
@group(0) @binding(4) var<storage, read_write> payload: array<u32>;

// Drivers rearrange sums and products of what they can see through.
fn rounded(v: vec3f) -> vec3f {
    return bitcast<vec3f>(bitcast<vec3u>(v) ^ vec3u(parameters.zero));
}

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    let index = flat_index(group, groups, lane);
    if (index >= min(state[0].kept, parameters.count)) { return; }
    payload[index] = index;
    let words = parameters.key_words;
    let box = make_box(boxes[3u * index], boxes[3u * index + 1u], boxes[3u * index + 2u]);
    let normalise = state[0].normalise;
    let centre = rounded(box.low * 0.125 + box.high * 0.125);
    let extent = box.high * 0.25 - box.low * 0.25;
    // Twice the grid's extent at most, so that normalising cannot overflow.
    let widest = bitcast<f32>(min(254u, 255u - (bitcast<u32>(normalise) >> 23u)) << 23u);
    let size = clamp(max(max(extent.x, extent.y), extent.z), 0.0, widest);
    let place = vec4f(rounded(centre - state[0].low), size) * normalise;
    let bits = parameters.grid_bits;
    let cell = min(vec4u(place * state[0].scale), vec4u((1u << bits) - 1u));
    var low = 0u;
    var high = 0u;
    for (var level = 0u; level < bits; level += 1u) {
        let bit = cell >> vec4u(bits - 1u - level) & vec4u(1u);
        var group_bits = 3u;
        var value = bit.x << 2u | bit.y << 1u | bit.z;
        if (level < parameters.size_bits) {
            group_bits = 4u;
            value = value << 1u | bit.w;
        }
        high = high << group_bits | low >> (32u - group_bits);
        low = low << group_bits | value;
    }
    keys[words * index] = low;
    if (words == 2u) { keys[2u * index + 1u] = high; }
}
