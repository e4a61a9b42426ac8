// motion.wgsl for frames that remember light (passes/light_history.py): also how deep what a pixel shows
// lay on the picture before, to know it again there.
#import passes.frame_uniforms
#import "passes/shaders/moved.wgsl"

@group(0) @binding(0) var<uniform> frame: FrameUniforms;
@group(0) @binding(1) var<uniform> previous_view: PreviousView;
@group(0) @binding(2) var<storage, read> tables: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read> geometry: array<u32>;
@group(0) @binding(4) var<storage, read> previous_objects: array<vec4f>;
@group(0) @binding(5) var<storage, read> previous_vertices: array<u32>;
@group(0) @binding(6) var visibility: texture_2d<u32>;
@group(0) @binding(7) var<storage, read_write> motion: array<vec2f>;
@group(0) @binding(8) var<storage, read_write> depth_before: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let pixel = tile_pixel(group, lane);
    if (pixel.x >= frame.width || pixel.y >= frame.height) { return; }
    let index = pixel.y * frame.width + pixel.x;
    let moved = moved_by(pixel);
    motion[index] = moved.by;
    depth_before[index] = moved.depth_before;
}
