// New corners into every triangle block, and its box, a lane a block: see bvh/gpu/refit.py.

#import bvh.gpu.refit_records
#import "bvh/gpu/shaders/refit_box.wgsl"
#import "bvh/gpu/shaders/refit_corners.wgsl"

@group(0) @binding(0) var<uniform> parameters: RefitParameters;
@group(0) @binding(1) var<storage, read> positions: array<i32>;
@group(0) @binding(2) var<storage, read> block_vertices: array<u32>;
@group(0) @binding(3) var<storage, read_write> words: array<vec4i>;
@group(0) @binding(4) var<storage, read_write> boxes: array<vec2i>;
@group(0) @binding(5) var<storage, read_write> counts: array<atomic<u32>, 4>;

fn position(vertex: u32) -> vec3i {
    let at = parameters.vertex_first + vertex * parameters.vertex_words;
    return vec3i(positions[at], positions[at + 1u], positions[at + 2u]);
}

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    let block = (group.y * groups.x + group.x) * 256u + lane;
    if (block >= parameters.blocks) { return; }
    let ids = 5u * block;
    let c = position(block_vertices[ids + 2u]);
    var v = Corners(position(block_vertices[ids]), position(block_vertices[ids + 1u]), c,
        position(block_vertices[ids + 3u]), c);
    let fifth = block_vertices[ids + 4u];
    if (fifth != NO_VERTEX) { v.e = position(fifth); }
    if (!all_finite(v)) { v = mend(block, v); }
    let at = block_place(block);
    words[at] = vec4i(v.a, v.b.x);
    words[at + 1u] = vec4i(v.b.yz, v.c.xy);
    words[at + 2u] = vec4i(v.c.z, v.d);
    if (fifth != NO_VERTEX) { words[at + 3u] = vec4i(v.e, words[at + 3u].w); }
    let box = pack_box(corners_box(v));
    boxes[3u * block] = box[0];
    boxes[3u * block + 1u] = box[1];
    boxes[3u * block + 2u] = box[2];
}
