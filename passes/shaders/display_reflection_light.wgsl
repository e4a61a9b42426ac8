// Shows what each pixel was shown of reflections in the newest frame where the frame keeps its lights
// apart, tone-mapped as the picture; black where a pixel is too rough for a ray.
#import passes.frame_uniforms
#import "passes/shaders/reflection_block.wgsl"
#import "passes/shaders/tone_map.wgsl"

@group(0) @binding(0) var<uniform> frame: FrameUniforms;
@group(0) @binding(1) var visibility: texture_2d<u32>;
@group(0) @binding(2) var surface: texture_2d<u32>;
@group(0) @binding(3) var<storage, read> reflection_light: array<vec2u>;
@group(0) @binding(4) var shown: texture_storage_2d<rgba8unorm, write>;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let pixel = tile_pixel(group, lane);
    if (pixel.x >= frame.width || pixel.y >= frame.height) { return; }
    var radiance = vec3f(0.0);
    if (sends_reflection(pixel)) {
        radiance = unpack_radiance(reflection_light[pixel.y * frame.width + pixel.x]);
    }
    textureStore(shown, pixel, vec4f(linear_to_srgb(tone_map(radiance * frame.exposure)), 1.0));
}
