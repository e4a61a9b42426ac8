// Pushes in lane order with one atomic a workgroup: every lane votes, one lane reserves, and those
// that voted take consecutive slots. Order within a workgroup is the lanes', so that rays of
// neighbouring pixels stay neighbours. Needs `push_queue: PushQueue` and the type PushRecord.
#import passes.queue
#import "passes/shaders/push_record.wgsl"

var<workgroup> push_votes: array<atomic<u32>, 2>;
var<workgroup> push_base: u32;

// First, in uniform control flow: some drivers hand out workgroup memory that is not zero, against
// the specification.
fn clear_votes(lane: u32) {
    if (lane < 2u) { atomicStore(&push_votes[lane], 0u); }
    workgroupBarrier();
}

fn vote(lane: u32) {
    atomicOr(&push_votes[lane >> 5u], 1u << (lane & 31u));
}

fn vote_total() -> u32 {
    return countOneBits(atomicLoad(&push_votes[0])) + countOneBits(atomicLoad(&push_votes[1]));
}

// How many lanes before this one voted.
fn vote_rank(lane: u32) -> u32 {
    let below = (1u << (lane & 31u)) - 1u;
    let mine = countOneBits(atomicLoad(&push_votes[lane >> 5u]) & below);
    return mine + select(0u, countOneBits(atomicLoad(&push_votes[0])), lane >= 32u);
}

// In uniform control flow, after the votes: takes room for all of them. Lane's own slot is
// `push_base + vote_rank(lane)`; records past `capacity` do not fit and are counted.
fn reserve(lane: u32, capacity: u32) {
    workgroupBarrier();
    if (lane == 0u) {
        let total = vote_total();
        push_base = atomicAdd(&push_queue.header.count, total);
        atomicStore(&push_queue.header.capacity, capacity);
        let lost = overflow(push_base, total, capacity);
        if (lost > 0u) { atomicAdd(&push_queue.header.dropped, lost); }
    }
    workgroupBarrier();
}
