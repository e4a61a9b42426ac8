// Marks every node above a move with its level: see bvh/gpu/reinsertion_refit.py.

#import bvh.gpu.build_records
#import bvh.gpu.reinsertion_records
#import "bvh/gpu/shaders/reinsertion/nodes.wgsl"

@group(0) @binding(0) var<uniform> parameters: ReinsertionParameters;
@group(0) @binding(1) var<storage, read> state: array<BuildState>;
@group(0) @binding(2) var<storage, read> progress: array<Progress>;
@group(0) @binding(3) var<storage, read> candidates: array<i32>;
@group(0) @binding(4) var<storage, read> moves: array<vec2u>;
@group(0) @binding(5) var<storage, read> parents: array<i32>;
@group(0) @binding(6) var<storage, read_write> tally: array<atomic<u32>>;
@group(0) @binding(7) var<storage, read_write> marks: array<atomic<u32>>; // level + 1

fn level_of(node: i32) -> u32 {
    var level = 0u;
    for (var walk = node; walk > 0; walk = parents[walk]) { level += 1u; }
    return level;
}

// True if the node had no mark yet: whoever finds one leaves the rest to the one who set it.
fn mark(node: i32, level: u32) -> bool {
    let slot = min(level, LEVEL_SLOTS - 1u);
    if (atomicExchange(&marks[node], slot + 1u) != 0u) { return false; }
    atomicAdd(&tally[LEVELS + slot], 1u);
    return true;
}

fn mark_upwards(first: i32) {
    var level = level_of(first);
    for (var node = first; node >= 0 && mark(node, level); node = parents[node]) {
        level = max(level, 1u) - 1u;
    }
}

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    if (progress[0].done != 0u) { return; }
    let index = group.x * 256u + lane;
    let step = groups.x * 256u;
    if (parameters.round == 0u) {
        let nodes = max(state[0].kept, 2u) - 1u;
        for (var node = index; node < nodes; node += step) {
            mark(i32(node), level_of(i32(node)));
        }
        return;
    }
    let count = atomicLoad(&tally[CANDIDATES]);
    for (var slot = index; slot < count; slot += step) {
        if (moves[slot].y == 0u) { continue; }
        mark_upwards(parents[place(candidates[slot], parameters.nodes)]);
        mark_upwards(i32(moves[slot].x));
    }
}
