// Refuses moves into a subtree that moves too, and those that make the tree too deep: see bvh/gpu/reinsertion_moves.py.

#import bvh.gpu.build_records
#import bvh.gpu.reinsertion_records
#import "bvh/gpu/shaders/box.wgsl"
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
        var allowed = true;
        var levels = 1u + max(height(candidates[slot]), height(target_node));
        for (var node = target_node; node != 0 && allowed; ) {
            let at = place(node, parameters.nodes);
            allowed = moving[at] != parameters.round;
            levels += 1u;
            node = parents[at];
        }
        if (allowed && levels <= parameters.max_depth) {
            atomicAdd(&tally[MOVES], 1u);
        } else {
            moves[slot].y = 0u;
        }
    }
}
