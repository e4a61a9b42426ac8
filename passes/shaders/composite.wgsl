// Puts the frame together: emission, ambient light (with occlusion rays: where its ray was free),
// the area lights where shadow rays arrived, and what reflections brought, or the environment or
// the probe where the pixel is too rough to send a ray. With LIGHTS_APART earlier passes have made light of
// these (light_direct.wgsl, light_reflection.wgsl), which `direct` and `reflected` then are. Adds the
// sample to the running mean and writes the tone-mapped picture (sRGB bytes).
#import passes.frame_uniforms
#import engine.scene.records
#import "passes/shaders/material_record.wgsl"
#import "passes/shaders/octahedral.wgsl"
#import "passes/shaders/gbuffer.wgsl"
#import "passes/shaders/surface_albedo.wgsl"
#import "passes/shaders/rough_radiance.wgsl"
#import "passes/shaders/reflected.wgsl"
#import "passes/shaders/direct.wgsl"
#import "passes/shaders/tone_map.wgsl"

@group(0) @binding(0) var<uniform> frame: FrameUniforms;
@group(0) @binding(1) var<storage, read> tables: array<vec4<u32>>;
@group(0) @binding(2) var visibility: texture_2d<u32>;
@group(0) @binding(3) var surface: texture_2d<u32>;
@group(0) @binding(4) var<storage, read> direct: array<vec2u>;
@group(0) @binding(5) var<storage, read> reflected: array<vec2u>;
@group(0) @binding(6) var<storage, read> shadow_results: array<u32>;
@group(0) @binding(7) var<storage, read> occlusion_results: array<u32>;
@group(0) @binding(8) var<storage, read_write> accumulated: array<vec4f>;
@group(0) @binding(9) var<storage, read_write> picture: array<u32>;
@group(0) @binding(10) var depth: texture_2d<f32>;
@group(0) @binding(11) var probe: texture_2d<f32>; // read where ROUGH_PROBE
@group(0) @binding(12) var lobe_table: texture_2d<u32>;

override OCCLUDED: bool = false;
override LIGHTS_APART: bool = false;
// These lights are means already, and occluded ambient light came with the area light's.
override FILTERED: bool = false;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let pixel = tile_pixel(group, lane);
    if (pixel.x >= frame.width || pixel.y >= frame.height) { return; }
    let index = pixel.y * frame.width + pixel.x;
    let direction = camera_direction(pixel);
    var radiance = environment(direction);
    if (textureLoad(visibility, pixel, 0).x != NOTHING) {
        let s = unpack_surface(textureLoad(surface, pixel, 0));
        let view = normalize(-direction);
        let emissive = material_emissive(s.material);
        let specular = surface_albedo(s, view);
        var ambient = ambient_radiance(s.shading_normal);
        if (OCCLUDED) { ambient *= select(f32(occlusion_results[index]), 0.0, FILTERED); }
        radiance = emissive + diffuse_albedo(s.base_color, s.metalness, specular) * ambient;
        if (LIGHTS_APART) {
            radiance += unpack_radiance(direct[index]) + unpack_radiance(reflected[index]);
        } else {
            radiance += direct_radiance(index);
            if (s.roughness <= frame.roughness_cutoff) {
                radiance += reflected_radiance(index);
            } else {
                let position = frame.camera_origin.xyz + textureLoad(depth, pixel, 0).x * direction;
                radiance += specular * rough_radiance(s, view, position);
            }
        }
    }
    var sum = vec4f(radiance, 1.0);
    if (!FILTERED && frame.sample_count > 1u) { sum += accumulated[index]; }
    accumulated[index] = sum;
    let display = linear_to_srgb(tone_map(sum.xyz / sum.w * frame.exposure));
    picture[index] = pack4x8unorm(vec4f(display, 1.0));
}
