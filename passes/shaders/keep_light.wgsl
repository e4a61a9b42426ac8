// Fills the $push slot of a stage whose shadow rays nobody traces: as queue_push.wgsl, but the point
// of a light that a ray would go to is left where its result would be, for whoever looks that light's
// map up and puts the result there.
#import passes.queue

struct PushQueue {
    results: array<u32>,
}

fn clear_votes(lane: u32) {}

fn vote(lane: u32) {}

fn push(lane: u32, voted: bool, record: PushRecord) {
    if (voted) { push_queue.results[record.slot] = record.light_uv; }
}
