// What both ways of pushing share: the queue of PushRecord, and the end, in which lanes store their
// records in `push_queue`. Needs both of these names.
#import passes.queue

struct PushQueue {
    header: AtomicQueueHeader,
    records: array<PushRecord>,
}

// In uniform control flow, after the votes: a lane that voted stores its record, if there is room.
fn push(lane: u32, voted: bool, record: PushRecord) {
    let capacity = arrayLength(&push_queue.records);
    reserve(lane, capacity);
    let slot = push_base + vote_rank(lane);
    if (voted && slot < capacity) { push_queue.records[slot] = record; }
}

// Records of a push of `total` at `base` that do not fit into `capacity`.
fn overflow(base: u32, total: u32, capacity: u32) -> u32 {
    return base + total - min(base + total, max(base, capacity));
}
