// Which part of two queues a dispatch drains that mixes them (passes/mixed.py), and its group counts:
// what nobody has drained yet, which from now on counts as drained. Counts above 65,535 groups go into
// y: past that limit an indirect dispatch silently does nothing.
#import passes.queue
#import passes.mixed

@group(0) @binding(0) var<storage, read_write> queue: QueueHeader;
@group(0) @binding(1) var<storage, read_write> other_queue: QueueHeader;
@group(0) @binding(2) var<storage, read_write> arguments: MixedArguments;

const GROUPS_PER_DIMENSION: u32 = 65535u;

fn groups_of(rays: u32) -> u32 {
    return (rays + QUEUE_GROUP_SIZE - 1u) / QUEUE_GROUP_SIZE;
}

@compute @workgroup_size(1)
fn main() {
    let first_end = min(queue.count, queue.capacity);
    let other_end = min(other_queue.count, other_queue.capacity);
    let first_groups = groups_of(first_end - queue.drained);
    let groups = first_groups + groups_of(other_end - other_queue.drained);
    let rows = max(1u, (groups + GROUPS_PER_DIMENSION - 1u) / GROUPS_PER_DIMENSION);
    arguments = MixedArguments((groups + rows - 1u) / rows, rows, 1u, first_groups,
        queue.drained, first_end, other_queue.drained, other_end);
    queue.drained = first_end;
    other_queue.drained = other_end;
}
