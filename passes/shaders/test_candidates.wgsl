// The alpha test of what waits for it: accepted candidates are their rays' hits, the others' rays
// are traced on (passes/candidates.py).
#import passes.frame_uniforms
#import passes.queue
#import passes.candidates
#import "bvh/shaders/ray.wgsl"
#import $accept
#import $record
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
@group(0) @binding(1) var<storage, read_write> queue: RayQueue;
@group(0) @binding(2) var<storage, read_write> results: array<RayResult>;
@group(0) @binding(3) var<storage, read> alpha: array<u32>;
@group(0) @binding(4) var<storage, read> texels: array<u32>;
@group(0) @binding(5) var<storage, read_write> candidates: CandidateQueue;
@group(0) @binding(6) var<storage, read_write> push_queue: PushQueue;

@compute @workgroup_size(64)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    let index = (frame.first_group + group.y * groups.x + group.x) * QUEUE_GROUP_SIZE + lane;
    clear_votes(lane);
    let count = min(atomicLoad(&candidates.header.count), atomicLoad(&candidates.header.capacity));
    var goes_on = false;
    var tested = Candidate();
    if (index < count) {
        tested = candidates.records[index];
        goes_on = !accept_candidate(tested.object, tested.primitive, tested.u, tested.v);
        if (goes_on) {
            vote(lane);
        } else {
            store_result(tested.ray, Hit(tested.t, tested.u, tested.v, tested.object,
                tested.primitive, tested.instance));
        }
    }
    push(lane, goes_on, tested);
}
