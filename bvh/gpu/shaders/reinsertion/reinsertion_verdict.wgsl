// One workgroup: whether the round was a gain, and whether to go on: see bvh/gpu/reinsertion_refit.py.

#import bvh.gpu.build_records
#import bvh.gpu.reinsertion_records
#import "bvh/gpu/shaders/reinsertion/nodes.wgsl"

@group(0) @binding(0) var<uniform> parameters: ReinsertionParameters;
@group(0) @binding(1) var<storage, read> state: array<BuildState>;
@group(0) @binding(2) var<storage, read> tally: array<u32>;
@group(0) @binding(3) var<storage, read> heights: array<u32>;
@group(0) @binding(4) var<storage, read> partials: array<f32>;
@group(0) @binding(5) var<storage, read_write> progress: array<Progress>;

var<workgroup> sums: array<f32, 256>;

@compute @workgroup_size(256)
fn main(@builtin(local_invocation_index) lane: u32) {
    let tiles = (max(state[0].kept, 2u) - 1u + 2047u) / 2048u;
    var mine = 0.0;
    for (var tile = lane; tile < tiles; tile += 256u) {
        mine = rounded(mine + partials[tile], parameters.zero);
    }
    sums[lane] = mine;
    workgroupBarrier();
    for (var width = 128u; width > 0u; width /= 2u) {
        if (lane < width) { sums[lane] += sums[lane + width]; }
        workgroupBarrier();
    }
    if (lane != 0u) { return; }
    progress[0].verdict = NO_VERDICT;
    if (progress[0].done != 0u) { return; }
    let cost = sums[0];
    let before = progress[0].cost;
    let fits = tally[LEVELS + LEVEL_SLOTS - 1u] == 0u && heights[0] <= parameters.max_depth;
    progress[0].changed = tally[STARTS + LEVEL_SLOTS];
    if (parameters.round == 0u) {
        progress[0].first_cost = cost;
        progress[0].cost = cost;
        progress[0].verdict = ACCEPTED;
        progress[0].done = select(1u, 0u, fits);
        return;
    }
    var strikes = progress[0].strikes + 1u;
    if (fits && cost < before) {
        let least = rounded(parameters.least_progress * cost, parameters.zero);
        if (before - cost >= least) { strikes = 0u; }
        progress[0].cost = cost;
        progress[0].verdict = ACCEPTED;
        progress[0].rounds += 1u;
        progress[0].moves += tally[MOVES];
    } else { // moves that were judged apart can add up to a loss
        progress[0].verdict = REJECTED;
    }
    progress[0].strikes = strikes;
    progress[0].done = select(0u, 1u, strikes >= parameters.stride); // every share was asked
}
