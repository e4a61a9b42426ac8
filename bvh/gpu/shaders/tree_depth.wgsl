// The most steps of any path: see bvh/gpu/tree_paths.py.

#import bvh.gpu.build_records

@group(0) @binding(0) var<uniform> parameters: BuildParameters;
@group(0) @binding(1) var<storage, read> state: array<BuildState>;
@group(0) @binding(2) var<storage, read> paths: array<vec2u>;
@group(0) @binding(3) var<storage, read_write> deepest: array<atomic<u32>>;

const ITEMS = 8u;

var<workgroup> most: atomic<u32>;

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    // Word 0 is written by the first attempt's dispatch only, so a second one may read it here.
    let again = parameters.attempt == 1u;
    let wanted = !again || atomicLoad(&deepest[0]) >= parameters.max_depth;
    if (lane == 0u) { atomicStore(&most, 0u); }
    workgroupBarrier();
    var mine = 0u;
    for (var i = 0u; i < ITEMS; i += 1u) {
        let node = ((group.y * groups.x + group.x) * ITEMS + i) * 256u + lane;
        if (node < max(state[0].kept, 2u) - 1u) {
            mine = max(mine, paths[node].y & (LEFT_TURN - 1u));
        }
    }
    atomicMax(&most, mine);
    workgroupBarrier();
    if (lane == 0u && wanted) { atomicMax(&deepest[parameters.attempt], atomicLoad(&most)); }
}
