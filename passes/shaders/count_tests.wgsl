// Counters of alpha tests that have a pass of their own (passes/candidates.py). Needs `frame`,
// `counters`, `slot_counts`.
#import bvh.counters
#import passes.slot_counts

override SLOTS_PER_PIXEL: u32 = 1u;

// `hit`: it accepted, so that the ray has its hit now.
fn count_test(slot: u32, instance: u32, hit: bool) {
    let slots = frame.width * frame.height * SLOTS_PER_PIXEL;
    slot_counts[SLOT_ANY_HITS * slots + slot] += 1u;
    atomicAdd(&counters[COUNT_ANY_HITS], 1u);
    atomicAdd(&counters[COUNTER_FIELDS + (1u + instance) * OBJECT_FIELDS + OBJECT_ANY_HITS], 1u);
    if (hit) {
        atomicAdd(&counters[COUNT_HITS], 1u);
        atomicAdd(&counters[COUNT_NODES_HIT], slot_counts[SLOT_NODES * slots + slot]);
    }
}
