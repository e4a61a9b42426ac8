// The nodes that this round looks at: see bvh/gpu/reinsertion.py.

#import bvh.gpu.build_records
#import bvh.gpu.reinsertion_records
#import "bvh/gpu/shaders/box.wgsl"
#import "bvh/gpu/shaders/reinsertion/nodes.wgsl"

@group(0) @binding(0) var<uniform> parameters: ReinsertionParameters;
@group(0) @binding(1) var<storage, read> state: array<BuildState>;
@group(0) @binding(2) var<storage, read> progress: array<Progress>;
@group(0) @binding(3) var<storage, read> parents: array<i32>;
@group(0) @binding(4) var<storage, read> bounds: array<vec2f>;
@group(0) @binding(5) var<storage, read_write> tally: array<atomic<u32>>;
@group(0) @binding(6) var<storage, read_write> candidates: array<i32>;

var<workgroup> found: atomic<u32>;
var<workgroup> start: u32;

fn wanted(parent: i32, index: u32) -> bool {
    if (parent <= 0) { return false; }
    // An own share of them every round.
    if ((index + parameters.round) % parameters.stride != 0u) { return false; }
    let at = 3u * u32(parent);
    let box = make_box(bounds[at], bounds[at + 1u], bounds[at + 2u]);
    let area = scaled_area(box, progress[0].scale, parameters.zero);
    return bitcast<u32>(area) >> BIN_SHIFT >= atomicLoad(&tally[LEAST_BIN]);
}

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    if (progress[0].done != 0u) { return; }
    if (lane == 0u) { atomicStore(&found, 0u); }
    workgroupBarrier();
    let index = flat_index(group, groups, lane);
    let kept = state[0].kept;
    var leaf = false;
    var inner = false;
    var slot = 0u;
    if (index < kept) {
        leaf = wanted(parents[parameters.nodes + index], kept + index);
        inner = index + 1u < kept && wanted(parents[index], index);
        slot = atomicAdd(&found, select(0u, 1u, leaf) + select(0u, 1u, inner));
    }
    workgroupBarrier();
    if (lane == 0u) { start = atomicAdd(&tally[CANDIDATES], atomicLoad(&found)); }
    workgroupBarrier();
    // The order of candidates depends on scheduling; nothing that they lead to does.
    slot += start;
    if (inner) {
        candidates[slot] = i32(index);
        slot += 1u;
    }
    if (leaf) { candidates[slot] = ~i32(index); }
}
