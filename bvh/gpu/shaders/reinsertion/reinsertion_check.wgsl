// Refuses moves that could close a cycle, and those that make the tree too deep: see
// bvh/gpu/reinsertion_moves.py.

#import bvh.gpu.build_records
#import bvh.gpu.reinsertion_records
#import "bvh/gpu/shaders/reinsertion/nodes.wgsl"

@group(0) @binding(0) var<uniform> parameters: ReinsertionParameters;
@group(0) @binding(1) var<storage, read> candidates: array<i32>;
@group(0) @binding(2) var<storage, read> parents: array<i32>;
@group(0) @binding(3) var<storage, read> moving: array<u32>;
@group(0) @binding(4) var<storage, read> heights: array<u32>;
@group(0) @binding(5) var<storage, read_write> moves: array<vec2u>;
@group(0) @binding(6) var<storage, read_write> tally: array<atomic<u32>>;

fn height(node: i32) -> u32 {
    if (node < 0) { return 0u; }
    return heights[node];
}

fn above(node: i32) -> i32 {
    return parents[place(node, parameters.nodes)];
}

fn level_of(node: i32) -> u32 {
    var level = 0u;
    for (var walk = node; walk != 0; walk = above(walk)) { level += 1u; }
    return level;
}

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    let count = atomicLoad(&tally[CANDIDATES]);
    for (var slot = group.x * 256u + lane; slot < count; slot += groups.x * 256u) {
        let move_ = moves[slot];
        if (move_.y == 0u) { continue; }
        let target_node = bitcast<i32>(move_.x);
        var node = candidates[slot];
        var there = target_node;
        var level = level_of(node);
        var there_level = level_of(target_node);
        let levels = there_level + 1u + max(height(node), height(target_node));
        var allowed = levels <= parameters.max_depth;
        // Up to the ancestor that both have in common.
        while (there != node && allowed) {
            if (there_level >= level) {
                allowed = moving[place(there, parameters.nodes)] != parameters.round;
                there = above(there);
                there_level -= 1u;
            } else {
                node = above(node);
                level -= 1u;
            }
        }
        if (allowed) {
            atomicAdd(&tally[MOVES], 1u);
        } else {
            moves[slot].y = 0u;
        }
    }
}
