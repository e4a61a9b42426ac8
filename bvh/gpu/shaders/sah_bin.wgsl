// Primitives into their nodes' bins, a tile of one node at a time: see
// bvh/gpu/binned_sah_stages.py.

#import bvh.gpu.binned_sah_records
#import "bvh/gpu/shaders/sah_boxes.wgsl"
#import "bvh/gpu/shaders/sah_tiles.wgsl"
#import "bvh/gpu/shaders/sah_slabs.wgsl"

@group(0) @binding(0) var<uniform> parameters: SahParameters;
@group(0) @binding(1) var<storage, read> nodes: array<SahNode>;
@group(0) @binding(2) var<storage, read> tiles: array<SahTile>;
@group(0) @binding(3) var<storage, read> extents: array<u32>;
@group(0) @binding(4) var<storage, read_write> work: array<vec4u>;
@group(0) @binding(5) var<storage, read_write> bins: array<atomic<u32>>;

var<workgroup> found: array<atomic<u32>, NODE_BIN_WORDS>;

// Bin of a place on an axis; the first where all places are one.
fn bin_of(place: f32, low: f32, high: f32) -> u32 {
    if (bitcast<u32>(high - low) >> 23u == 0u) { return 0u; }
    return slab_of(place, low, high);
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
        for (var k = lane; k < NODE_BIN_WORDS; k += 256u) {
            atomicStore(&found[k], select(0u, 0xffffffffu, k % BIN_WORDS < 3u));
        }
        let at = 6u * slot;
        let low = value_of(vec3u(extents[at], extents[at + 1u], extents[at + 2u]));
        let high = value_of(vec3u(extents[at + 3u], extents[at + 4u], extents[at + 5u]));
        workgroupBarrier();
        let places = tile_places(tile, node);
        for (var i = places.x + lane; i < places.y; i += 256u) {
            let index = 2u * (node.first + i);
            let a = work[index];
            let b = work[index + 1u];
            let box = record_box(a, b);
            let centre = centre_of(box);
            var packed = 0u;
            for (var axis = 0u; axis < 3u; axis += 1u) {
                let bin = bin_of(centre[axis], low[axis], high[axis]);
                packed |= bin << (5u * axis);
                let words = (axis * BINS + bin) * BIN_WORDS;
                for (var k = 0u; k < 3u; k += 1u) {
                    atomicMin(&found[words + k], box.low[k]);
                    atomicMax(&found[words + 3u + k], box.high[k]);
                }
                atomicAdd(&found[words + 6u], 1u);
            }
            work[index + 1u] = vec4u(b.xyz, packed);
        }
        workgroupBarrier();
        for (var k = lane; k < NODE_BIN_WORDS; k += 256u) {
            let word = k % BIN_WORDS;
            let value = atomicLoad(&found[k]);
            let out = slot * NODE_BIN_WORDS + k;
            if (atomicLoad(&found[k - word + 6u]) == 0u) { continue; }
            if (word < 3u) {
                atomicMin(&bins[out], value);
            } else if (word < 6u) {
                atomicMax(&bins[out], value);
            } else {
                atomicAdd(&bins[out], value);
            }
        }
        workgroupBarrier();
    }
}
