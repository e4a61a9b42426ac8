// Fills traverse.wgsl's $accept slot: the alpha test. Needs `alpha` and `texels`.
#import passes.alpha
#import "passes/shaders/textures.wgsl"

fn alpha_f(word: u32) -> f32 {
    return bitcast<f32>(alpha[word]);
}

fn accept_candidate(object: u32, primitive: u32, u: f32, v: f32) -> bool {
    let first = alpha[object];
    if (first == 0u) { return true; } // an opaque material forced non-opaque by a flag
    let at = first + primitive * ALPHA_RECORD_WORDS;
    let w = 1.0 - u - v;
    // Differences, so that three equal alphas give just that: a cutoff of 1 keeps what is opaque.
    let a0 = alpha_f(at + 6u);
    var value = a0 + u * (alpha_f(at + 7u) - a0) + v * (alpha_f(at + 8u) - a0);
    if (bitcast<i32>(alpha[at + 10u]) >= 0) {
        let uv = w * vec2f(alpha_f(at), alpha_f(at + 1u))
            + u * vec2f(alpha_f(at + 2u), alpha_f(at + 3u))
            + v * vec2f(alpha_f(at + 4u), alpha_f(at + 5u));
        // Alpha is linear whatever the colours are: no need to decode them.
        let record = Texture(alpha[at + 11u], alpha[at + 12u], alpha[at + 13u], 1u,
            alpha[at + 14u] & ~TEXTURE_SRGB, array<u32, 3>());
        value *= sample_texture(record, uv, 0.0).w;
    }
    return value >= alpha_f(at + 9u);
}
