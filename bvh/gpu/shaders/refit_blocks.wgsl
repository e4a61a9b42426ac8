// New corners into every triangle block, and its box: see bvh/gpu/refit.py.

#import bvh.gpu.refit_records
#import "bvh/gpu/shaders/refit_box.wgsl"

@group(0) @binding(0) var<uniform> parameters: RefitParameters;
@group(0) @binding(1) var<storage, read> positions: array<u32>;
@group(0) @binding(2) var<storage, read> block_vertices: array<vec4u>;
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
    let ids = block_vertices[block];
    var a = position(ids.x);
    var b = position(ids.y);
    var c = position(ids.z);
    var d = position(ids.w);
    let at = 4u * (parameters.base_unit + parameters.leaf_unit + block);
    let good = vec4<bool>(finite(a), finite(b), finite(c), finite(d));
    if (!all(good)) {
        atomicAdd(&counts[PENDING_NONFINITE], 1u);
        // Both triangles use corners 1 and 2: with one of these in the place of a corner that is
        // not finite, every triangle that uses it has no area, which no ray hits.
        var stand_in = words[at].xyz;
        if (good.y) { stand_in = b; }
        else if (good.z) { stand_in = c; }
        else if (good.x) { stand_in = a; }
        else if (good.w) { stand_in = d; }
        a = select(stand_in, a, good.x);
        b = select(stand_in, b, good.y);
        c = select(stand_in, c, good.z);
        d = select(stand_in, d, good.w);
    }
    words[at] = vec4u(a, b.x);
    words[at + 1u] = vec4u(b.yz, c.xy);
    words[at + 2u] = vec4u(c.z, d);
    let va = ordered(bitcast<vec3i>(a));
    let vb = ordered(bitcast<vec3i>(b));
    let vc = ordered(bitcast<vec3i>(c));
    let vd = ordered(bitcast<vec3i>(d));
    let box = pack_float_box(
        OrderedBox(min(min(va, vb), min(vc, vd)), max(max(va, vb), max(vc, vd))));
    boxes[3u * block] = box[0];
    boxes[3u * block + 1u] = box[1];
    boxes[3u * block + 2u] = box[2];
}
