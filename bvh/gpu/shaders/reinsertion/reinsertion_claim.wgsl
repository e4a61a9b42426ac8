// Locks every node that a move touches for the best move: see bvh/gpu/reinsertion_moves.py.

#import bvh.gpu.build_records
#import bvh.gpu.reinsertion_records
#import "bvh/gpu/shaders/reinsertion/touched.wgsl"

override BY_NODE: bool; // among moves of equal gain, after those of less are out

@group(0) @binding(0) var<uniform> parameters: ReinsertionParameters;
@group(0) @binding(1) var<storage, read> tally: array<u32>;
@group(0) @binding(2) var<storage, read> candidates: array<i32>;
@group(0) @binding(3) var<storage, read> moves: array<vec2u>;
@group(0) @binding(4) var<storage, read> children: array<vec2i>;
@group(0) @binding(5) var<storage, read> parents: array<i32>;
@group(0) @binding(6) var<storage, read_write> locks: array<atomic<u32>>; // gain, node

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    let count = tally[CANDIDATES];
    for (var slot = group.x * 256u + lane; slot < count; slot += groups.x * 256u) {
        let move_ = moves[slot];
        if (move_.y == 0u) { continue; }
        let node = candidates[slot];
        var at = touched(node, bitcast<i32>(move_.x));
        for (var k = 0u; k < 6u; k += 1u) {
            let lock = 2u * at.nodes[k];
            if (!BY_NODE) {
                atomicMax(&locks[lock], move_.y);
            } else if (atomicLoad(&locks[lock]) == move_.y) { // final since the last dispatch
                atomicMax(&locks[lock + 1u], place(node, parameters.nodes) + 1u);
            }
        }
    }
}
