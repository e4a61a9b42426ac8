// First and last leaf of every inner node in depth-first order: see bvh/gpu/tree_order.py.

#import bvh.gpu.build_records
#import bvh.gpu.tree_order_records
#import "bvh/gpu/shaders/box.wgsl"

@group(0) @binding(0) var<storage, read> state: array<BuildState>;
@group(0) @binding(1) var<storage, read> children: array<vec2i>;
@group(0) @binding(2) var<storage, read> parents: array<u32>;
@group(0) @binding(3) var<storage, read> leaf_counts: array<vec2u>;
@group(0) @binding(4) var<storage, read_write> ranges: array<vec2u>;
@group(0) @binding(5) var<storage, read_write> leaf_order: array<u32>;

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    let node = flat_index(group, groups, lane);
    if (node >= max(state[0].kept, 2u) - 1u) { return; }
    var first = 0u;
    var link = parents[node];
    for (var step = 0u; step < MAX_DEPTH && link != NO_PARENT; step += 1u) {
        let above = link & ~RIGHT_CHILD;
        if (link != above) { first += leaf_counts[above].x; }
        link = parents[above];
    }
    let leaves = leaf_counts[node];
    let pair = children[node];
    ranges[node] = vec2u(first, first + max(leaves.x + leaves.y, 1u) - 1u);
    if (pair.x < 0 && pair.x != EMPTY_CHILD) { leaf_order[first] = u32(~pair.x); }
    if (pair.y < 0 && pair.y != EMPTY_CHILD) { leaf_order[first + leaves.x] = u32(~pair.y); }
}
