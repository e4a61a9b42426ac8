// Places of the items of sorted tiles among all: see bvh/gpu/tlas_sort.py.

#import bvh.gpu.build_records
#import bvh.gpu.cluster_records

@group(0) @binding(0) var<storage, read> state: array<BuildState>;
@group(0) @binding(1) var<storage, read> tile_keys: array<u32>;
@group(0) @binding(2) var<storage, read> tile_items: array<u32>;
@group(0) @binding(3) var<storage, read_write> order: array<u32>;

const AT_ONCE = 8u; // searches whose loads overlap

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    let index = group.x * 256u + lane;
    let kept = state[0].kept;
    let tile = index / SEGMENT;
    let tiles = (kept + SEGMENT - 1u) / SEGMENT;
    // What is past the end of the last tile's is sorted to its end.
    if (index >= kept) { return; }
    let key = tile_keys[index];
    var place = index % SEGMENT;
    for (var first = 0u; first < tiles; first += AT_ONCE) {
        // Keys below `bound` come before this one, of tiles before it equal ones too.
        var found = array<u32, AT_ONCE>();
        for (var stride = SEGMENT / 2u; stride > 0u; stride /= 2u) {
            for (var k = 0u; k < AT_ONCE; k += 1u) {
                let other = min(first + k, tiles - 1u);
                let bound = key + select(0u, 1u, other < tile);
                if (tile_keys[SEGMENT * other + found[k] + stride - 1u] < bound) {
                    found[k] += stride;
                }
            }
        }
        for (var k = 0u; k < AT_ONCE; k += 1u) {
            let other = first + k;
            if (other >= tiles || other == tile) { continue; }
            let bound = key + select(0u, 1u, other < tile);
            // The strides end one short of a whole tile.
            let last = tile_keys[SEGMENT * other + found[k]] < bound;
            place += found[k] + select(0u, 1u, last);
        }
    }
    order[place] = tile_items[index];
}
