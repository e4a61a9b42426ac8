// One workgroup: the least area of a candidate's parent; counters at zero: see bvh/gpu/reinsertion.py.

#import bvh.gpu.build_records
#import bvh.gpu.reinsertion_records

@group(0) @binding(0) var<uniform> parameters: ReinsertionParameters;
@group(0) @binding(1) var<storage, read_write> histogram: array<u32>;
@group(0) @binding(2) var<storage, read_write> tally: array<u32>;

const PER_LANE = BINS / 256u;

var<workgroup> sums: array<u32, 256>;

@compute @workgroup_size(256)
fn main(@builtin(local_invocation_index) lane: u32) {
    // Lane 0 has the bins of the largest areas.
    let first = BINS - 1u - PER_LANE * lane;
    var mine = 0u;
    for (var k = 0u; k < PER_LANE; k += 1u) { mine += histogram[first - k]; }
    sums[lane] = mine;
    workgroupBarrier();
    for (var reach = 1u; reach < 256u; reach *= 2u) {
        var other = 0u;
        if (lane >= reach) { other = sums[lane - reach]; }
        workgroupBarrier();
        sums[lane] += other;
        workgroupBarrier();
    }
    let wanted = parameters.batch * parameters.stride;
    var above = sums[lane] - mine;
    if (above < wanted && sums[lane] >= wanted) {
        var bin = first;
        for (var k = 0u; k < PER_LANE; k += 1u) {
            above += histogram[first - k];
            bin = first - k;
            if (above >= wanted) { break; }
        }
        tally[LEAST_BIN] = bin;
    }
    if (lane == 255u && sums[lane] < wanted) { tally[LEAST_BIN] = 0u; }
    for (var k = 0u; k < PER_LANE; k += 1u) { histogram[first - k] = 0u; }
    if (lane == 0u) {
        tally[CANDIDATES] = 0u;
        tally[MOVES] = 0u;
    }
    if (lane < LEVEL_SLOTS) { tally[LEVELS + lane] = 0u; }
}
