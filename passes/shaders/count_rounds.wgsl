// Counters of rays that are traced in rounds (passes/candidates.py): a ray's planes add up over them.
// Needs `frame`, `slot_counts` and what fills traverse.wgsl's $count slot.
#import passes.slot_counts

override SLOTS_PER_PIXEL: u32 = 1u;

fn slot_plane(plane: u32, slot: u32) -> u32 {
    return plane * frame.width * frame.height * SLOTS_PER_PIXEL + slot;
}

// After a trace; `hit`: the ray has its hit now, in `instance`.
fn count_round(slot: u32, first: bool, hit: bool, instance: u32, failed: u32) {
    for (var plane = 0u; plane < SLOT_FIELDS; plane += 1u) {
        let at = slot_plane(plane, slot);
        let more = counted[SLOT_COUNTERS[plane]];
        let old = slot_counts[at];
        slot_counts[at] = select(old + more, max(old, more), plane == SLOT_STACK_MAX);
    }
    counted[COUNT_RAYS] = select(0u, 1u, first);
    count_hit(hit, instance);
    counted[COUNT_NODES_HIT] = select(0u, slot_counts[slot_plane(SLOT_NODES, slot)], hit);
    counted[COUNT_OVERFLOWS] = select(0u, 1u, failed != 0u);
}
