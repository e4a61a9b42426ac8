// References to their children, parts of what a plane cuts to both: see bvh/gpu/spatial_stages.py.

#import bvh.gpu.binned_sah_records
#import bvh.gpu.spatial_records
#import "bvh/gpu/shaders/sah_boxes.wgsl"
#import "bvh/gpu/shaders/sah_tiles.wgsl"

@group(0) @binding(0) var<uniform> parameters: SplitParameters;
@group(0) @binding(1) var<storage, read> nodes: array<SahNode>;
@group(0) @binding(2) var<storage, read> tiles: array<SahTile>;
@group(0) @binding(3) var<storage, read> cuts: array<SpatialCut>;
@group(0) @binding(4) var<storage, read> sums: array<SpatialTile>;
@group(0) @binding(5) var<storage, read> corners: array<f32>;
@group(0) @binding(6) var<storage, read> work: array<vec4u>;
@group(0) @binding(7) var<storage, read_write> next_work: array<vec4u>;
@group(0) @binding(8) var<storage, read_write> done: array<vec4u>;

#import "bvh/gpu/shaders/spatial_clip.wgsl"

var<workgroup> marks: array<atomic<u32>, 64>; // a bit a reference of the tile: left, then right

fn marks_before(side: u32, i: u32) -> u32 {
    let first = 32u * side;
    var before = countOneBits(atomicLoad(&marks[first + i / 32u]) & ((1u << (i % 32u)) - 1u));
    for (var w = 0u; w < i / 32u; w += 1u) {
        before += countOneBits(atomicLoad(&marks[first + w]));
    }
    return before;
}

// Bit 0: left, bit 1: right.
fn sides_of(word: u32, spatial: bool) -> u32 {
    if (!spatial) { return select(2u, 1u, (word & OBJECT_LEFT) != 0u); }
    return select(0u, 1u, (word & SPACE_LEFT) != 0u) | select(0u, 2u, (word & SPACE_RIGHT) != 0u);
}

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    let tile_count = nodes[0].count;
    for (var tile = group.x; tile < tile_count; tile += groups.x) {
        let slot = tiles[tile].node;
        let node = nodes[slot + 1u];
        let spatial = cuts[slot].spatial == 1u;
        let axis = cuts[slot].axis;
        let plane = cuts[slot].plane;
        let firsts = vec2u(cuts[slot].left_first, cuts[slot].right_first);
        let slots = vec2u(cuts[slot].left_slot, cuts[slot].right_slot);
        let places = tile_places(tile, node);
        if (lane < 64u) { atomicStore(&marks[lane], 0u); }
        workgroupBarrier();
        for (var i = places.x + lane; i < places.y; i += 256u) {
            let sides = sides_of(work[2u * (node.first + i) + 1u].w, spatial);
            let place = i - places.x;
            let bit = 1u << (place % 32u);
            if ((sides & 1u) != 0u) { atomicOr(&marks[place / 32u], bit); }
            if ((sides & 2u) != 0u) { atomicOr(&marks[32u + place / 32u], bit); }
        }
        workgroupBarrier();
        let here = sums[tile];
        let start = sums[node.first_tile];
        var before = vec2u(here.object_left - start.object_left, 0u);
        before.y = places.x - before.x;
        if (spatial) {
            before = vec2u(here.space_left - start.space_left, here.space_right - start.space_right);
        }
        for (var i = places.x + lane; i < places.y; i += 256u) {
            let a = work[2u * (node.first + i)];
            let b = work[2u * (node.first + i) + 1u];
            let sides = sides_of(b.w, spatial);
            let whole = record_box(a, b);
            var parts = Parts(whole, whole);
            if (sides == 3u) { parts = clip_block(b.z, whole, axis, plane); }
            for (var side = 0u; side < 2u; side += 1u) {
                if ((sides >> side & 1u) == 0u) { continue; }
                var out_a = a;
                var out_b = vec4u(b.xyz, 0u);
                if (sides == 3u) {
                    var part = parts.left;
                    if (side == 1u) { part = parts.right; }
                    out_a = vec4u(part.low, part.high.x);
                    out_b = vec4u(part.high.yz, b.z, 0u);
                }
                let at = 2u * (firsts[side] + before[side] + marks_before(side, i - places.x));
                if (slots[side] != NO_SLOT) {
                    next_work[at] = out_a;
                    next_work[at + 1u] = out_b;
                } else {
                    done[at] = out_a;
                    done[at + 1u] = out_b;
                }
            }
        }
        workgroupBarrier();
    }
}
