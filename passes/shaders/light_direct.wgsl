// The area light on visible surfaces as light of its own, for passes between it and the composite:
// radiance, shadows included, and the part of the light that is seen.
#import passes.frame_uniforms
#import "passes/shaders/gbuffer.wgsl"
#import "passes/shaders/direct.wgsl"

@group(0) @binding(0) var<uniform> frame: FrameUniforms;
@group(0) @binding(1) var visibility: texture_2d<u32>;
@group(0) @binding(2) var<storage, read> direct: array<vec2u>;
@group(0) @binding(3) var<storage, read> shadow_results: array<u32>;
@group(0) @binding(4) var<storage, read_write> direct_light: array<vec2u>;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let pixel = tile_pixel(group, lane);
    if (pixel.x >= frame.width || pixel.y >= frame.height) { return; }
    let index = pixel.y * frame.width + pixel.x;
    var light = vec2u(0u);
    if (textureLoad(visibility, pixel, 0).x != NOTHING) {
        light = pack_radiance(direct_radiance(index), light_visibility(index));
    }
    direct_light[index] = light;
}
