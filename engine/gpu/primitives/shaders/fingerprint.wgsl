// A 64-bit fingerprint of words and their places: see engine/gpu/primitives/fingerprint.py.

@group(0) @binding(0) var<storage, read> span: array<u32>; // first word, count
@group(0) @binding(1) var<storage, read> words: array<u32>;
@group(0) @binding(2) var<storage, read_write> result: array<atomic<u32>>;

var<workgroup> low: array<u32, 256>;
var<workgroup> high: array<u32, 256>;

fn mix(value: u32) -> u32 {
    var x = value;
    x = (x ^ x >> 16u) * 0x7feb352du;
    x = (x ^ x >> 15u) * 0x846ca68bu;
    return x ^ x >> 16u;
}

@compute @workgroup_size(256)
fn main(
    @builtin(global_invocation_id) id: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    var sum = vec2u(0u);
    let count = min(span[1], arrayLength(&words) - min(span[0], arrayLength(&words)));
    for (var i = id.x; i < count; i += groups.x * 256u) {
        let mixed = mix(words[span[0] + i] ^ mix(i + 1u));
        sum += vec2u(mixed, mix(mixed + 0x9e3779b9u));
    }
    low[lane] = sum.x;
    high[lane] = sum.y;
    workgroupBarrier();
    for (var width = 128u; width > 0u; width /= 2u) {
        if (lane < width) {
            low[lane] += low[lane + width];
            high[lane] += high[lane + width];
        }
        workgroupBarrier();
    }
    // Sums do not depend on the order in which they are added.
    if (lane == 0u) {
        atomicAdd(&result[0], low[0]);
        atomicAdd(&result[1], high[0]);
    }
}
