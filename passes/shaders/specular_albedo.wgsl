// Albedo of the specular lobe under light that is the same from everywhere: of mirrors exact, else by
// a table of the lobe's integral (passes/lobe_table.py). Needs `lobe_table`.
#import "passes/shaders/brdf.wgsl"
#import passes.lobe_table

fn specular_albedo(f0: vec3f, roughness: f32, n_v: f32) -> vec3f {
    if (roughness < MIRROR_ROUGHNESS) { return fresnel(f0, n_v); }
    // A float's bits are its logarithm, straight from octave to octave: so lie the table's nodes.
    let octaves = vec2f(bitcast<vec2i>(vec2f(n_v, roughness)) - bitcast<i32>(1.0)) * exp2(-23.0);
    let place = clamp(LOBE_CELLS + LOBE_STEPS * octaves, vec2f(0.0), LOBE_CELLS);
    let cell = min(floor(place), LOBE_CELLS - 1.0);
    let part = place - cell;
    let corners = textureLoad(lobe_table, vec2u(cell), 0);
    let low = mix(unpack2x16unorm(corners.x), unpack2x16unorm(corners.y), part.x);
    let high = mix(unpack2x16unorm(corners.z), unpack2x16unorm(corners.w), part.x);
    let scale_bias = mix(low, high, part.y);
    return f0 * scale_bias.x + scale_bias.y;
}
