// Where each tile's share of a digit begins, a workgroup a digit: see
// engine/gpu/primitives/radix_sort.py.

// count, words a key, the digit's lowest bit, tiles
@group(0) @binding(0) var<uniform> parameters: vec4u;
@group(0) @binding(1) var<storage, read_write> totals: array<u32>;
@group(0) @binding(2) var<storage, read_write> counts: array<u32>;

const LANES = 256u;

var<workgroup> sums: array<u32, LANES>;

// Sum of `value` over the lanes before this one.
fn before(value: u32, lane: u32) -> u32 {
    sums[lane] = value;
    workgroupBarrier();
    for (var reach = 1u; reach < LANES; reach *= 2u) {
        var other = 0u;
        if (lane >= reach) { other = sums[lane - reach]; }
        workgroupBarrier();
        sums[lane] += other;
        workgroupBarrier();
    }
    return sums[lane] - value;
}

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let digit = group.x;
    let row = parameters.z / 8u % 2u;
    let tiles = parameters.w;
    // A lane has one smaller digit's total and a run of tiles.
    var smaller = 0u;
    if (lane < digit) { smaller = totals[row * LANES + lane]; }
    let run = (tiles + LANES - 1u) / LANES;
    let first = digit * tiles + min(lane * run, tiles);
    let last = digit * tiles + min((lane + 1u) * run, tiles);
    var sum = 0u;
    for (var i = first; i < last; i += 1u) { sum += counts[i]; }
    var place = before(sum, lane);
    workgroupBarrier();
    sums[lane] = smaller;
    workgroupBarrier();
    for (var width = LANES / 2u; width > 0u; width /= 2u) {
        if (lane < width) { sums[lane] += sums[lane + width]; }
        workgroupBarrier();
    }
    place += sums[0];
    for (var i = first; i < last; i += 1u) {
        let mine = counts[i];
        counts[i] = place;
        place += mine;
    }
    // The next pass counts into the other row.
    if (lane == 0u) { totals[(1u - row) * LANES + digit] = 0u; }
}
