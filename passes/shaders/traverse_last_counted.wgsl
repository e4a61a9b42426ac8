// The last round of a ray queue, counting: candidates are tested inline (passes/candidates.py).
#import passes.frame_uniforms
#import passes.queue
#import passes.candidates
#import $traverse
#import $record
#import "passes/shaders/count_rounds.wgsl"

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
@group(0) @binding(5) var<storage, read> alpha: array<u32>;
@group(0) @binding(6) var<storage, read> texels: array<u32>;
@group(0) @binding(7) var<storage, read_write> counters: array<atomic<u32>>;
@group(0) @binding(8) var<storage, read_write> slot_counts: array<u32>;

@compute @workgroup_size(64)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    let index = (frame.first_group + group.y * groups.x + group.x) * QUEUE_GROUP_SIZE + lane;
    let count = min(atomicLoad(&rejected.header.count), atomicLoad(&rejected.header.capacity));
    if (index < count) {
        let behind = rejected.records[index];
        resume = Resume(behind.t, behind.place, behind.instance, false);
        let result = trace(load_ray(behind.ray), frame.zero);
        store_result(behind.ray, result.hit);
        if (result.failed != 0u) { atomicOr(&queue.header.failed, result.failed); }
        count_round(ray_slot(behind.ray), false, result.hit.object != MISS, result.hit.instance,
            result.failed);
    }
    add_counters(lane);
}
