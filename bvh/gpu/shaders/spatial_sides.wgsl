// Which sides a reference is on, and how many a tile has there: see bvh/gpu/spatial_stages.py.

#import bvh.gpu.binned_sah_records
#import bvh.gpu.spatial_records
#import "bvh/gpu/shaders/sah_boxes.wgsl"
#import "bvh/gpu/shaders/sah_tiles.wgsl"
#import "bvh/gpu/shaders/sah_sides.wgsl"

@group(0) @binding(0) var<uniform> parameters: SplitParameters;
@group(0) @binding(1) var<storage, read> nodes: array<SahNode>;
@group(0) @binding(2) var<storage, read> tiles: array<SahTile>;
@group(0) @binding(3) var<storage, read> cuts: array<SpatialCut>;
@group(0) @binding(4) var<storage, read> corners: array<f32>;
@group(0) @binding(5) var<storage, read_write> work: array<vec4u>;
@group(0) @binding(6) var<storage, read_write> sums: array<SpatialTile>;

#import "bvh/gpu/shaders/spatial_clip.wgsl"

var<workgroup> object_left: atomic<u32>;
var<workgroup> space_left: atomic<u32>;
var<workgroup> space_right: atomic<u32>;

// SPACE_LEFT, SPACE_RIGHT or both.
fn spatial_sides(a: vec4u, b: vec4u, axis: u32, plane: f32) -> u32 {
    let box = record_box(a, b);
    if (value_of(box.high)[axis] <= plane) { return SPACE_LEFT; }
    if (value_of(box.low)[axis] >= plane) { return SPACE_RIGHT; }
    let parts = clip_block(b.z, box, axis, plane);
    if (!is_box(parts.right)) { return SPACE_LEFT; }
    return SPACE_RIGHT | select(0u, SPACE_LEFT, is_box(parts.left));
}

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    let tile_count = nodes[0].count;
    for (var tile = group.x; tile < tile_count; tile += groups.x) {
        if (lane == 0u) {
            atomicStore(&object_left, 0u);
            atomicStore(&space_left, 0u);
            atomicStore(&space_right, 0u);
        }
        workgroupBarrier();
        let slot = tiles[tile].node;
        let node = nodes[slot + 1u];
        let object = SahSplit(cuts[slot].object_axis, cuts[slot].last_bin, cuts[slot].object_left,
            NO_SLOT, NO_SLOT);
        let cheaper = cuts[slot].cheaper == 1u;
        let axis = cuts[slot].axis;
        let plane = cuts[slot].plane;
        let places = tile_places(tile, node);
        for (var i = places.x + lane; i < places.y; i += 256u) {
            let a = work[2u * (node.first + i)];
            let b = work[2u * (node.first + i) + 1u];
            var sides = select(0u, OBJECT_LEFT, goes_left(object, b.w, i));
            if (cheaper) { sides |= spatial_sides(a, b, axis, plane); }
            work[2u * (node.first + i) + 1u] = vec4u(b.xyz, b.w & 0x7fffu | sides);
            if ((sides & OBJECT_LEFT) != 0u) { atomicAdd(&object_left, 1u); }
            if ((sides & SPACE_LEFT) != 0u) { atomicAdd(&space_left, 1u); }
            if ((sides & SPACE_RIGHT) != 0u) { atomicAdd(&space_right, 1u); }
        }
        workgroupBarrier();
        if (lane == 0u) {
            sums[tile] = SpatialTile(atomicLoad(&object_left), atomicLoad(&space_left),
                atomicLoad(&space_right));
        }
        workgroupBarrier();
    }
}
