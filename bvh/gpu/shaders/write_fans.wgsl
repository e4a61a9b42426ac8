// Blocks of one to four triangles in depth-first order, and the ids of fans: see
// bvh/gpu/fan_encode.py.

#import bvh.layout
#import bvh.gpu.pair_records
#import bvh.gpu.build_records
#import bvh.gpu.encode_records
#import "bvh/gpu/shaders/box.wgsl"
#import "bvh/gpu/shaders/fan_places.wgsl"
#import "bvh/gpu/shaders/block_members.wgsl"
#import "bvh/gpu/shaders/triangle_vertex.wgsl"
#import "bvh/gpu/shaders/rotation.wgsl"

@group(0) @binding(0) var<uniform> parameters: EncodeParameters;
@group(0) @binding(1) var<storage, read> encode_summary: array<EncodeSummary>;
@group(0) @binding(2) var<storage, read> leaf_order: array<u32>;
@group(0) @binding(3) var<storage, read> blocks: array<vec4u>;
@group(0) @binding(4) var<storage, read> triangles: array<u32>;
@group(0) @binding(5) var<storage, read> triangle_ids: array<vec2u>;
@group(0) @binding(6) var<storage, read> fan_rows: array<u32>; // scanned by now
@group(0) @binding(7) var<storage, read_write> words: array<vec4u>;

// Vertex `step` after the apex of a member of a block.
fn rim(member: u32, step: u32) -> vec3u {
    return vertex(member & TRIANGLE_MASK, (member >> CORNER_SHIFT) + step);
}

// Bits of bvh.layout.pack_fan_geometry, from a geometry word.
fn fan_geometry_bits(word: u32) -> u32 {
    return (word & 0xfu) << 4u | (word & 0xf0u) << 8u | (word & 0xf00u) << 12u
        | (word & 0x7000u) << 16u | select(0u, FAN_OPAQUE, (word & GEOMETRY_OPAQUE) != 0u);
}

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    let first = flat_index(group, groups, lane);
    if (encode_summary[0].fits == 0u) { return; }
    let leaves = encode_summary[0].leaves;
    let leaf_unit = parameters.base_unit + encode_summary[0].leaf_unit;
    let rows = 4u * (leaf_unit + leaves) + fan_rows_start(leaves);
    for (var leaf = first; leaf < leaves; leaf += groups.x * groups.y * 256u) {
        let block = blocks[leaf_order[leaf]];
        // The apex, V2, is slot 2 of types 0 and 1, slot 0 of types 2 and 3.
        let apex_slots = vec4u(2u, 2u, 0u, 0u);
        var flags = 0u;
        var ids = vec4u(INVALID_POINTER);
        for (var k = 0u; k < 4u; k += 1u) {
            if (block[k] == NONE) { break; }
            flags |= rotation(apex_slots[k] + 3u - (block[k] >> CORNER_SHIFT)) << (8u * k);
            ids[k] = triangle_ids[block[k] & TRIANGLE_MASK].y;
        }
        let geometry = triangle_ids[block.x & TRIANGLE_MASK].x;
        let v0 = rim(block.x, 1u);
        let v1 = rim(block.x, 2u);
        let v2 = rim(block.x, 0u);
        var v3 = v2;
        if (block.y != NONE) { v3 = rim(block.y, 2u); }
        var tail = vec4u(geometry, ids.xy, flags);
        if (block.z != NONE) {
            tail = vec4u(rim(block.z, 2u), flags | fan_geometry_bits(geometry));
            words[rows + fan_rows[leaf]] = ids;
        }
        let at = 4u * (leaf_unit + leaf);
        words[at] = vec4u(v0, v1.x);
        words[at + 1u] = vec4u(v1.yz, v2.xy);
        words[at + 2u] = vec4u(v2.z, v3);
        words[at + 3u] = tail;
    }
}
