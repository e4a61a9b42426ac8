// Shows the counts of one ray type as a heat map. A pixel that sent no such ray has a colour of its
// own.
#import passes.frame_uniforms
#import passes.display_records
#import passes.slot_counts
#import "passes/shaders/gbuffer.wgsl"
#import "passes/shaders/display_count.wgsl"

@group(0) @binding(0) var<uniform> frame: FrameUniforms;
@group(0) @binding(1) var<uniform> display: DisplayUniforms;
@group(0) @binding(2) var<storage, read> display_range: DisplayRange;
@group(0) @binding(3) var<storage, read> slot_counts: array<u32>;
@group(0) @binding(4) var<storage, read> baseline: array<u32>;
@group(0) @binding(5) var<storage, read> palette: array<u32>;
@group(0) @binding(6) var shown: texture_storage_2d<rgba8unorm, write>;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let pixel = tile_pixel(group, lane);
    if (pixel.x >= frame.width || pixel.y >= frame.height) { return; }
    let low = select(display.low, display_range.low, display.automatic != 0u);
    let high = select(display.high, display_range.high, display.automatic != 0u);
    // Where all are equal, all are the lowest colour. Of differences 0 is the middle one, exactly.
    let signed = display.difference != 0u;
    let scale = select(0.0, select(255.0, 254.0, signed) / (high - low), high > low);
    let count = pixel_count(pixel.y * frame.width + pixel.x);
    var color = vec4f(NO_RAY, 1.0);
    if (count.sent) {
        let place = (f32(count.value) - select(low, 0.0, signed)) * scale + select(0.0, 128.0, signed);
        color = unpack4x8unorm(palette[u32(round(clamp(place, 0.0, 255.0)))]);
    }
    textureStore(shown, pixel, color);
}
