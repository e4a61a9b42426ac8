// Bounds and heights of the changed nodes of one level: see bvh/gpu/reinsertion_refit.py.

#import bvh.gpu.build_records
#import bvh.gpu.reinsertion_records
#import "bvh/gpu/shaders/box.wgsl"

@group(0) @binding(0) var<uniform> parameters: ReinsertionParameters;
@group(0) @binding(1) var<storage, read> tally: array<u32>;
@group(0) @binding(2) var<storage, read> changed: array<u32>;
@group(0) @binding(3) var<storage, read> children: array<vec2i>;
@group(0) @binding(4) var<storage, read> boxes: array<vec2f>;
@group(0) @binding(5) var<storage, read_write> bounds: array<vec2f>;
@group(0) @binding(6) var<storage, read_write> heights: array<u32>;

fn box_of(node: i32) -> Box {
    if (node >= 0) {
        let at = 3u * u32(node);
        return make_box(bounds[at], bounds[at + 1u], bounds[at + 2u]);
    }
    let at = 3u * u32(~node);
    return make_box(boxes[at], boxes[at + 1u], boxes[at + 2u]);
}

fn height(node: i32) -> u32 {
    if (node < 0) { return 0u; }
    return heights[node];
}

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    let end = tally[STARTS + parameters.level + 1u];
    let first = tally[STARTS + parameters.level] + group.x * 256u + lane;
    for (var slot = first; slot < end; slot += groups.x * 256u) {
        let node = changed[slot];
        let pair = children[node];
        let box = unite(box_of(pair.x), box_of(pair.y));
        bounds[3u * node] = box.low.xy;
        bounds[3u * node + 1u] = vec2f(box.low.z, box.high.x);
        bounds[3u * node + 2u] = box.high.yz;
        heights[node] = 1u + max(height(pair.x), height(pair.y));
    }
}
