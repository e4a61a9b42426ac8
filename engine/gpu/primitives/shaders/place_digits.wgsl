// Where each tile's share of a digit begins: see engine/gpu/primitives/radix_sort.py.

// count, words a key, the digit's lowest bit, tiles
@group(0) @binding(0) var<uniform> parameters: vec4u;
@group(0) @binding(1) var<storage, read_write> totals: array<u32>;
@group(0) @binding(2) var<storage, read_write> counts: array<u32>;

override DIGITS: u32 = 256u; // of the table; totals have rows of 256 in any case

override OWN: u32 = 8u; // digits of a workgroup; fewer where there are many tiles

const LANES = 256u;

var<workgroup> sums: array<u32, LANES>;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let row = parameters.z / 8u % 2u;
    let tiles = parameters.w;
    // Every workgroup scans all totals, and keeps those of its digits.
    let total = totals[row * LANES + lane];
    sums[lane] = total;
    workgroupBarrier();
    for (var reach = 1u; reach < LANES; reach *= 2u) {
        var other = 0u;
        if (lane >= reach) { other = sums[lane - reach]; }
        workgroupBarrier();
        sums[lane] += other;
        workgroupBarrier();
    }
    let digit = group.x * OWN + lane % OWN;
    var place = 0u;
    if (digit > 0u) { place = sums[digit - 1u]; }
    workgroupBarrier();
    // A lane has a run of tiles of one digit; neighbouring lanes read neighbouring digits.
    let runs = LANES / OWN;
    let length = (tiles + runs - 1u) / runs;
    let first = min(lane / OWN * length, tiles);
    let last = min(first + length, tiles);
    var sum = 0u;
    for (var tile = first; tile < last; tile += 1u) { sum += counts[tile * DIGITS + digit]; }
    sums[lane] = sum;
    workgroupBarrier();
    for (var reach = OWN; reach < LANES; reach *= 2u) {
        var other = 0u;
        if (lane >= reach) { other = sums[lane - reach]; }
        workgroupBarrier();
        sums[lane] += other;
        workgroupBarrier();
    }
    place += sums[lane] - sum;
    for (var tile = first; tile < last; tile += 1u) {
        let mine = counts[tile * DIGITS + digit];
        counts[tile * DIGITS + digit] = place;
        place += mine;
    }
    // The next pass counts into the other row.
    if (lane < OWN) { totals[(1u - row) * LANES + digit] = 0u; }
}
