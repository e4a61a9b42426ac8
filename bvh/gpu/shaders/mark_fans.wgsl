// 1 for each leaf in depth-first order that is a fan: see bvh/gpu/fan_encode.py.

#import bvh.gpu.build_records
#import bvh.gpu.pair_records
#import "bvh/gpu/shaders/box.wgsl"

@group(0) @binding(0) var<storage, read> state: array<BuildState>;
@group(0) @binding(1) var<storage, read> leaf_order: array<u32>;
@group(0) @binding(2) var<storage, read> blocks: array<vec4u>;
@group(0) @binding(3) var<storage, read_write> fan_rows: array<u32>;
@group(0) @binding(4) var<storage, read_write> leaf_count: array<u32>;

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    let first = flat_index(group, groups, lane);
    if (first == 0u) { leaf_count[0] = state[0].kept; }
    for (var leaf = first; leaf < state[0].kept; leaf += groups.x * groups.y * 256u) {
        fan_rows[leaf] = select(1u, 0u, blocks[leaf_order[leaf]].z == NONE);
    }
}
