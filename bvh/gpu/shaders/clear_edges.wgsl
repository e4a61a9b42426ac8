// An empty table of edges: see bvh/gpu/pair_far.py.

#import bvh.gpu.build_records
#import bvh.gpu.pair_records
#import "bvh/gpu/shaders/box.wgsl"

@group(0) @binding(0) var<uniform> parameters: PairParameters;
@group(0) @binding(1) var<storage, read_write> edge_table: array<u32>;

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    let words = 2u * parameters.table_mask + 2u;
    for (var i = flat_index(group, groups, lane); i < words; i += groups.x * groups.y * 256u) {
        edge_table[i] = NONE;
    }
}
