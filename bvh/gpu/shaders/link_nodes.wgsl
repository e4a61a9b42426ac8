// Child pointers of every box node and the links back up: see bvh/gpu/encode.py.

#import bvh.layout
#import bvh.gpu.build_records
#import bvh.gpu.pair_records
#import bvh.gpu.encode_records
#import "bvh/gpu/shaders/box.wgsl"
#import "bvh/gpu/shaders/node_span.wgsl"
#import $block

@group(0) @binding(0) var<uniform> parameters: EncodeParameters;
@group(0) @binding(1) var<storage, read> encode_summary: array<EncodeSummary>;
@group(0) @binding(2) var<storage, read> wide_children: array<vec4i>;
@group(0) @binding(3) var<storage, read> places: array<u32>;
@group(0) @binding(4) var<storage, read> ranges: array<vec2u>;
@group(0) @binding(5) var<storage, read> node_units: array<u32>; // scanned by now
@group(0) @binding(6) var<storage, read> blocks: array<Block>;
@group(0) @binding(7) var<storage, read_write> words: array<vec4u>;
@group(0) @binding(8) var<storage, read_write> parent_links: array<u32>;

fn node_pointer(node: u32) -> u32 {
    let span = node_span(node);
    return span.x << 3u | select(NODE_BOX_FP32, NODE_BOX_FP16, span.y == 1u);
}

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    let first = flat_index(group, groups, lane);
    if (encode_summary[0].fits == 0u) { return; }
    let base = parameters.base_unit;
    for (var node = first; node < encode_summary[0].nodes; node += groups.x * groups.y * 256u) {
        let pointer = node_pointer(node);
        let unit = base + (pointer >> 3u);
        let children = wide_children[node];
        var pointers = vec4u(INVALID_POINTER);
        // Leaves stand in depth-first order: this node's first one, then slot by slot.
        var leaf = ranges[places[node]].x;
        for (var slot = 0u; slot < 4u; slot += 1u) {
            let child = children[slot];
            if (child == EMPTY_CHILD) { continue; }
            if (child >= 0) {
                pointers[slot] = node_pointer(u32(child));
                leaf = ranges[places[child]].y + 1u;
            } else {
                let kind = block_kind(blocks[~child]);
                pointers[slot] = (encode_summary[0].leaf_unit + leaf) << 3u | kind;
                leaf += 1u;
            }
            parent_links[base + (pointers[slot] >> 3u)] = pointer;
        }
        words[4u * unit] = pointers;
        if ((pointer & 7u) == NODE_BOX_FP32) { parent_links[unit + 1u] = INVALID_POINTER; }
        if (node == 0u) {
            for (var k = base; k <= unit; k += 1u) { parent_links[k] = INVALID_POINTER; }
        }
    }
}
