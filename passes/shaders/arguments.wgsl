// Turns what a queue still holds into the group counts of the dispatch that drains it. Counts above 65,535
// groups go into y: past that limit an indirect dispatch silently does nothing.
#import passes.queue

@group(0) @binding(0) var<storage, read> queue: QueueHeader;
@group(0) @binding(1) var<storage, read_write> arguments: array<u32>;

const GROUPS_PER_DIMENSION: u32 = 65535u;

@compute @workgroup_size(1)
fn main() {
    let rays = min(queue.count, queue.capacity) - queue.drained;
    let groups = (rays + QUEUE_GROUP_SIZE - 1u) / QUEUE_GROUP_SIZE;
    let rows = max(1u, (groups + GROUPS_PER_DIMENSION - 1u) / GROUPS_PER_DIMENSION);
    arguments[0] = (groups + rows - 1u) / rows;
    arguments[1] = rows;
    arguments[2] = 1u;
}
