// Triangle blocks in depth-first order: see bvh/gpu/encode.py.

#import bvh.layout
#import bvh.gpu.pair_records
#import bvh.gpu.build_records
#import bvh.gpu.encode_records
#import "bvh/gpu/shaders/box.wgsl"
#import "bvh/gpu/shaders/block_members.wgsl"
#import "bvh/gpu/shaders/triangle_vertex.wgsl"
#import "bvh/gpu/shaders/rotation.wgsl"

@group(0) @binding(0) var<uniform> parameters: EncodeParameters;
@group(0) @binding(1) var<storage, read> encode_summary: array<EncodeSummary>;
@group(0) @binding(2) var<storage, read> leaf_order: array<u32>;
@group(0) @binding(3) var<storage, read> blocks: array<vec2u>;
@group(0) @binding(4) var<storage, read> triangles: array<u32>;
@group(0) @binding(5) var<storage, read> triangle_ids: array<vec2u>;
@group(0) @binding(6) var<storage, read_write> words: array<vec4u>;

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    let first = flat_index(group, groups, lane);
    if (encode_summary[0].fits == 0u) { return; }
    let leaves = encode_summary[0].leaves;
    for (var leaf = first; leaf < leaves; leaf += groups.x * groups.y * 256u) {
        let block = blocks[leaf_order[leaf]];
        let one = block.x & TRIANGLE_MASK;
        let corner = block.x >> CORNER_SHIFT;
        let ids = triangle_ids[one];
        let v2 = vertex(one, corner + 2u);
        var v3 = v2;
        var second_id = INVALID_POINTER;
        // Corner k in slot 0 puts original vertex 0 in slot -k mod 3.
        var flags = rotation(3u - corner);
        if (block.y != NONE) {
            let two = block.y & TRIANGLE_MASK;
            let apex = block.y >> CORNER_SHIFT;
            v3 = vertex(two, apex);
            second_id = triangle_ids[two].y;
            // Type 1 is V1, V3, V2: corner k in slot 1 puts original vertex 0 in slot 1 - k mod 3.
            flags |= rotation(4u - apex) << 8u;
        }
        let v1 = vertex(one, corner + 1u);
        let at = 4u * (parameters.base_unit + encode_summary[0].leaf_unit + leaf);
        words[at] = vec4u(vertex(one, corner), v1.x);
        words[at + 1u] = vec4u(v1.yz, v2.xy);
        words[at + 2u] = vec4u(v2.z, v3);
        words[at + 3u] = vec4u(ids.x, ids.y, second_id, flags);
    }
}
