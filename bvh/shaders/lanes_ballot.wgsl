// Fills count_events.wgsl's $lanes slot: which lanes of a subgroup fetch box nodes together, and how
// many different ones. Needs the feature `subgroup`; assumes no subgroup size.

const NO_NODE: u32 = 0xffffffffu; // beyond any buffer

// When the lanes that are active fetch a box node each, `node` being where this lane's lies. One of
// them counts the step, and the different nodes of it: those still pending with the least place are
// one, whichever lanes they are.
fn count_lanes(node: u32) {
    let speaks = subgroupExclusiveAdd(1u) == 0u;
    var pending = node;
    var distinct = 0u;
    loop {
        let least = subgroupMin(pending);
        if (least == NO_NODE) { break; }
        distinct += 1u;
        pending = select(pending, NO_NODE, pending == least);
    }
    if (speaks) {
        counted[COUNT_SUBGROUP_STEPS] += 1u;
        counted[COUNT_SUBGROUP_NODES] += distinct;
    }
}

// Lanes of the subgroup, where all of them are active.
fn subgroup_lanes() -> u32 {
    return subgroupAdd(1u);
}
