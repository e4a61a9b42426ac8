// Exclusive scan of a tile of 2048 items, from the tile's offset: see engine/gpu/primitives/scan.py.

@group(0) @binding(0) var<uniform> parameters: vec4u; // count, 1 where offsets are used
@group(0) @binding(1) var<storage, read> live: array<u32>; // the count that the GPU knows
@group(0) @binding(2) var<storage, read> offsets: array<u32>;
@group(0) @binding(3) var<storage, read_write> values: array<u32>;

const LANES = 256u;
const ITEMS = 8u;
const TILE = 2048u;
const STRIDE = 9u; // eight items a lane and a gap, so that lanes fall into different banks

var<workgroup> items: array<u32, LANES * STRIDE>;
var<workgroup> sums: array<u32, LANES>;

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    let tile = group.y * groups.x + group.x;
    let count = min(parameters.x, live[0]);
    // Neighbouring lanes load neighbouring words, then each lane sums eight words in a row.
    for (var i = 0u; i < ITEMS; i += 1u) {
        let place = i * LANES + lane;
        let index = tile * TILE + place;
        var value = 0u;
        if (index < count) { value = values[index]; }
        items[place / ITEMS * STRIDE + place % ITEMS] = value;
    }
    workgroupBarrier();
    var sum = 0u;
    for (var i = 0u; i < ITEMS; i += 1u) { sum += items[lane * STRIDE + i]; }
    sums[lane] = sum;
    workgroupBarrier();
    for (var reach = 1u; reach < LANES; reach *= 2u) {
        var before = 0u;
        if (lane >= reach) { before = sums[lane - reach]; }
        workgroupBarrier();
        sums[lane] += before;
        workgroupBarrier();
    }
    var running = sums[lane] - sum;
    if (parameters.y != 0u && tile < arrayLength(&offsets)) { running += offsets[tile]; }
    for (var i = 0u; i < ITEMS; i += 1u) {
        let value = items[lane * STRIDE + i];
        items[lane * STRIDE + i] = running;
        running += value;
    }
    workgroupBarrier();
    for (var i = 0u; i < ITEMS; i += 1u) {
        let place = i * LANES + lane;
        let index = tile * TILE + place;
        if (index < count) { values[index] = items[place / ITEMS * STRIDE + place % ITEMS]; }
    }
}
