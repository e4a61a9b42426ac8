// One round of a ray queue, counting: candidates wait in a queue for their test (passes/candidates.py).
// Rays of the first round (RESUMED false) come from the ray queue, of others from `rejected`.
#import passes.frame_uniforms
#import passes.queue
#import passes.candidates
#import $traverse
#import $record
#import "passes/shaders/count_rounds.wgsl"
#import $push

alias PushRecord = Candidate;

struct RayQueue {
    header: AtomicQueueHeader,
    records: array<RayRecord>,
}

struct CandidateQueue {
    header: AtomicQueueHeader,
    records: array<Candidate>,
}

@group(0) @binding(0) var<uniform> frame: FrameUniforms;
@group(0) @binding(1) var<storage, read> bvh: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read_write> queue: RayQueue;
@group(0) @binding(3) var<storage, read_write> results: array<RayResult>;
@group(0) @binding(4) var<storage, read_write> rejected: CandidateQueue;
@group(0) @binding(5) var<storage, read_write> push_queue: PushQueue;
@group(0) @binding(6) var<storage, read_write> counters: array<atomic<u32>>;
@group(0) @binding(7) var<storage, read_write> slot_counts: array<u32>;

@compute @workgroup_size(64)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    let index = (frame.first_group + group.y * groups.x + group.x) * QUEUE_GROUP_SIZE + lane;
    clear_votes(lane);
    var count = min(atomicLoad(&queue.header.count), atomicLoad(&queue.header.capacity));
    if (RESUMED) {
        count = min(atomicLoad(&rejected.header.count), atomicLoad(&rejected.header.capacity));
    }
    var waits = false;
    var found = Candidate();
    if (index < count) {
        var ray = index;
        if (RESUMED) {
            let behind = rejected.records[index];
            ray = behind.ray;
            resume = Resume(behind.t, behind.place, behind.instance, false);
        }
        let result = trace(load_ray(ray), frame.zero);
        let hit = result.hit;
        waits = tentative.waits && hit.object != MISS && result.failed == 0u;
        if (waits) {
            vote(lane);
            found = Candidate(ray, hit.t, hit.u, hit.v, hit.object, hit.primitive, hit.instance,
                tentative.place);
        } else {
            store_result(ray, hit);
        }
        if (result.failed != 0u) { atomicOr(&queue.header.failed, result.failed); }
        count_round(ray_slot(ray), !RESUMED, !waits && hit.object != MISS, hit.instance, result.failed);
    }
    push(lane, waits, found);
    add_counters(lane);
}
