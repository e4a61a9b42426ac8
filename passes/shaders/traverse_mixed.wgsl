// Drains two ray queues through the BVH in one dispatch: the workgroups of one, then those of the
// other, so that the last rays of the first overlap with the second's and no lane waits for a ray of
// another type. $record and $other_record say how rays are read and their results kept. What differs
// between ray types in the kernel is private here, and the same in a workgroup. See passes/mixed.py.
#import passes.frame_uniforms
#import passes.queue
#import passes.mixed
#import $traverse
#import $record
#import $other_record as other (queue, results)

struct RayQueue {
    header: AtomicQueueHeader,
    records: array<RayRecord>,
}

struct OtherRayQueue {
    header: AtomicQueueHeader,
    records: array<other_RayRecord>,
}

@group(0) @binding(0) var<uniform> frame: FrameUniforms;
@group(0) @binding(1) var<storage, read> bvh: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read_write> queue: RayQueue;
@group(0) @binding(3) var<storage, read_write> results: array<RayResult>;
@group(0) @binding(4) var<storage, read_write> other_queue: OtherRayQueue;
@group(0) @binding(5) var<storage, read_write> other_results: array<other_RayResult>;
@group(0) @binding(6) var<storage, read> alpha: array<u32>;
@group(0) @binding(7) var<storage, read> texels: array<u32>;
@group(0) @binding(8) var<storage, read> spans: MixedArguments;

override FIRST_ANY_HIT: bool = false;
override FIRST_SORT: bool = true;
override FIRST_MASK: u32 = 255u;
override OTHER_ANY_HIT: bool = true;
override OTHER_SORT: bool = false;
override OTHER_MASK: u32 = 255u;

@compute @workgroup_size(64)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    let place = frame.first_group + group.y * groups.x + group.x;
    let is_first = place < spans.first_groups;
    let own = select(place - spans.first_groups, place, is_first);
    let index = select(spans.other_begin, spans.first_begin, is_first)
        + own * QUEUE_GROUP_SIZE + lane;
    if (index >= select(spans.other_end, spans.first_end, is_first)) { return; }
    ANY_HIT = select(OTHER_ANY_HIT, FIRST_ANY_HIT, is_first);
    SORT = select(OTHER_SORT, FIRST_SORT, is_first);
    RAY_MASK = select(OTHER_MASK, FIRST_MASK, is_first);
    var ray: Ray;
    if (is_first) { ray = load_ray(index); } else { ray = other_load_ray(index); }
    let result = trace(ray, frame.zero);
    if (is_first) {
        store_result(index, result.hit);
        if (result.failed != 0u) { atomicOr(&queue.header.failed, result.failed); }
    } else {
        other_store_result(index, result.hit);
        if (result.failed != 0u) { atomicOr(&other_queue.header.failed, result.failed); }
    }
}
