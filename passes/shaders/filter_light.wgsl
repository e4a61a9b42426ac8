// Light as filters see it: without what the surface makes of it, so that textures stay sharp and
// surfaces of one light look alike. Needs `frame` and `lobe_table`.
#import "passes/shaders/surface_albedo.wgsl"
#import "passes/shaders/tone_map.wgsl"
#import "passes/shaders/lobe_radius.wgsl"

override REFLECTION: bool = false; // the light is what reflections brought, else the area light's

const LEAST_FACTOR: f32 = 0.01; // a black surface's

// What a surface makes of a light: the albedo of its reflection lobe, or of all of it.
fn light_factor(s: GBufferSurface, view: vec3f) -> vec3f {
    let specular = surface_albedo(s, view);
    var albedo = specular;
    if (!REFLECTION) { albedo += diffuse_albedo(s.base_color, s.metalness, specular); }
    return max(albedo, vec3f(LEAST_FACTOR));
}

// Whether a pixel has a light to filter: what is too rough for a ray reflects the environment,
// which has no noise.
fn has_light(object: u32, roughness: f32) -> bool {
    return object != NOTHING && (!REFLECTION || roughness <= frame.roughness_cutoff);
}

fn luminance(c: vec3f) -> f32 {
    return dot(c, vec3f(0.2126, 0.7152, 0.0722));
}

// What goes with a stored radiance; of reflected light its sign says something else (borrowed.wgsl).
fn unpack_w(words: vec2u) -> f32 {
    return abs(unpack2x16float(words.y).y);
}
