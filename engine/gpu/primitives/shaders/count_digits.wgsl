// How often each digit occurs in a tile of 2048 keys: see engine/gpu/primitives/radix_sort.py.

// count, words a key, the digit's lowest bit, tiles
@group(0) @binding(0) var<uniform> parameters: vec4u;
@group(0) @binding(1) var<storage, read> live: array<u32>; // the count that the GPU knows
@group(0) @binding(2) var<storage, read> keys: array<u32>;
@group(0) @binding(3) var<storage, read_write> counts: array<u32>;
@group(0) @binding(4) var<storage, read_write> totals: array<atomic<u32>>;

const LANES = 256u;
const ITEMS = 8u;

var<workgroup> found: array<atomic<u32>, 256>;

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    let tile = group.y * groups.x + group.x;
    let count = min(parameters.x, live[0]);
    atomicStore(&found[lane], 0u);
    workgroupBarrier();
    for (var i = 0u; i < ITEMS; i += 1u) {
        let index = (tile * ITEMS + i) * LANES + lane;
        if (index < count) {
            let word = keys[index * parameters.y + parameters.z / 32u];
            atomicAdd(&found[word >> (parameters.z % 32u) & 255u], 1u);
        }
    }
    workgroupBarrier();
    // A dispatch folded into rows may have groups to spare.
    if (tile >= parameters.w) { return; }
    let mine = atomicLoad(&found[lane]);
    counts[tile * LANES + lane] = mine;
    if (mine > 0u) { atomicAdd(&totals[parameters.z / 8u % 2u * LANES + lane], mine); }
}
