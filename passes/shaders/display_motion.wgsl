// Shows motion: its direction as hue (right red, down yellow-green, left cyan, up violet), its length
// as brightness, full where the range ends. What does not move is black.
#import passes.frame_uniforms
#import passes.display_records
#import "passes/shaders/gbuffer.wgsl"

@group(0) @binding(0) var<uniform> frame: FrameUniforms;
@group(0) @binding(1) var<uniform> display: DisplayUniforms;
@group(0) @binding(2) var<storage, read> motion: array<vec2f>;
@group(0) @binding(3) var shown: texture_storage_2d<rgba8unorm, write>;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let pixel = tile_pixel(group, lane);
    if (pixel.x >= frame.width || pixel.y >= frame.height) { return; }
    let moved = motion[pixel.y * frame.width + pixel.x];
    let size = length(moved);
    var color = vec3f(0.0);
    if (size > 0.0) {
        let way = moved / size;
        // Cosines of the angles to three directions a third of a turn apart.
        let towards = vec3f(way.x, dot(way, vec2f(-0.5, 0.8660254)), dot(way, vec2f(-0.5, -0.8660254)));
        color = (0.5 + 0.5 * towards) * clamp(size / max(display.high, 1.0e-6), 0.0, 1.0);
    }
    textureStore(shown, pixel, vec4f(color, 1.0));
}
