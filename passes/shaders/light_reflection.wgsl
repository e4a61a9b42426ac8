// What each pixel is shown of reflections as light of its own, for passes between it and the
// composite: radiance, and the distance of what is reflected. Where no ray stands for a pixel, since
// it is too rough or shares the ray of one that is, the environment or the probe does.
#import passes.frame_uniforms
#import "passes/shaders/gbuffer.wgsl"
#import "passes/shaders/surface_albedo.wgsl"
#import "passes/shaders/rough_radiance.wgsl"
#import "passes/shaders/reflection_block.wgsl"
#import "passes/shaders/reflected.wgsl"

@group(0) @binding(0) var<uniform> frame: FrameUniforms;
@group(0) @binding(1) var visibility: texture_2d<u32>;
@group(0) @binding(2) var surface: texture_2d<u32>;
@group(0) @binding(3) var<storage, read> reflected: array<vec2u>;
@group(0) @binding(4) var<storage, read> shadow_results: array<u32>;
@group(0) @binding(5) var<storage, read_write> reflection_light: array<vec2u>;
@group(0) @binding(6) var depth: texture_2d<f32>;
@group(0) @binding(7) var probe: texture_2d<f32>; // read where ROUGH_PROBE

fn sends(pixel: vec2u) -> bool {
    return textureLoad(visibility, pixel, 0).x != NOTHING
        && unpack_surface(textureLoad(surface, pixel, 0)).roughness <= frame.roughness_cutoff;
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let pixel = tile_pixel(group, lane);
    if (pixel.x >= frame.width || pixel.y >= frame.height) { return; }
    var light = pack_radiance(vec3f(0.0), MISS_DISTANCE);
    if (textureLoad(visibility, pixel, 0).x != NOTHING) {
        let sender = reflection_pixel(pixel);
        if (sends(pixel) && sends(sender)) {
            let index = sender.y * frame.width + sender.x;
            light = pack_radiance(reflected_radiance(index), reflected_distance(index));
        } else {
            let s = unpack_surface(textureLoad(surface, pixel, 0));
            let direction = camera_direction(pixel);
            let view = normalize(-direction);
            let position = frame.camera_origin.xyz + textureLoad(depth, pixel, 0).x * direction;
            light = pack_radiance(surface_albedo(s, view) * rough_radiance(s, view, position), MISS_DISTANCE);
        }
    }
    reflection_light[pixel.y * frame.width + pixel.x] = light;
}
