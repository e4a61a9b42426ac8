// Fills the probe's texture: its sharpest level as it was lit, and every other one, a texel a lane,
// as the mean of the block of lit texels that it stands for.
#import passes.frame_uniforms
#import "passes/shaders/probe_layout.wgsl"

@group(0) @binding(0) var<uniform> frame: FrameUniforms;
@group(0) @binding(1) var<storage, read> probe_light: array<vec4f>;
@group(0) @binding(2) var probe_out: texture_storage_2d<rgba32float, write>;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    var index = (frame.first_group + group.x) * 64u + lane;
    var level = 0u;
    var size: u32 = PROBE_SIZE;
    while (level < probe_levels() && index >= size * size) {
        index -= size * size;
        size >>= 1u;
        level += 1u;
    }
    if (level >= probe_levels()) { return; }
    let at = vec2u(index % size, index / size);
    let block = 1u << level;
    var sum = vec4f(0.0);
    for (var y = 0u; y < block; y += 1u) {
        for (var x = 0u; x < block; x += 1u) {
            sum += probe_light[(block * at.y + y) * PROBE_SIZE + block * at.x + x];
        }
    }
    textureStore(probe_out, probe_corner(level) + at, sum / f32(block * block));
}
