// Shows the frame's picture.
#import passes.frame_uniforms
#import "passes/shaders/gbuffer.wgsl"

@group(0) @binding(0) var<uniform> frame: FrameUniforms;
@group(0) @binding(1) var<storage, read> picture: array<u32>;
@group(0) @binding(2) var shown: texture_storage_2d<rgba8unorm, write>;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let pixel = tile_pixel(group, lane);
    if (pixel.x >= frame.width || pixel.y >= frame.height) { return; }
    textureStore(shown, pixel, unpack4x8unorm(picture[pixel.y * frame.width + pixel.x]));
}
