// Lefts before rights, in their order, into the other work buffer: see
// bvh/gpu/binned_sah_stages.py.

#import bvh.gpu.binned_sah_records
#import "bvh/gpu/shaders/sah_boxes.wgsl"
#import "bvh/gpu/shaders/sah_tiles.wgsl"
#import "bvh/gpu/shaders/sah_sides.wgsl"

@group(0) @binding(0) var<uniform> parameters: SahParameters;
@group(0) @binding(1) var<storage, read> nodes: array<SahNode>;
@group(0) @binding(2) var<storage, read> splits: array<SahSplit>;
@group(0) @binding(3) var<storage, read> tiles: array<SahTile>;
@group(0) @binding(4) var<storage, read> work: array<vec4u>;
@group(0) @binding(5) var<storage, read_write> next_work: array<vec4u>;
@group(0) @binding(6) var<storage, read_write> next_extents: array<atomic<u32>>;
@group(0) @binding(7) var<storage, read_write> children: array<i32>;

var<workgroup> lefts: array<atomic<u32>, 32>; // a bit a primitive of the tile
var<workgroup> found: array<atomic<u32>, 12>; // centroid extents of both children

// Lefts of the tile before its primitive i.
fn lefts_before(i: u32) -> u32 {
    var before = countOneBits(atomicLoad(&lefts[i / 32u]) & ((1u << (i % 32u)) - 1u));
    for (var w = 0u; w < i / 32u; w += 1u) { before += countOneBits(atomicLoad(&lefts[w])); }
    return before;
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
        let split = splits[slot];
        let places = tile_places(tile, node);
        if (lane < 32u) { atomicStore(&lefts[lane], 0u); }
        if (lane < 12u) { atomicStore(&found[lane], select(0u, 0xffffffffu, lane % 6u < 3u)); }
        workgroupBarrier();
        for (var i = places.x + lane; i < places.y; i += 256u) {
            if (goes_left(split, work[2u * (node.first + i) + 1u].w, i)) {
                atomicOr(&lefts[(i - places.x) / 32u], 1u << ((i - places.x) % 32u));
            }
        }
        workgroupBarrier();
        let tile_lefts = tiles[tile].lefts - tiles[node.first_tile].lefts;
        for (var i = places.x + lane; i < places.y; i += 256u) {
            let a = work[2u * (node.first + i)];
            let b = work[2u * (node.first + i) + 1u];
            let left = goes_left(split, b.w, i);
            let before = tile_lefts + lefts_before(i - places.x); // lefts of the node
            let target_offset = select(split.left_count + i - before, before, left);
            let target_index = 2u * (node.first + target_offset);
            next_work[target_index] = a;
            next_work[target_index + 1u] = b;
            let side = select(1u, 0u, left);
            let child_count = select(node.count - split.left_count, split.left_count, left);
            if (child_count == 1u) { children[2u * node.id + side] = ~i32(b.z); }
            if (select(split.right_slot, split.left_slot, left) != NO_SLOT) {
                let centre = ordered(centre_of(record_box(a, b)));
                for (var axis = 0u; axis < 3u; axis += 1u) {
                    atomicMin(&found[6u * side + axis], centre[axis]);
                    atomicMax(&found[6u * side + 3u + axis], centre[axis]);
                }
            }
        }
        workgroupBarrier();
        if (lane < 12u) {
            let child = select(split.right_slot, split.left_slot, lane < 6u);
            if (child != NO_SLOT) {
                let value = atomicLoad(&found[lane]);
                if (lane % 6u < 3u) {
                    atomicMin(&next_extents[6u * child + lane % 6u], value);
                } else {
                    atomicMax(&next_extents[6u * child + lane % 6u], value);
                }
            }
        }
        workgroupBarrier();
    }
}
