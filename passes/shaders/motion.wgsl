// How far what a pixel shows has moved on the picture, in pixels: see passes/motion.py.
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

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let pixel = tile_pixel(group, lane);
    if (pixel.x >= frame.width || pixel.y >= frame.height) { return; }
    motion[pixel.y * frame.width + pixel.x] = moved_by(pixel).by;
}
