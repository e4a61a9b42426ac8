// The box of each listed node's centroids: see bvh/gpu/spatial_stages.py.

#import bvh.gpu.binned_sah_records
#import bvh.gpu.spatial_records
#import "bvh/gpu/shaders/sah_boxes.wgsl"
#import "bvh/gpu/shaders/sah_tiles.wgsl"

@group(0) @binding(0) var<uniform> parameters: SplitParameters;
@group(0) @binding(1) var<storage, read> nodes: array<SahNode>;
@group(0) @binding(2) var<storage, read> tiles: array<SahTile>;
@group(0) @binding(3) var<storage, read> work: array<vec4u>;
@group(0) @binding(4) var<storage, read_write> extents: array<atomic<u32>>;

var<workgroup> found: array<atomic<u32>, 6>;

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
        if (lane < 6u) { atomicStore(&found[lane], select(0u, 0xffffffffu, lane < 3u)); }
        workgroupBarrier();
        let places = tile_places(tile, node);
        for (var i = places.x + lane; i < places.y; i += 256u) {
            let a = work[2u * (node.first + i)];
            let b = work[2u * (node.first + i) + 1u];
            let centre = ordered(centre_of(record_box(a, b)));
            for (var axis = 0u; axis < 3u; axis += 1u) {
                atomicMin(&found[axis], centre[axis]);
                atomicMax(&found[3u + axis], centre[axis]);
            }
        }
        workgroupBarrier();
        if (lane < 3u) { atomicMin(&extents[6u * slot + lane], atomicLoad(&found[lane])); }
        if (lane >= 3u && lane < 6u) {
            atomicMax(&extents[6u * slot + lane], atomicLoad(&found[lane]));
        }
        workgroupBarrier();
    }
}
