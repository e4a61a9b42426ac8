// How many nodes have a parent of which area; the locks are taken off: see bvh/gpu/reinsertion.py.

#import bvh.gpu.build_records
#import bvh.gpu.reinsertion_records
#import "bvh/gpu/shaders/box.wgsl"
#import "bvh/gpu/shaders/reinsertion/nodes.wgsl"

@group(0) @binding(0) var<uniform> parameters: ReinsertionParameters;
@group(0) @binding(1) var<storage, read> state: array<BuildState>;
@group(0) @binding(2) var<storage, read> progress: array<Progress>;
@group(0) @binding(3) var<storage, read> parents: array<i32>;
@group(0) @binding(4) var<storage, read> bounds: array<vec2f>;
@group(0) @binding(5) var<storage, read_write> locks: array<vec2u>;
@group(0) @binding(6) var<storage, read_write> histogram: array<atomic<u32>>;

var<workgroup> bins: array<atomic<u32>, BINS>;

fn count(parent: i32) {
    if (parent <= 0) { return; } // the root and its children stay where they are
    let at = 3u * u32(parent);
    let box = make_box(bounds[at], bounds[at + 1u], bounds[at + 2u]);
    let area = scaled_area(box, progress[0].scale, parameters.zero);
    atomicAdd(&bins[bitcast<u32>(area) >> BIN_SHIFT], 1u);
}

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    if (progress[0].done != 0u) { return; }
    for (var bin = lane; bin < BINS; bin += 256u) { atomicStore(&bins[bin], 0u); }
    workgroupBarrier();
    let index = flat_index(group, groups, lane);
    let kept = state[0].kept;
    if (index < kept) {
        let leaf = parameters.nodes + index;
        locks[leaf] = vec2u(0u);
        count(parents[leaf]);
        if (index + 1u < kept) {
            locks[index] = vec2u(0u);
            count(parents[index]);
        }
    }
    workgroupBarrier();
    for (var bin = lane; bin < BINS; bin += 256u) {
        let found = atomicLoad(&bins[bin]);
        if (found > 0u) { atomicAdd(&histogram[bin], found); }
    }
}
