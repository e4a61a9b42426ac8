// What hits of reflection rays see of the area lights, looked up in their shadow maps, where shadow
// rays would leave what they found and the sampled points of the lights lie (keep_light.wgsl); shaded
// hits that receive no light are left alone.
#import passes.frame_uniforms
#import "bvh/shaders/ray.wgsl"
#import "passes/shaders/surface.wgsl"
#import "passes/shaders/tone_map.wgsl"
#import "passes/shaders/sampled_visibility.wgsl"
#import "passes/shaders/shadow_slot.wgsl"
#import passes.queue

struct WordQueue {
    header: QueueHeader,
    words: array<u32>,
}

@group(0) @binding(0) var<uniform> frame: FrameUniforms;
@group(0) @binding(1) var<storage, read> queue: WordQueue;
@group(0) @binding(2) var<storage, read> results: array<Hit>;
@group(0) @binding(3) var<storage, read> tables: array<vec4<u32>>;
@group(0) @binding(4) var<storage, read> geometry: array<u32>;
@group(0) @binding(5) var shadow_map: texture_depth_2d_array;
@group(0) @binding(6) var<storage, read> reflected: array<vec2u>;
@group(0) @binding(7) var<storage, read_write> shadow_results: array<u32>;

override RECORD_WORDS: u32 = 8u;
override BOUNCE: u32 = 1u; // of the rays, along their paths

const PIXEL_WORD: u32 = 3u; // of a reflection ray's record, whatever its bounce

@compute @workgroup_size(64)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    let index = (frame.first_group + group.y * groups.x + group.x) * QUEUE_GROUP_SIZE + lane;
    if (index >= min(queue.header.count, queue.header.capacity)) { return; }
    let pixel = queue.words[index * RECORD_WORDS + PIXEL_WORD];
    let hit = results[index];
    for (var number = 0u; number < SHADOW_RAYS; number += 1u) {
        let light = reflected[reflected_light_place(pixel, BOUNCE, number)];
        if (is_black(unpack_radiance(light))) { continue; } // as it is where nothing was hit
        let point = surface_point(hit.object, hit.primitive, hit.u, hit.v);
        let slot = shadow_slot(pixel, BOUNCE, number);
        shadow_results[slot] = sampled_visibility(
            shadow_results[slot], point.position, point.geometric_normal);
    }
}
