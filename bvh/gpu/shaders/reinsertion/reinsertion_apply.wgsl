// Carries the moves out: see bvh/gpu/reinsertion_moves.py.

#import bvh.gpu.build_records
#import bvh.gpu.reinsertion_records
#import "bvh/gpu/shaders/reinsertion/nodes.wgsl"

@group(0) @binding(0) var<uniform> parameters: ReinsertionParameters;
@group(0) @binding(1) var<storage, read> tally: array<u32>;
@group(0) @binding(2) var<storage, read> candidates: array<i32>;
@group(0) @binding(3) var<storage, read_write> moves: array<vec2u>;
@group(0) @binding(4) var<storage, read_write> children: array<vec2i>;
@group(0) @binding(5) var<storage, read_write> parents: array<i32>;

// Each move holds the locks of all nodes whose words it reads or writes.
@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    let count = tally[CANDIDATES];
    let nodes = parameters.nodes;
    for (var slot = group.x * 256u + lane; slot < count; slot += groups.x * 256u) {
        let move_ = moves[slot];
        if (move_.y == 0u) { continue; }
        let node = candidates[slot];
        let target_node = bitcast<i32>(move_.x);
        let above = parents[place(node, nodes)];
        let sibling = sibling_of(children[above], node);
        let grand = parents[above];
        let under = parents[place(target_node, nodes)];
        children[grand] = replaced(children[grand], above, sibling);
        parents[place(sibling, nodes)] = grand;
        children[under] = replaced(children[under], target_node, above);
        children[above] = vec2i(target_node, node);
        parents[place(target_node, nodes)] = above;
        parents[above] = under;
        moves[slot].x = u32(grand); // changed too, and not to be found from the node any more
    }
}
