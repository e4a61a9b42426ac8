// Moves a tile's items to their places by one digit, stably: see engine/gpu/primitives/radix_sort.py.

// count, words a key, the digit's lowest bit, tiles
@group(0) @binding(0) var<uniform> parameters: vec4u;
@group(0) @binding(1) var<storage, read> live: array<u32>; // the count that the GPU knows
@group(0) @binding(2) var<storage, read> offsets: array<u32>;
@group(0) @binding(3) var<storage, read> keys: array<u32>;
@group(0) @binding(4) var<storage, read> payload: array<u32>;
@group(0) @binding(5) var<storage, read_write> moved_keys: array<u32>;
@group(0) @binding(6) var<storage, read_write> moved_payload: array<u32>;

const LANES = 256u;
const ITEMS = 8u;
const WORDS = 8u; // of 32 lanes each

var<workgroup> next: array<u32, LANES>; // where the next item of each digit goes
var<workgroup> holders: array<atomic<u32>, WORDS * LANES>; // [word][digit]: lanes with that digit

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    let tile = group.y * groups.x + group.x;
    let count = min(parameters.x, live[0]);
    if (tile * ITEMS * LANES >= count) { return; }
    let word = lane / 32u;
    let bit = 1u << (lane % 32u);
    next[lane] = offsets[tile * LANES + lane];
    for (var w = 0u; w < WORDS; w += 1u) { atomicStore(&holders[w * LANES + lane], 0u); }
    workgroupBarrier();
    for (var i = 0u; i < ITEMS; i += 1u) {
        let index = (tile * ITEMS + i) * LANES + lane;
        let inside = index < count;
        var digit = 0u;
        if (inside) {
            let key = keys[index * parameters.y + parameters.z / 32u];
            digit = key >> (parameters.z % 32u) & 255u;
            atomicOr(&holders[word * LANES + digit], bit);
        }
        workgroupBarrier();
        if (inside) {
            var place = next[digit];
            for (var w = 0u; w < word; w += 1u) {
                place += countOneBits(atomicLoad(&holders[w * LANES + digit]));
            }
            place += countOneBits(atomicLoad(&holders[word * LANES + digit]) & (bit - 1u));
            for (var k = 0u; k < parameters.y; k += 1u) {
                moved_keys[place * parameters.y + k] = keys[index * parameters.y + k];
            }
            moved_payload[place] = payload[index];
        }
        workgroupBarrier();
        // Lane d counts what digit d took and clears its masks for the next 256 items.
        var taken = 0u;
        for (var w = 0u; w < WORDS; w += 1u) {
            let held = atomicLoad(&holders[w * LANES + lane]);
            if (held != 0u) {
                taken += countOneBits(held);
                atomicStore(&holders[w * LANES + lane], 0u);
            }
        }
        next[lane] += taken;
        workgroupBarrier();
    }
}
