// As queue_push.wgsl, by subgroups: a lane's place among those that voted is a prefix sum over its
// subgroup, and workgroup memory is touched once a subgroup, not once a lane. Lanes keep their order
// within a subgroup; which subgroup of a workgroup comes first is up to the GPU. Assumes no subgroup
// size. Needs the feature `subgroup`, `push_queue: PushQueue` and the type PushRecord.
#import passes.queue
#import "passes/shaders/push_record.wgsl"

var<workgroup> push_total: atomic<u32>;
var<workgroup> push_base: u32;
var<private> push_votes: u32; // 1: this lane votes
var<private> push_rank: u32;

// The barrier that orders this before the votes of others is in `reserve`.
fn clear_votes(lane: u32) {
    if (lane == 0u) { atomicStore(&push_total, 0u); }
    push_votes = 0u;
}

fn vote(lane: u32) {
    push_votes = 1u;
}

// How many of the workgroup's voting lanes come before this one.
fn vote_rank(lane: u32) -> u32 {
    return push_rank;
}

// As queue_push.wgsl has it. The first barrier also brings back together what has diverged, without
// which a subgroup operation may see a part of its lanes.
fn reserve(lane: u32, capacity: u32) {
    workgroupBarrier();
    let before = subgroupExclusiveAdd(push_votes);
    let total = subgroupAdd(push_votes);
    let is_first = subgroupBroadcastFirst(lane) == lane;
    var base = 0u;
    if (is_first && total > 0u) { base = atomicAdd(&push_total, total); }
    push_rank = subgroupBroadcastFirst(base) + before;
    workgroupBarrier();
    if (lane == 0u) {
        let all = atomicLoad(&push_total);
        push_base = atomicAdd(&push_queue.header.count, all);
        atomicStore(&push_queue.header.capacity, capacity);
        let lost = overflow(push_base, all, capacity);
        if (lost > 0u) { atomicAdd(&push_queue.header.dropped, lost); }
    }
    workgroupBarrier();
}
