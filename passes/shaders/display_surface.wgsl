// Shows one field of the G-buffer: depth and roughness grey, normals as RGB, ids as colours. A
// pixel that sees nothing is black.
#import passes.frame_uniforms
#import passes.display_records
#import "passes/shaders/gbuffer.wgsl"
#import "passes/shaders/tone_map.wgsl"

@group(0) @binding(0) var<uniform> frame: FrameUniforms;
@group(0) @binding(1) var<uniform> display: DisplayUniforms;
@group(0) @binding(2) var<storage, read> display_range: DisplayRange;
@group(0) @binding(3) var visibility: texture_2d<u32>;
@group(0) @binding(4) var surface: texture_2d<u32>;
@group(0) @binding(5) var depth: texture_2d<f32>;
@group(0) @binding(6) var shown: texture_storage_2d<rgba8unorm, write>;

// White where nearest, down to a tenth at the far end, evenly in 1 / depth.
fn nearness(metres: f32) -> f32 {
    let low = select(display.low, display_range.low, display.automatic != 0u);
    let high = select(display.high, display_range.high, display.automatic != 0u);
    if (high <= low) { return 1.0; }
    let far = 1.0 / high;
    return 0.1 + 0.9 * clamp((1.0 / metres - far) / (1.0 / low - far), 0.0, 1.0);
}

// Well-spread colours: the golden ratio, as a fraction of 2^32, walks round the hues, with two
// brightnesses.
fn id_color(id: u32) -> vec3f {
    let hue = f32((id * 2654435769u) >> 8u) * (6.0 / 16777216.0);
    var k = vec3f(hue) + vec3f(5.0, 3.0, 1.0);
    k -= select(vec3f(0.0), vec3f(6.0), k >= vec3f(6.0));
    let value = select(0.65, 0.95, (id & 1u) == 0u);
    return value * (vec3f(1.0) - 0.7 * clamp(min(k, vec3f(4.0) - k), vec3f(0.0), vec3f(1.0)));
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let pixel = tile_pixel(group, lane);
    if (pixel.x >= frame.width || pixel.y >= frame.height) { return; }
    let seen = textureLoad(visibility, pixel, 0);
    var color = vec3f(0.0);
    if (seen.x != NOTHING) {
        let s = unpack_surface(textureLoad(surface, pixel, 0));
        switch display.field {
            case FIELD_DEPTH: { color = vec3f(nearness(textureLoad(depth, pixel, 0).x)); }
            case FIELD_NORMAL: { color = 0.5 * s.shading_normal + vec3f(0.5); }
            case FIELD_ROUGHNESS: { color = vec3f(s.roughness); }
            case FIELD_METALNESS: { color = vec3f(s.metalness); }
            case FIELD_BASE_COLOR: { color = linear_to_srgb(s.base_color); }
            case FIELD_MATERIAL: { color = id_color(s.material); }
            case FIELD_OBJECT: { color = id_color(seen.x); }
            default: { color = id_color(seen.y); }
        }
    }
    textureStore(shown, pixel, vec4f(color, 1.0));
}
