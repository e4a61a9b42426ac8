// New corners into every triangle block, and its box: see bvh/gpu/refit.py.

#import bvh.gpu.refit_records
#import "bvh/gpu/shaders/refit_box.wgsl"

@group(0) @binding(0) var<uniform> parameters: RefitParameters;
@group(0) @binding(1) var<storage, read> positions: array<u32>;
@group(0) @binding(2) var<storage, read> block_vertices: array<u32>;
@group(0) @binding(3) var<storage, read_write> words: array<vec4u>;
@group(0) @binding(4) var<storage, read_write> boxes: array<vec2u>;
@group(0) @binding(5) var<storage, read_write> counts: array<atomic<u32>, 4>;

fn position(vertex: u32) -> vec3u {
    let at = parameters.vertex_first + vertex * parameters.vertex_words;
    return vec3u(positions[at], positions[at + 1u], positions[at + 2u]);
}

fn finite(v: vec3u) -> bool {
    return all((v & vec3u(0x7f800000u)) != vec3u(0x7f800000u));
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
    var a = position(block_vertices[ids]);
    var b = position(block_vertices[ids + 1u]);
    var c = position(block_vertices[ids + 2u]);
    var d = position(block_vertices[ids + 3u]);
    let fifth = block_vertices[ids + 4u];
    var e = c;
    if (fifth != NO_VERTEX) { e = position(fifth); }
    let at = 4u * (parameters.base_unit + parameters.leaf_unit + block);
    if (!(finite(a) && finite(b) && finite(c) && finite(d) && finite(e))) {
        atomicAdd(&counts[PENDING_NONFINITE], 1u);
        // Every triangle of a block has V2: with it in the place of another corner, a triangle has
        // no area, and no ray hits it. Without V2 there is no triangle left, and the block shrinks
        // to where V2 was.
        if (!finite(c)) {
            c = vec3u(words[at + 1u].zw, words[at + 2u].x);
            a = c;
            b = c;
            d = c;
            e = c;
        }
        a = select(c, a, finite(a));
        b = select(c, b, finite(b));
        d = select(c, d, finite(d));
        e = select(c, e, finite(e));
    }
    words[at] = vec4u(a, b.x);
    words[at + 1u] = vec4u(b.yz, c.xy);
    words[at + 2u] = vec4u(c.z, d);
    if (fifth != NO_VERTEX) { words[at + 3u] = vec4u(e, words[at + 3u].w); }
    let va = ordered(bitcast<vec3i>(a));
    let vb = ordered(bitcast<vec3i>(b));
    let vc = ordered(bitcast<vec3i>(c));
    let vd = ordered(bitcast<vec3i>(d));
    let ve = ordered(bitcast<vec3i>(e));
    let box = pack_float_box(OrderedBox(
        min(min(min(va, vb), min(vc, vd)), ve), max(max(max(va, vb), max(vc, vd)), ve)));
    boxes[3u * block] = box[0];
    boxes[3u * block + 1u] = box[1];
    boxes[3u * block + 2u] = box[2];
}
