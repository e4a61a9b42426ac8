// New corners into every triangle block, and the boxes of blocks and of the pyramid's first levels
// above them: see bvh/gpu/refit.py. A workgroup does 256 blocks; corners and boxes go through its
// memory, so that neighbouring lanes load and store neighbouring words.

#import bvh.gpu.refit_records
#import "bvh/gpu/shaders/refit_box.wgsl"
#import "bvh/gpu/shaders/refit_runs.wgsl"
#import "bvh/gpu/shaders/refit_tile.wgsl"

@group(0) @binding(0) var<uniform> parameters: RefitParameters;
@group(0) @binding(1) var<storage, read> positions: array<i32>;
@group(0) @binding(2) var<storage, read> block_vertices: array<u32>;
@group(0) @binding(3) var<storage, read_write> words: array<vec4i>;
@group(0) @binding(4) var<storage, read_write> boxes: array<vec2i>;
@group(0) @binding(5) var<storage, read_write> counts: array<atomic<u32>, 4>;

// Corners of the blocks, 15 words each; then boxes.
var<workgroup> own: array<i32, 3840>;

// Word `place` of the corners from block `first` on; 0 where there is no corner.
fn corner_word(first: u32, place: u32) -> i32 {
    let corner = place / 3u;
    if (5u * first + corner >= 5u * parameters.blocks) { return 0; }
    let vertex = block_vertices[5u * first + corner];
    if (vertex == NO_VERTEX) { return 0; }
    return positions[
        parameters.vertex_first + vertex * parameters.vertex_words + place - 3u * corner];
}

fn corner(lane: u32, slot: u32) -> vec3i {
    let at = 15u * lane + 3u * slot;
    return vec3i(own[at], own[at + 1u], own[at + 2u]);
}

fn set_corner(lane: u32, slot: u32, v: vec3i) {
    let at = 15u * lane + 3u * slot;
    own[at] = v.x;
    own[at + 1u] = v.y;
    own[at + 2u] = v.z;
}

fn finite(v: vec3i) -> bool {
    return all((v & vec3i(0x7f800000)) != vec3i(0x7f800000));
}

// The box of this lane's block, whose corners are made finite.
fn block_box(lane: u32, block: u32) -> OrderedBox {
    let unit = 4u * (parameters.base_unit + parameters.leaf_unit + block);
    let fan = block_vertices[5u * block + 4u] != NO_VERTEX;
    var a = corner(lane, 0u);
    var b = corner(lane, 1u);
    var c = corner(lane, 2u);
    var d = corner(lane, 3u);
    var e = c;
    if (fan) { e = corner(lane, 4u); }
    if (!(finite(a) && finite(b) && finite(c) && finite(d) && finite(e))) {
        atomicAdd(&counts[PENDING_NONFINITE], 1u);
        // Every triangle of a block has V2: with it in the place of another corner, a triangle has
        // no area, and no ray hits it. Without V2 there is no triangle left, and the block shrinks
        // to where V2 was.
        if (!finite(c)) {
            c = vec3i(words[unit + 1u].zw, words[unit + 2u].x);
            a = c;
            b = c;
            d = c;
            e = c;
        }
        a = select(c, a, finite(a));
        b = select(c, b, finite(b));
        d = select(c, d, finite(d));
        e = select(c, e, finite(e));
        set_corner(lane, 0u, a);
        set_corner(lane, 1u, b);
        set_corner(lane, 2u, c);
        set_corner(lane, 3u, d);
    }
    if (fan) { words[unit + 3u] = vec4i(e, words[unit + 3u].w); }
    a = ordered(a);
    b = ordered(b);
    c = ordered(c);
    d = ordered(d);
    e = ordered(e);
    return OrderedBox(min(min(min(a, b), min(c, d)), e), max(max(max(a, b), max(c, d)), e));
}

// A quarter of a block, its corners V0 to V3 being three, out of the workgroup's memory.
fn store_quarter(first: u32, place: u32) {
    let block = place / 3u;
    if (first + block >= parameters.blocks) { return; }
    let quarter = place - 3u * block;
    let at = 15u * block + 4u * quarter;
    words[4u * (parameters.base_unit + parameters.leaf_unit + first + block) + quarter] =
        vec4i(own[at], own[at + 1u], own[at + 2u], own[at + 3u]);
}

fn store_box_words(first: u32, place: u32) {
    if (3u * first + place >= 3u * parameters.blocks) { return; }
    boxes[3u * first + place] = vec2i(own[2u * place], own[2u * place + 1u]);
}

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    let tile = group.y * groups.x + group.x;
    let first = 256u * tile;
    // Five loads at a time that do not wait for each other.
    for (var place = lane; place < 3840u; place += 1280u) {
        let a = corner_word(first, place);
        let b = corner_word(first, place + 256u);
        let c = corner_word(first, place + 512u);
        let d = corner_word(first, place + 768u);
        let e = corner_word(first, place + 1024u);
        own[place] = a;
        own[place + 256u] = b;
        own[place + 512u] = c;
        own[place + 768u] = d;
        own[place + 1024u] = e;
    }
    workgroupBarrier();
    var box = inverted_box();
    if (first + lane < parameters.blocks) { box = block_box(lane, first + lane); }
    workgroupBarrier();
    store_quarter(first, lane);
    store_quarter(first, lane + 256u);
    store_quarter(first, lane + 512u);
    workgroupBarrier();
    keep_own(lane, box);
    workgroupBarrier();
    store_box_words(first, lane);
    store_box_words(first, lane + 256u);
    store_box_words(first, lane + 512u);
    join_tile(lane, tile, vec2u(0u, parameters.blocks));
}
