// The most steps from any inner node to the root: see bvh/gpu/tree_depth.py.

#import bvh.gpu.build_records
#import bvh.gpu.tree_order_records
#import "bvh/gpu/shaders/box.wgsl"

@group(0) @binding(0) var<uniform> parameters: BuildParameters;
@group(0) @binding(1) var<storage, read> state: array<BuildState>;
@group(0) @binding(2) var<storage, read> parents: array<u32>;
@group(0) @binding(3) var<storage, read_write> deepest: array<atomic<u32>>;

const MOST_STEPS = 128u;

var<workgroup> most: atomic<u32>;

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    // Word 0 is written by the first attempt's dispatch only, so a second one may read it here.
    let wanted = parameters.attempt == 0u || atomicLoad(&deepest[0]) >= parameters.max_depth;
    if (lane == 0u) { atomicStore(&most, 0u); }
    workgroupBarrier();
    let node = flat_index(group, groups, lane);
    if (wanted && node < max(state[0].kept, 2u) - 1u) {
        var steps = 0u;
        var link = parents[node];
        while (link != NO_PARENT && steps < MOST_STEPS) {
            steps += 1u;
            link = parents[link & ~RIGHT_CHILD];
        }
        atomicMax(&most, steps);
    }
    workgroupBarrier();
    if (lane == 0u && wanted) { atomicMax(&deepest[parameters.attempt], atomicLoad(&most)); }
}
