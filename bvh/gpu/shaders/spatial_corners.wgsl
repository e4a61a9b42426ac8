// Five corners of every block, from its triangles: see bvh/gpu/spatial.py.

#import bvh.gpu.spatial_records
#import bvh.gpu.pair_records
#import "bvh/gpu/shaders/block_members.wgsl"

@group(0) @binding(0) var<storage, read> state: array<u32>;
@group(0) @binding(1) var<storage, read> blocks: array<vec2u>;
@group(0) @binding(2) var<storage, read> triangles: array<f32>;
@group(0) @binding(3) var<storage, read_write> corners: array<f32>;

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    let kept = state[0];
    for (var i = group.x * 256u + lane; i < kept; i += groups.x * 256u) {
        let block = blocks[i];
        let first = 9u * (block.x & TRIANGLE_MASK);
        let turn = block.x >> CORNER_SHIFT;
        var last = first + 3u * ((turn + 2u) % 3u);
        if (block.y != NONE) { last = 9u * (block.y & TRIANGLE_MASK) + 3u * (block.y >> CORNER_SHIFT); }
        for (var k = 0u; k < 3u; k += 1u) {
            let out = CORNER_WORDS * i + k;
            for (var c = 0u; c < 3u; c += 1u) {
                corners[out + 3u * c] = triangles[first + 3u * ((turn + c) % 3u) + k];
            }
            corners[out + 9u] = triangles[last + k];
            corners[out + 12u] = triangles[last + k];
        }
        corners[CORNER_WORDS * i + 15u] = 0.0;
    }
}
