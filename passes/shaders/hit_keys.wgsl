// A sort key for every ray of a closest-hit queue, and its index: the material of what it hit, misses
// behind all. See passes/sorting.py.
#import passes.frame_uniforms
#import passes.queue
#import "bvh/shaders/ray.wgsl"

@group(0) @binding(0) var<uniform> frame: FrameUniforms;
@group(0) @binding(1) var<storage, read> tables: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read> queue: QueueHeader;
@group(0) @binding(3) var<storage, read> results: array<Hit>;
@group(0) @binding(4) var<storage, read_write> keys: array<u32>;
@group(0) @binding(5) var<storage, read_write> order: array<u32>;
@group(0) @binding(6) var<storage, read_write> live: array<u32>; // how many there are

const MISSED: u32 = 0xffffu; // materials have 16 bits, and none has this number
const OBJECT_VEC4S: u32 = 7u;

@compute @workgroup_size(64)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    let index = (frame.first_group + group.y * groups.x + group.x) * QUEUE_GROUP_SIZE + lane;
    let count = min(queue.count, queue.capacity);
    if (index == 0u) { live[0] = count; }
    if (index >= count) { return; }
    order[index] = index;
    let object = results[index].object;
    var key = MISSED;
    if (object != MISS) { key = tables[object * OBJECT_VEC4S + 6u].z; }
    keys[index] = key;
}
