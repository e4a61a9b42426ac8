// The same as refit_blocks.wgsl, its words through the workgroup's memory, so that neighbouring
// lanes load words of one vertex and store words of one block; and the pyramid's first levels: see
// bvh/gpu/refit.py.

#import bvh.gpu.refit_records
#import "bvh/gpu/shaders/refit_box.wgsl"
#import "bvh/gpu/shaders/refit_corners.wgsl"
#import "bvh/gpu/shaders/refit_runs.wgsl"
#import "bvh/gpu/shaders/refit_tile.wgsl"

@group(0) @binding(0) var<uniform> parameters: RefitParameters;
@group(0) @binding(1) var<storage, read> positions: array<i32>;
@group(0) @binding(2) var<storage, read> block_vertices: array<u32>;
@group(0) @binding(3) var<storage, read_write> words: array<vec4i>;
@group(0) @binding(4) var<storage, read_write> boxes: array<vec2i>;
@group(0) @binding(5) var<storage, read_write> counts: array<atomic<u32>, 4>;

// Corners of 256 blocks, 15 words each; then their boxes.
var<workgroup> own: array<i32, 3840>;

// Word `place` of the corners of the blocks from `first` on; 0 where there is no corner.
fn corner_word(first: u32, place: u32) -> i32 {
    let corner = 5u * first + place / 3u;
    if (corner >= 5u * parameters.blocks) { return 0; }
    let vertex = block_vertices[corner];
    if (vertex == NO_VERTEX) { return 0; }
    return positions[parameters.vertex_first + vertex * parameters.vertex_words + place % 3u];
}

fn own_corner(lane: u32, slot: u32) -> vec3i {
    let at = 15u * lane + 3u * slot;
    return vec3i(own[at], own[at + 1u], own[at + 2u]);
}

fn set_own_corner(lane: u32, slot: u32, v: vec3i) {
    let at = 15u * lane + 3u * slot;
    own[at] = v.x;
    own[at + 1u] = v.y;
    own[at + 2u] = v.z;
}

// This lane's block: mended where it must be, its V4 stored.
fn finish_block(lane: u32, block: u32) -> OrderedBox {
    let fan = block_vertices[5u * block + 4u] != NO_VERTEX;
    var v = Corners(own_corner(lane, 0u), own_corner(lane, 1u), own_corner(lane, 2u),
        own_corner(lane, 3u), own_corner(lane, select(2u, 4u, fan)));
    if (!all_finite(v)) {
        v = mend(block, v);
        set_own_corner(lane, 0u, v.a);
        set_own_corner(lane, 1u, v.b);
        set_own_corner(lane, 2u, v.c);
        set_own_corner(lane, 3u, v.d);
    }
    let at = block_place(block) + 3u;
    if (fan) { words[at] = vec4i(v.e, words[at].w); }
    return corners_box(v);
}

// One of the three vec4 that hold V0 to V3 of a block.
fn store_corners(first: u32, place: u32) {
    let block = place / 3u;
    if (first + block >= parameters.blocks) { return; }
    let part = place % 3u;
    let at = 15u * block + 4u * part;
    words[block_place(first + block) + part] =
        vec4i(own[at], own[at + 1u], own[at + 2u], own[at + 3u]);
}

// One of the three vec2 of a block's box.
fn store_box_part(first: u32, place: u32) {
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
    // Five loads at a time, none of which waits for another.
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
    if (first + lane < parameters.blocks) { box = finish_block(lane, first + lane); }
    workgroupBarrier();
    store_corners(first, lane);
    store_corners(first, lane + 256u);
    store_corners(first, lane + 512u);
    workgroupBarrier();
    keep_own(lane, box);
    workgroupBarrier();
    store_box_part(first, lane);
    store_box_part(first, lane + 256u);
    store_box_part(first, lane + 512u);
    join_tile(lane, tile, vec2u(0u, parameters.blocks));
}
