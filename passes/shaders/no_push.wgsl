// Fills the $push slot of a stage whose rays nobody traces: as queue_push.wgsl, but nothing is kept.
#import passes.queue

struct PushQueue {
    unused: u32,
}

fn clear_votes(lane: u32) {}

fn vote(lane: u32) {}

fn push(lane: u32, voted: bool, record: PushRecord) {}
