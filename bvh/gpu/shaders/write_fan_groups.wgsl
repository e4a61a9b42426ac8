// Which leaves are fans, 32 a group, the rest of the table, and its parent links: see
// bvh/gpu/fan_encode.py.

#import bvh.layout
#import bvh.gpu.build_records
#import bvh.gpu.encode_records
#import "bvh/gpu/shaders/box.wgsl"
#import "bvh/gpu/shaders/fan_places.wgsl"

@group(0) @binding(0) var<uniform> parameters: EncodeParameters;
@group(0) @binding(1) var<storage, read> encode_summary: array<EncodeSummary>;
@group(0) @binding(2) var<storage, read> fan_rows: array<u32>; // scanned by now
@group(0) @binding(3) var<storage, read_write> words: array<vec4u>;
@group(0) @binding(4) var<storage, read_write> parent_links: array<u32>;

// The two words of a group of leaves; zeros behind the last.
fn fan_group(group: u32) -> vec2u {
    let leaves = encode_summary[0].leaves;
    let first = group * FAN_GROUP_LEAVES;
    if (first >= leaves) { return vec2u(0u); }
    var mask = 0u;
    var row = fan_rows[first];
    for (var i = 0u; i < FAN_GROUP_LEAVES && first + i < leaves; i += 1u) {
        var following = encode_summary[0].fans;
        if (first + i + 1u < leaves) { following = fan_rows[first + i + 1u]; }
        if (following != row) { mask |= 1u << i; }
        row = following;
    }
    return vec2u(mask, fan_rows_start(leaves) + fan_rows[first]);
}

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    let first = flat_index(group, groups, lane);
    let fans = encode_summary[0].fans;
    if (encode_summary[0].fits == 0u || fans == 0u) { return; }
    let leaves = encode_summary[0].leaves;
    let table = parameters.base_unit + encode_summary[0].leaf_unit + leaves;
    let start = fan_rows_start(leaves);
    let units = fan_table_units(leaves, fans);
    let stride = groups.x * groups.y * 256u;
    for (var i = first; i < start; i += stride) {
        words[4u * table + i] = vec4u(fan_group(2u * i), fan_group(2u * i + 1u));
    }
    for (var i = first; i < units; i += stride) { parent_links[table + i] = INVALID_POINTER; }
    for (var i = start + fans + first; i < 4u * units; i += stride) {
        words[4u * table + i] = vec4u(0u);
    }
}
