// The parts of references' boxes in each slab of their nodes: see bvh/gpu/spatial_cuts.py.

#import bvh.gpu.binned_sah_records
#import bvh.gpu.spatial_records
#import "bvh/gpu/shaders/sah_boxes.wgsl"
#import "bvh/gpu/shaders/sah_tiles.wgsl"
#import "bvh/gpu/shaders/sah_slabs.wgsl"

@group(0) @binding(0) var<uniform> parameters: SplitParameters;
@group(0) @binding(1) var<storage, read> nodes: array<SahNode>;
@group(0) @binding(2) var<storage, read> tiles: array<SahTile>;
@group(0) @binding(3) var<storage, read> cuts: array<SpatialCut>;
@group(0) @binding(4) var<storage, read> work: array<vec4u>;
@group(0) @binding(5) var<storage, read_write> space: array<atomic<u32>>;

var<workgroup> found: array<atomic<u32>, SPACE_WORDS>;

// Every slab that a reference is in gets the part of its box there.
fn add_reference(box: OrderedBox, node_box: OrderedBox) {
    let node_low = value_of(node_box.low);
    let node_high = value_of(node_box.high);
    let low = value_of(box.low);
    let high = value_of(box.high);
    for (var axis = 0u; axis < 3u; axis += 1u) {
        let from_ = node_low[axis];
        let to = node_high[axis];
        if (bitcast<u32>(to - from_) >> 23u == 0u) { continue; }
        let first = slab_of(low[axis], from_, to);
        let last = slab_of(high[axis], from_, to);
        let row = axis * BINS;
        atomicAdd(&found[(row + first) * SPACE_BIN_WORDS + 6u], 1u);
        atomicAdd(&found[(row + last) * SPACE_BIN_WORDS + 7u], 1u);
        for (var slab = first; slab <= last; slab += 1u) {
            var part = box;
            if (slab > first) {
                let begin = ordered(vec3f(slab_plane(slab, from_, to))).x;
                part.low[axis] = max(box.low[axis], begin);
            }
            if (slab < last) {
                let end = ordered(vec3f(slab_plane(slab + 1u, from_, to))).x;
                part.high[axis] = min(box.high[axis], end);
            }
            let words = (row + slab) * SPACE_BIN_WORDS;
            for (var k = 0u; k < 3u; k += 1u) {
                atomicMin(&found[words + k], part.low[k]);
                atomicMax(&found[words + 3u + k], part.high[k]);
            }
        }
    }
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
        if (cuts[slot].tried == 0u) { continue; }
        let node = nodes[slot + 1u];
        let low = cuts[slot].low;
        let high = cuts[slot].high;
        let node_box = OrderedBox(vec3u(low[0], low[1], low[2]), vec3u(high[0], high[1], high[2]));
        for (var k = lane; k < SPACE_WORDS; k += 256u) {
            atomicStore(&found[k], select(0u, 0xffffffffu, k % SPACE_BIN_WORDS < 3u));
        }
        workgroupBarrier();
        let places = tile_places(tile, node);
        for (var i = places.x + lane; i < places.y; i += 256u) {
            let a = work[2u * (node.first + i)];
            let b = work[2u * (node.first + i) + 1u];
            add_reference(record_box(a, b), node_box);
        }
        workgroupBarrier();
        for (var k = lane; k < SPACE_WORDS; k += 256u) {
            let word = k % SPACE_BIN_WORDS;
            let value = atomicLoad(&found[k]);
            let out = slot * SPACE_WORDS + k;
            if (value == select(0u, 0xffffffffu, word < 3u)) { continue; }
            if (word < 3u) {
                atomicMin(&space[out], value);
            } else if (word < 6u) {
                atomicMax(&space[out], value);
            } else {
                atomicAdd(&space[out], value);
            }
        }
        workgroupBarrier();
    }
}
