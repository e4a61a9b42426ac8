// Which moves hold all their locks: see bvh/gpu/reinsertion_moves.py.

#import bvh.gpu.build_records
#import bvh.gpu.reinsertion_records
#import "bvh/gpu/shaders/reinsertion/touched.wgsl"

@group(0) @binding(0) var<uniform> parameters: ReinsertionParameters;
@group(0) @binding(1) var<storage, read> tally: array<u32>;
@group(0) @binding(2) var<storage, read> candidates: array<i32>;
@group(0) @binding(3) var<storage, read> children: array<vec2i>;
@group(0) @binding(4) var<storage, read> parents: array<i32>;
@group(0) @binding(5) var<storage, read> locks: array<vec2u>;
@group(0) @binding(6) var<storage, read_write> moves: array<vec2u>;
@group(0) @binding(7) var<storage, read_write> moving: array<u32>;

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
        let own = place(node, parameters.nodes);
        var at = touched(node, bitcast<i32>(move_.x));
        var holds = true;
        for (var k = 0u; k < 6u; k += 1u) {
            holds = holds && all(locks[at.nodes[k]] == vec2u(move_.y, own + 1u));
        }
        if (holds) {
            moving[own] = parameters.round;
        } else {
            moves[slot].y = 0u;
        }
    }
}
