// Shows the ambient light on visible surfaces in the newest frame: what occlusion rays let through,
// tone-mapped as the picture.
#import passes.frame_uniforms
#import "passes/shaders/gbuffer.wgsl"
#import "passes/shaders/surface_albedo.wgsl"
#import "passes/shaders/environment.wgsl"
#import "passes/shaders/tone_map.wgsl"

@group(0) @binding(0) var<uniform> frame: FrameUniforms;
@group(0) @binding(1) var visibility: texture_2d<u32>;
@group(0) @binding(2) var surface: texture_2d<u32>;
@group(0) @binding(3) var<storage, read> occlusion_results: array<u32>;
@group(0) @binding(4) var shown: texture_storage_2d<rgba8unorm, write>;
@group(0) @binding(5) var lobe_table: texture_2d<u32>;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let pixel = tile_pixel(group, lane);
    if (pixel.x >= frame.width || pixel.y >= frame.height) { return; }
    var radiance = vec3f(0.0);
    if (textureLoad(visibility, pixel, 0).x != NOTHING) {
        let s = unpack_surface(textureLoad(surface, pixel, 0));
        let specular = surface_albedo(s, normalize(-camera_direction(pixel)));
        radiance = diffuse_albedo(s.base_color, s.metalness, specular) * ambient_radiance(s.shading_normal)
            * f32(occlusion_results[pixel.y * frame.width + pixel.x]);
    }
    textureStore(shown, pixel, vec4f(linear_to_srgb(tone_map(radiance * frame.exposure)), 1.0));
}
