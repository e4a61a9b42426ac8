// How many primitives of each tile go left: see bvh/gpu/binned_sah_stages.py.

#import bvh.gpu.binned_sah_records
#import "bvh/gpu/shaders/sah_tiles.wgsl"
#import "bvh/gpu/shaders/sah_sides.wgsl"

@group(0) @binding(0) var<storage, read> nodes: array<SahNode>;
@group(0) @binding(1) var<storage, read> splits: array<SahSplit>;
@group(0) @binding(2) var<storage, read> work: array<vec4u>;
@group(0) @binding(3) var<storage, read_write> tiles: array<SahTile>;

var<workgroup> lefts: atomic<u32>;

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    let tile_count = nodes[0].count;
    for (var tile = group.x; tile < tile_count; tile += groups.x) {
        if (lane == 0u) { atomicStore(&lefts, 0u); }
        workgroupBarrier();
        let slot = tiles[tile].node;
        let node = nodes[slot + 1u];
        let split = splits[slot];
        let places = tile_places(tile, node);
        var mine = 0u;
        for (var i = places.x + lane; i < places.y; i += 256u) {
            mine += select(0u, 1u, goes_left(split, work[2u * (node.first + i) + 1u].w, i));
        }
        if (mine > 0u) { atomicAdd(&lefts, mine); }
        workgroupBarrier();
        if (lane == 0u) { tiles[tile].lefts = atomicLoad(&lefts); }
        workgroupBarrier();
    }
}
