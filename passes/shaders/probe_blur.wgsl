// Fills the probe's texture: its sharpest level as it was lit, and every other one as the mean of
// the block of lit texels that it stands for. A large block is shared by TEXEL_LANES lanes: the most
// blurred levels have few texels, each of as many thousands as one lane would take milliseconds for.
#import passes.frame_uniforms
#import "passes/shaders/probe_layout.wgsl"

@group(0) @binding(0) var<uniform> frame: FrameUniforms;
@group(0) @binding(1) var<storage, read> probe_light: array<vec4f>;
@group(0) @binding(2) var probe_out: texture_storage_2d<rgba32float, write>;

const TEXEL_LANES: u32 = 64u; // at most, of a texel: a workgroup's

var<workgroup> sums: array<vec4f, TEXEL_LANES>;

// Lanes of each texel of a level (passes/probe_levels.py).
fn texel_lanes(level: u32) -> u32 {
    return min(1u << (2u * level), TEXEL_LANES);
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    // A level begins with a workgroup.
    var first = 64u * (frame.first_group + group.x);
    var level = 0u;
    while (level < probe_levels()) {
        let size: u32 = PROBE_SIZE >> level;
        let lanes: u32 = size * size * texel_lanes(level);
        if (first < lanes) { break; }
        first -= lanes;
        level += 1u;
    }
    let lanes: u32 = texel_lanes(level);
    let size: u32 = PROBE_SIZE >> level;
    let texel = (first + lane) / lanes;
    let part = (first + lane) % lanes;
    let at = vec2u(texel % size, texel / size);
    let block: u32 = 1u << level;
    var sum = vec4f(0.0);
    for (var i = part; i < block * block; i += lanes) {
        sum += probe_light[(block * at.y + i / block) * PROBE_SIZE + block * at.x + i % block];
    }
    sums[lane] = sum;
    workgroupBarrier();
    if (part != 0u) { return; }
    for (var i = 1u; i < lanes; i += 1u) { sum += sums[lane + i]; }
    textureStore(probe_out, probe_corner(level) + at, sum / f32(block * block));
}
