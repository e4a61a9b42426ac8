// Counters of alpha tests that have a pass of their own (passes/candidates.py). Needs `frame`,
// `counters`, `slot_counts`.
#import bvh.counters
#import passes.slot_counts

override SLOTS_PER_PIXEL: u32 = 1u;

var<private> sampled: u32; // by the lane's test

fn count_verdict(samples: u32, accepted: bool) {
    sampled = samples;
}

// After the test of a ray's candidate in `instance`; `hit`: it accepted, so that the ray has its hit
// now.
fn count_test(slot: u32, instance: u32, hit: bool) {
    let slots = frame.width * frame.height * SLOTS_PER_PIXEL;
    slot_counts[SLOT_ANY_HITS * slots + slot] += 1u;
    let row = object_row(instance);
    atomicAdd(&counters[COUNT_ANY_HITS], 1u);
    charge(row, OBJECT_ANY_HITS, 1u);
    atomicAdd(&counters[COUNT_ALPHA_SAMPLES], sampled);
    charge(row, OBJECT_ALPHA_SAMPLES, sampled);
    if (hit) {
        atomicAdd(&counters[COUNT_HITS], 1u);
        charge(row, OBJECT_HITS, 1u);
        atomicAdd(&counters[COUNT_NODES_HIT], slot_counts[SLOT_NODES * slots + slot]);
    } else {
        atomicAdd(&counters[COUNT_REJECTED], 1u);
        charge(row, OBJECT_REJECTED, 1u);
    }
}
