// Drains one ray queue through the BVH, from the first ray on that no earlier pass has drained. $record
// says how a ray is read and its result kept.
#import passes.frame_uniforms
#import passes.queue
#import $traverse
#import $record

struct RayQueue {
    header: AtomicQueueHeader,
    records: array<RayRecord>,
}

@group(0) @binding(0) var<uniform> frame: FrameUniforms;
@group(0) @binding(1) var<storage, read> bvh: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read_write> queue: RayQueue;
@group(0) @binding(3) var<storage, read_write> results: array<RayResult>;
@group(0) @binding(4) var<storage, read> alpha: array<u32>;
@group(0) @binding(5) var<storage, read> texels: array<u32>;

@compute @workgroup_size(64)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    let index = atomicLoad(&queue.header.drained)
        + (frame.first_group + group.y * groups.x + group.x) * QUEUE_GROUP_SIZE + lane;
    let count = min(atomicLoad(&queue.header.count), atomicLoad(&queue.header.capacity));
    if (index < count) {
        let result = trace(load_ray(index), frame.zero);
        store_result(index, result.hit);
        if (result.failed != 0u) { atomicOr(&queue.header.failed, result.failed); }
    }
}
