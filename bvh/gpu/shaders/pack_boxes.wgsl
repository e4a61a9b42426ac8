// Bounds of the children of every box node, FP32 or FP16: see bvh/gpu/encode.py.

#import bvh.layout
#import bvh.gpu.build_records
#import bvh.gpu.encode_records
#import "bvh/gpu/shaders/box.wgsl"
#import "bvh/gpu/shaders/half_bounds.wgsl"
#import "bvh/gpu/shaders/node_span.wgsl"

@group(0) @binding(0) var<uniform> parameters: EncodeParameters;
@group(0) @binding(1) var<storage, read> encode_summary: array<EncodeSummary>;
@group(0) @binding(2) var<storage, read> wide_children: array<vec4i>;
@group(0) @binding(3) var<storage, read> places: array<u32>;
@group(0) @binding(4) var<storage, read> bounds: array<vec2u>;
@group(0) @binding(5) var<storage, read> boxes: array<vec2u>;
@group(0) @binding(6) var<storage, read> node_units: array<u32>; // scanned by now
@group(0) @binding(7) var<storage, read_write> words: array<vec4u>;

// Six float32 as bits.
struct BoxBits {
    a: vec2u,
    b: vec2u,
    c: vec2u,
}

fn child_bits(child: i32) -> BoxBits {
    if (child == EMPTY_CHILD) {
        let empty = vec2u(EMPTY_BOUND_FP32);
        return BoxBits(empty, empty, empty);
    }
    if (child < 0) {
        let at = 3u * u32(~child);
        return BoxBits(boxes[at], boxes[at + 1u], boxes[at + 2u]);
    }
    let at = 3u * places[child];
    return BoxBits(bounds[at], bounds[at + 1u], bounds[at + 2u]);
}

fn half_bits(child: i32) -> vec3u {
    if (child == EMPTY_CHILD) { return vec3u(EMPTY_BOUND_FP16); }
    let box = child_bits(child);
    let low = bitcast<vec3f>(vec3u(box.a, box.b.x));
    let high = bitcast<vec3f>(vec3u(box.b.y, box.c));
    return vec3u(
        half_down(low.x) | half_down(low.y) << 16u,
        half_down(low.z) | half_up(high.x) << 16u,
        half_up(high.y) | half_up(high.z) << 16u,
    );
}

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    let first = flat_index(group, groups, lane);
    if (encode_summary[0].fits == 0u) { return; }
    let nodes = encode_summary[0].nodes;
    for (var node = first; node < nodes; node += groups.x * groups.y * 256u) {
        let span = node_span(node);
        let child = wide_children[node];
        let at = 4u * (parameters.base_unit + span.x) + BOX_BOUNDS_WORD / 4u;
        if (span.y == 1u) {
            let x = half_bits(child.x);
            let y = half_bits(child.y);
            let z = half_bits(child.z);
            let w = half_bits(child.w);
            words[at] = vec4u(x, y.x);
            words[at + 1u] = vec4u(y.yz, z.xy);
            words[at + 2u] = vec4u(z.z, w);
        } else {
            for (var pair = 0u; pair < 2u; pair += 1u) {
                let x = child_bits(child[2u * pair]);
                let y = child_bits(child[2u * pair + 1u]);
                words[at + 3u * pair] = vec4u(x.a, x.b);
                words[at + 3u * pair + 1u] = vec4u(x.c, y.a);
                words[at + 3u * pair + 2u] = vec4u(y.b, y.c);
            }
            words[at + 6u] = vec4u(0u);
        }
    }
}
