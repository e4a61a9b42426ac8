// A reflection probe: what is seen from one point, in all directions, by levels of blur. A texel's
// alpha is the part of it that shows surfaces: for the rest the environment stands. Needs `frame`
// and `probe`.
#import "passes/shaders/probe_layout.wgsl"
#import "passes/shaders/environment.wgsl"

// A texel of a level; over the square's edge lies the same edge, backwards.
fn probe_texel(level: u32, at: vec2i) -> vec4f {
    let size = i32(PROBE_SIZE >> level);
    var p = at;
    if (p.x < 0 || p.x >= size) { p = vec2i(select(2 * size - 1 - p.x, -1 - p.x, p.x < 0), size - 1 - p.y); }
    if (p.y < 0 || p.y >= size) { p = vec2i(size - 1 - p.x, select(2 * size - 1 - p.y, -1 - p.y, p.y < 0)); }
    return textureLoad(probe, probe_corner(level) + vec2u(p), 0);
}

fn probe_bilinear(level: u32, place: vec2f) -> vec4f {
    let p = place * f32(PROBE_SIZE >> level) - 0.5;
    let corner = floor(p);
    let weight = p - corner;
    let at = vec2i(corner);
    let top = mix(probe_texel(level, at), probe_texel(level, at + vec2i(1, 0)), weight.x);
    let bottom = mix(probe_texel(level, at + vec2i(0, 1)), probe_texel(level, at + vec2i(1, 1)), weight.x);
    return mix(top, bottom, weight.y);
}

// From the probe's point: the direction to where a ray leaves the scene's box, so that what stands
// along the box is shown where it is (Lagarde, Zanuttini, "Local Image-Based Lighting with
// Parallax-Corrected Cubemap", 2012).
fn probe_direction(position: vec3f, direction: vec3f) -> vec3f {
    let planes = select(frame.scene_low.xyz, frame.scene_high.xyz, direction > vec3f(0.0));
    let t = (planes - position) / select(direction, vec3f(1.0e-20), direction == vec3f(0.0));
    let leaves = min(t.x, min(t.y, t.z));
    if (leaves <= 0.0) { return direction; } // outside of the box
    return position + leaves * direction - frame.probe_origin.xyz;
}

struct ProbeSample {
    radiance: vec3f,
    covered: f32, // part of it that shows surfaces
}

// What a cone of `angle` radians shows.
fn probe_cone(position: vec3f, direction: vec3f, angle: f32) -> ProbeSample {
    let place = octahedral_place(probe_direction(position, direction));
    // A texel is sqrt(4 pi) / size radians wide.
    let wanted = log2(max(angle * f32(PROBE_SIZE) * 0.28209479, 1.0));
    let level = min(wanted, f32(probe_levels() - 1u));
    let sharp = u32(level);
    let blurred = min(sharp + 1u, probe_levels() - 1u);
    let c = mix(probe_bilinear(sharp, place), probe_bilinear(blurred, place), level - f32(sharp));
    return ProbeSample(c.xyz + (1.0 - c.w) * environment(direction), c.w);
}

// What a GGX lobe of this roughness about `direction` shows: of half its energy the cone is about
// 4 roughness^2 radians wide.
fn probe_radiance(position: vec3f, direction: vec3f, roughness: f32) -> vec3f {
    return probe_cone(position, direction, 4.0 * roughness * roughness).radiance;
}
