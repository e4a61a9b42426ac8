// The way up from every inner node: see bvh/gpu/tree_order.py.

#import bvh.gpu.build_records
#import bvh.gpu.tree_order_records
#import "bvh/gpu/shaders/box.wgsl"

@group(0) @binding(0) var<storage, read> state: array<BuildState>;
@group(0) @binding(1) var<storage, read> children: array<vec2i>;
@group(0) @binding(2) var<storage, read_write> parents: array<u32>;
@group(0) @binding(3) var<storage, read_write> totals: array<u32>;

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    let node = flat_index(group, groups, lane);
    if (node < 256u) { totals[node] = 0u; }
    if (node >= max(state[0].kept, 2u) - 1u) { return; }
    if (node == 0u) { parents[0] = NO_PARENT; }
    // No two nodes have a child in common, so each word has one writer.
    let pair = children[node];
    if (pair.x >= 0) { parents[pair.x] = node; }
    if (pair.y >= 0) { parents[pair.y] = node | RIGHT_CHILD; }
}
