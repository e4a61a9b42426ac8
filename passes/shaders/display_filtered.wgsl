// Shows a light as filters left it for the composite, tone-mapped as the picture.
#import passes.frame_uniforms
#import "passes/shaders/gbuffer.wgsl"
#import "passes/shaders/tone_map.wgsl"

@group(0) @binding(0) var<uniform> frame: FrameUniforms;
@group(0) @binding(1) var<storage, read> filtered: array<vec2u>;
@group(0) @binding(2) var shown: texture_storage_2d<rgba8unorm, write>;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let pixel = tile_pixel(group, lane);
    if (pixel.x >= frame.width || pixel.y >= frame.height) { return; }
    let radiance = unpack_radiance(filtered[pixel.y * frame.width + pixel.x]);
    textureStore(shown, pixel, vec4f(linear_to_srgb(tone_map(radiance * frame.exposure)), 1.0));
}
