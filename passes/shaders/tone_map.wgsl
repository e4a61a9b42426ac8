// Radiance as it is stored, and what a screen shows of it.

// As far as a half reaches: the distance of what a ray does not hit.
const MISS_DISTANCE: f32 = 65504.0;

// Four halves: radiance, and a number that goes with it.
fn pack_radiance(c: vec3f, w: f32) -> vec2u {
    let clamped = min(c, vec3f(6.0e4));
    return vec2u(pack2x16float(clamped.xy), pack2x16float(vec2f(clamped.z, w)));
}

fn unpack_radiance(words: vec2u) -> vec3f {
    return vec3f(unpack2x16float(words.x), unpack2x16float(words.y).x);
}

// A filmic curve (Narkowicz, "ACES Filmic Tone Mapping Curve", 2015).
fn tone_map(c: vec3f) -> vec3f {
    return clamp(c * (2.51 * c + 0.03) / (c * (2.43 * c + 0.59) + 0.14), vec3f(0.0), vec3f(1.0));
}

fn linear_to_srgb(c: vec3f) -> vec3f {
    return select(1.055 * pow(c, vec3f(1.0 / 2.4)) - 0.055, 12.92 * c, c <= vec3f(0.0031308));
}
