// The lane with the least cost of a workgroup, the evenest of equals, then the first.

var<workgroup> least_cost: atomic<u32>;
var<workgroup> least_uneven: atomic<u32>;
var<workgroup> chosen: atomic<u32>;

// For one lane alone, before a barrier.
fn reset_choice() {
    atomicStore(&least_cost, 0xffffffffu);
    atomicStore(&least_uneven, 0xffffffffu);
    atomicStore(&chosen, 0xffffffffu);
}

// The lane, or 0xffffffff where none is usable; for all lanes, after a barrier.
fn choose(lane: u32, usable: bool, cost: u32, uneven: u32) -> u32 {
    if (usable) { atomicMin(&least_cost, cost); }
    workgroupBarrier();
    let cheapest = usable && cost == atomicLoad(&least_cost);
    if (cheapest) { atomicMin(&least_uneven, uneven); }
    workgroupBarrier();
    if (cheapest && uneven == atomicLoad(&least_uneven)) { atomicMin(&chosen, lane); }
    workgroupBarrier();
    return atomicLoad(&chosen);
}
