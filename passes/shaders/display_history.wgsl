// Shows how many frames are remembered of a light: black where a pixel began anew in this frame, white
// where the range ends.
#import passes.frame_uniforms
#import passes.filter_records
#import passes.display_records
#import "passes/shaders/gbuffer.wgsl"

@group(0) @binding(0) var<uniform> frame: FrameUniforms;
@group(0) @binding(1) var<uniform> display: DisplayUniforms;
@group(0) @binding(2) var<uniform> filter_view: FilterView;
@group(0) @binding(3) var<storage, read> history: array<vec4u>;
@group(0) @binding(4) var shown: texture_storage_2d<rgba8unorm, write>;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let pixel = tile_pixel(group, lane);
    if (pixel.x >= frame.width || pixel.y >= frame.height) { return; }
    let words = history[filter_view.after + pixel.y * frame.width + pixel.x];
    // This frame itself is one of the length's.
    let remembered = max(unpack2x16float(words.w).x - 1.0, 0.0);
    let grey = clamp((remembered - display.low) / max(display.high - display.low, 1.0e-6), 0.0, 1.0);
    textureStore(shown, pixel, vec4f(vec3f(grey), 1.0));
}
