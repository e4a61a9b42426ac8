// A sort key for every ray of a queue that no pass has drained, and its index: the octant of its
// direction, then the Morton code of its origin within the scene's box. $record says how a ray is
// read. See passes/sorting.py.
#import passes.frame_uniforms
#import passes.queue
#import "bvh/shaders/ray.wgsl"
#import $record

struct RayQueue {
    header: QueueHeader,
    records: array<RayRecord>,
}

@group(0) @binding(0) var<uniform> frame: FrameUniforms;
@group(0) @binding(1) var<storage, read> bvh: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read> queue: RayQueue;
@group(0) @binding(3) var<storage, read_write> keys: array<u32>;
@group(0) @binding(4) var<storage, read_write> order: array<u32>;
@group(0) @binding(5) var<storage, read_write> live: array<u32>; // how many there are

override AXIS_BITS: u32 = 9u; // of the Morton code

var<private> results: array<RayResult, 1>; // for $record's store_result, which nothing calls here

@compute @workgroup_size(64)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    let index = (frame.first_group + group.y * groups.x + group.x) * QUEUE_GROUP_SIZE + lane;
    let first = queue.header.drained;
    let count = min(queue.header.count, queue.header.capacity) - first;
    if (index == 0u) { live[0] = count; }
    if (index >= count) { return; }
    order[index] = first + index;
    let ray = load_ray(first + index);
    // The TLAS container's header: bounds_min, then bounds_max.
    let low = bitcast<vec3f>(bvh[3].xyz);
    let high = bitcast<vec3f>(vec3u(bvh[3].w, bvh[4].xy));
    let place = (ray.origin - low) / max(high - low, vec3f(1.0e-20));
    let cells = f32(1u << AXIS_BITS);
    let cell = vec3u(clamp(place * cells, vec3f(0.0), vec3f(cells - 1.0)));
    let negative = ray.direction < vec3f(0.0);
    var key = u32(negative.x) << 2u | u32(negative.y) << 1u | u32(negative.z);
    for (var level = AXIS_BITS; level > 0u; level -= 1u) {
        let bit = cell >> vec3u(level - 1u) & vec3u(1u);
        key = key << 3u | bit.x << 2u | bit.y << 1u | bit.z;
    }
    keys[index] = key;
}
