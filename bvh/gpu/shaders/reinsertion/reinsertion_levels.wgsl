// One lane: where each level of changed nodes starts: see bvh/gpu/reinsertion_refit.py.

#import bvh.gpu.build_records
#import bvh.gpu.reinsertion_records

@group(0) @binding(0) var<storage, read_write> tally: array<u32>;

@compute @workgroup_size(1)
fn main() {
    var start = 0u;
    for (var level = 0u; level < LEVEL_SLOTS; level += 1u) {
        tally[STARTS + level] = start;
        tally[CURSORS + level] = start;
        start += tally[LEVELS + level];
    }
    tally[STARTS + LEVEL_SLOTS] = start;
}
