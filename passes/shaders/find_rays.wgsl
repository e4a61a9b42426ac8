// Looks through a ray queue for a pixel's rays, its own or those of the pixel that sends for its block
// (passes/senders.py), and writes down what each is, read as the traversal reads it. Dispatched as the
// queue is drained. $record says how a ray is read.
#import passes.frame_uniforms
#import passes.queue
#import passes.pixel_probe
#import "bvh/shaders/ray.wgsl"
#import "passes/shaders/reflection_block.wgsl"
#import $record

struct RayQueue {
    header: AtomicQueueHeader,
    records: array<RayRecord>,
}

@group(0) @binding(0) var<uniform> frame: FrameUniforms;
@group(0) @binding(1) var<storage, read_write> queue: RayQueue;
@group(0) @binding(2) var<storage, read_write> results: array<RayResult>;
@group(0) @binding(3) var<uniform> pixel: PixelSlots;
@group(0) @binding(4) var<storage, read_write> found: array<FoundRay>;
@group(0) @binding(5) var visibility: texture_2d<u32>;
@group(0) @binding(6) var surface: texture_2d<u32>;

@compute @workgroup_size(64)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    let index = (group.y * groups.x + group.x) * QUEUE_GROUP_SIZE + lane;
    let count = min(atomicLoad(&queue.header.count), atomicLoad(&queue.header.capacity));
    if (index >= count) { return; }
    let slot = ray_slot(index);
    let slots: u32 = pixel.count;
    let kind = slot % slots;
    let sender = slot / slots;
    if ((pixel.shared_slots >> kind & 1u) == 0u) {
        if (sender != pixel.own) { return; }
    } else {
        // The block's rays come from whichever of its pixels.
        let own = vec2u(pixel.own % frame.width, pixel.own / frame.width);
        let from_pixel = vec2u(sender % frame.width, sender / frame.width);
        if (any(from_pixel / REFLECTION_BLOCK != own / REFLECTION_BLOCK)) { return; }
        let expected = sender_for(own);
        if (!expected.sends || sender != expected.pixel.y * frame.width + expected.pixel.x) { return; }
    }
    let ray = load_ray(index);
    found[kind] = FoundRay(
        array<f32, 3>(ray.origin.x, ray.origin.y, ray.origin.z), ray.t_min,
        array<f32, 3>(ray.direction.x, ray.direction.y, ray.direction.z), ray.t_max, index, slot, 1u);
}
