// Copies what a queue still holds in the order that a sort found, and its header. A workgroup copies
// 64 records word by word, so that neighbouring lanes write neighbouring words. See passes/sorting.py.
#import passes.frame_uniforms
#import passes.queue

struct UnsortedQueue {
    header: QueueHeader,
    words: array<u32>,
}

struct SortedQueue {
    header: AtomicQueueHeader,
    words: array<u32>,
}

@group(0) @binding(0) var<uniform> frame: FrameUniforms;
@group(0) @binding(1) var<storage, read> unsorted: UnsortedQueue;
@group(0) @binding(2) var<storage, read> order: array<u32>;
@group(0) @binding(3) var<storage, read_write> queue: SortedQueue;

override RECORD_WORDS: u32 = 8u;

@compute @workgroup_size(64)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    let first = (frame.first_group + group.y * groups.x + group.x) * QUEUE_GROUP_SIZE;
    let drained = unsorted.header.drained;
    let count = min(unsorted.header.count, unsorted.header.capacity) - drained;
    for (var word = lane; word < QUEUE_GROUP_SIZE * RECORD_WORDS; word += QUEUE_GROUP_SIZE) {
        let index = first + word / RECORD_WORDS;
        if (index < count) {
            let part = word % RECORD_WORDS;
            queue.words[(drained + index) * RECORD_WORDS + part] =
                unsorted.words[order[index] * RECORD_WORDS + part];
        }
    }
    // What the passes after this one add to the header stays.
    if (first == 0u && lane == 0u) {
        atomicStore(&queue.header.count, unsorted.header.count);
        atomicStore(&queue.header.capacity, unsorted.header.capacity);
        atomicStore(&queue.header.dropped, unsorted.header.dropped);
        atomicStore(&queue.header.replaced, unsorted.header.replaced);
        atomicStore(&queue.header.lost, unsorted.header.lost);
        atomicStore(&queue.header.drained, drained);
    }
}
