// The changed nodes by level: see bvh/gpu/reinsertion_refit.py.

#import bvh.gpu.build_records
#import bvh.gpu.reinsertion_records
#import "bvh/gpu/shaders/box.wgsl"

@group(0) @binding(0) var<storage, read> state: array<BuildState>;
@group(0) @binding(1) var<storage, read> progress: array<Progress>;
@group(0) @binding(2) var<storage, read_write> marks: array<u32>;
@group(0) @binding(3) var<storage, read_write> tally: array<atomic<u32>>;
@group(0) @binding(4) var<storage, read_write> changed: array<u32>;

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    if (progress[0].done != 0u) { return; }
    let node = flat_index(group, groups, lane);
    if (node >= max(state[0].kept, 2u) - 1u) { return; }
    let mark = marks[node];
    if (mark == 0u) { return; }
    marks[node] = 0u;
    // The order within a level depends on scheduling; no result does.
    changed[atomicAdd(&tally[CURSORS + mark - 1u], 1u)] = node;
}
