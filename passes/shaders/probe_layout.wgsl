// Where a reflection probe keeps what: directions lie in an octahedral square (octahedral.wgsl); its
// levels of blur lie side by side in one texture, the sharpest to the left, the others below each
// other to its right.
#import "passes/shaders/octahedral.wgsl"

override PROBE_SIZE: u32 = 128u; // texels a side of the sharpest level
const PROBE_LEAST: u32 = 4u; // and of the most blurred one

fn probe_levels() -> u32 {
    return countTrailingZeros(PROBE_SIZE / PROBE_LEAST) + 1u;
}

// Texels of a level before its first one.
fn probe_corner(level: u32) -> vec2u {
    if (level == 0u) { return vec2u(0u); }
    return vec2u(PROBE_SIZE, PROBE_SIZE - (PROBE_SIZE >> (level - 1u)));
}

// The direction at a place of the square, both in 0 to 1.
fn octahedral_direction(place: vec2f) -> vec3f {
    let p = 2.0 * place - 1.0;
    let z = 1.0 - abs(p.x) - abs(p.y);
    return normalize(vec3f(select(octahedral_fold(p), p, z >= 0.0), z));
}

fn octahedral_place(direction: vec3f) -> vec2f {
    let p = direction.xy / (abs(direction.x) + abs(direction.y) + abs(direction.z));
    return 0.5 + 0.5 * select(octahedral_fold(p), p, direction.z >= 0.0);
}
