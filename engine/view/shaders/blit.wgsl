// Draws one picture into another of any size: one triangle over the whole target.
@group(0) @binding(0) var source: texture_2d<f32>;
@group(0) @binding(1) var source_sampler: sampler;

struct Corner {
    @builtin(position) position: vec4f,
    @location(0) uv: vec2f,
}

@vertex
fn vertex_main(@builtin(vertex_index) index: u32) -> Corner {
    let at = vec2f(f32((index << 1u) & 2u), f32(index & 2u));
    return Corner(vec4f(at * 2.0 - 1.0, 0.0, 1.0), vec2f(at.x, 1.0 - at.y));
}

@fragment
fn fragment_main(corner: Corner) -> @location(0) vec4f {
    return vec4f(textureSampleLevel(source, source_sampler, corner.uv, 0.0).rgb, 1.0);
}
