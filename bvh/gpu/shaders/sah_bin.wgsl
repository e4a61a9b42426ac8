// Primitives into their nodes' bins, a tile of one node at a time: see
// bvh/gpu/binned_sah_stages.py.

#import bvh.gpu.binned_sah_records
#import "bvh/gpu/shaders/sah_boxes.wgsl"

@group(0) @binding(0) var<uniform> parameters: SahParameters;
@group(0) @binding(1) var<storage, read> nodes: array<SahNode>;
@group(0) @binding(2) var<storage, read> tiles: array<SahTile>;
@group(0) @binding(3) var<storage, read> extents: array<u32>;
@group(0) @binding(4) var<storage, read_write> work: array<vec4u>;
@group(0) @binding(5) var<storage, read_write> bins: array<atomic<u32>>;

var<workgroup> found: array<atomic<u32>, NODE_BIN_WORDS>;

// Bin of a place on an axis. The factor comes from an integer division, rounded down, so that it
// is the same on every adapter and the last bin is the last.
fn bin_of(place: f32, low: f32, high: f32) -> u32 {
    let pattern = bitcast<u32>(high - low);
    let exponent = pattern >> 23u;
    if (exponent == 0u) { return 0u; }
    let normalise = bitcast<f32>((254u - exponent) << 23u);
    let factor = f32(0x1000000u / ((pattern >> 12u & 0x7ffu | 0x800u) + 1u)) * (f32(BINS) / 8192.0);
    return min(u32((place - low) * normalise * factor), BINS - 1u);
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
        let begin = (tile - node.first_tile) * SAH_TILE;
        let end = min(begin + SAH_TILE, node.count);
        for (var i = begin + lane; i < end; i += 256u) {
            let index = 2u * (node.first + i);
            let a = work[index];
            let b = work[index + 1u];
            let box = OrderedBox(a.xyz, vec3u(a.w, b.xy));
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
