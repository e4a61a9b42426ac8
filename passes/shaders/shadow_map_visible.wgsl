// What visible surfaces see of the area lights, looked up in their shadow maps, where shadow rays
// would leave what they found. There lies the point of the light that the pixel's direct light is
// sampled at (keep_light.wgsl), which jitters the filter.
#import passes.frame_uniforms
#import "passes/shaders/surface.wgsl"
#import "passes/shaders/gbuffer.wgsl"
#import "passes/shaders/tone_map.wgsl"
#import "passes/shaders/sampled_visibility.wgsl"
#import "passes/shaders/shadow_slot.wgsl"

@group(0) @binding(0) var<uniform> frame: FrameUniforms;
@group(0) @binding(1) var<storage, read> tables: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read> geometry: array<u32>;
@group(0) @binding(3) var visibility: texture_2d<u32>;
@group(0) @binding(4) var shadow_map: texture_depth_2d_array;
@group(0) @binding(5) var<storage, read> direct: array<vec2u>;
@group(0) @binding(6) var<storage, read_write> shadow_results: array<u32>;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let pixel = tile_pixel(group, lane);
    if (pixel.x >= frame.width || pixel.y >= frame.height) { return; }
    let index = pixel.y * frame.width + pixel.x;
    let seen = textureLoad(visibility, pixel, 0);
    for (var number = 0u; number < SHADOW_RAYS; number += 1u) {
        let slot = shadow_slot(index, 0u, number);
        if (is_black(unpack_radiance(direct[direct_place(index, number)]))) {
            shadow_results[slot] = 0u;
            continue;
        }
        let point = surface_point(seen.x, seen.y, bitcast<f32>(seen.z), bitcast<f32>(seen.w));
        shadow_results[slot] = sampled_visibility(
            shadow_results[slot], point.position, point.geometric_normal);
    }
}
