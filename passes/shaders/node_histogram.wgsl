// How many rays visited how many box nodes, so that percentiles are known without reading every
// ray's count back. A slot without nodes sent no ray.
#import passes.frame_uniforms
#import passes.queue

@group(0) @binding(0) var<uniform> frame: FrameUniforms;
@group(0) @binding(1) var<storage, read> slot_counts: array<u32>; // nodes come first
@group(0) @binding(2) var<storage, read_write> histogram: array<atomic<u32>>;

override SLOTS_PER_PIXEL: u32 = 1u;

@compute @workgroup_size(64)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    let slot = (group.y * groups.x + group.x) * QUEUE_GROUP_SIZE + lane;
    if (slot >= frame.width * frame.height * SLOTS_PER_PIXEL) { return; }
    let nodes = slot_counts[slot];
    if (nodes > 0u) { atomicAdd(&histogram[min(nodes, arrayLength(&histogram) - 1u)], 1u); }
}
