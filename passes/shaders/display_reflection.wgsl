// Shows what reflection rays brought to each pixel in the newest frame, tone-mapped as the picture.
#import passes.frame_uniforms
#import "passes/shaders/reflection_block.wgsl"
#import "passes/shaders/reflected.wgsl"

@group(0) @binding(0) var<uniform> frame: FrameUniforms;
@group(0) @binding(1) var visibility: texture_2d<u32>;
@group(0) @binding(2) var surface: texture_2d<u32>;
@group(0) @binding(3) var<storage, read> reflected: array<vec2u>;
@group(0) @binding(4) var<storage, read> shadow_results: array<u32>;
@group(0) @binding(5) var shown: texture_storage_2d<rgba8unorm, write>;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let pixel = tile_pixel(group, lane);
    if (pixel.x >= frame.width || pixel.y >= frame.height) { return; }
    var radiance = vec3f(0.0);
    if (sends_reflection(pixel)) {
        radiance = reflected_radiance(pixel.y * frame.width + pixel.x);
    }
    textureStore(shown, pixel, vec4f(linear_to_srgb(tone_map(radiance * frame.exposure)), 1.0));
}
