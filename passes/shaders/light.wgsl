// Direct light from the rectangular area lights: what a point of one may bring, not yet tested
// for shadow.
// Needs `frame`. The twin is passes/twins/light.py.
#import "passes/shaders/brdf.wgsl"
#import "passes/shaders/rect_light.wgsl"

// Shadow rays end this part of the way short of the light, so that a lamp's frame behind the
// sampled point does not count.
const SHADOW_T_MAX: f32 = 0.9995;

struct LightSample {
    radiance: vec3f, // towards the viewer, if the light is seen; zero: send no ray
    to_light: vec3f, // not normalised: t = 1 is on the light
    light_uv: u32, // the sampled point, as a shadow ray carries it
}

// A point of a light, which is what a shadow ray carries: two 16-bit unorms; of several lights two of
// 14 bits, and above them which light.
fn pack_light(uv: vec2f, light: u32) -> u32 {
    if (frame.light_count <= 1u) { return pack2x16unorm(uv); }
    let code = vec2u(round(16383.0 * uv));
    return code.x | (code.y << 14u) | (light << 28u);
}

fn sampled_light(light_uv: u32) -> u32 {
    return select(0u, light_uv >> 28u, frame.light_count > 1u);
}

// The point's place on its light, 0 to 1.
fn sampled_place(light_uv: u32) -> vec2f {
    if (frame.light_count <= 1u) { return unpack2x16unorm(light_uv); }
    return vec2f(vec2u(light_uv & 0x3fffu, (light_uv >> 14u) & 0x3fffu)) / 16383.0;
}

fn light_point(light_uv: u32) -> vec3f {
    let s = 2.0 * sampled_place(light_uv) - 1.0;
    let light = light_at(sampled_light(light_uv));
    return light.center + s.x * light.half_u + s.y * light.half_v;
}

// How rough a surface counts for sampled points of lights: where it sends a reflection ray that sees
// the lights themselves, as a mirror.
fn sampled_roughness(roughness: f32, sends: bool) -> f32 {
    return select(roughness, 0.0, sends && roughness < NARROW_ROUGHNESS);
}

fn light_from(
    light_uv: u32, position: vec3f, geometric_normal: vec3f, normal: vec3f, view: vec3f,
    base_color: vec3f, metalness: f32, roughness: f32,
) -> LightSample {
    var result: LightSample;
    result.light_uv = light_uv;
    result.to_light = light_point(light_uv) - position;
    let light = light_at(sampled_light(light_uv));
    let distance2 = dot(result.to_light, result.to_light);
    let direction = result.to_light * inverseSqrt(max(distance2, 1.0e-20));
    let cosine_light = -dot(direction, light.normal);
    if (cosine_light <= 0.0 || dot(geometric_normal, direction) <= 0.0 || distance2 == 0.0) { return result; }
    let reflected = evaluate_brdf(base_color, metalness, roughness, normal, view, direction);
    result.radiance = reflected * light.radiance * (cosine_light * light.area / distance2);
    return result;
}

fn is_black(c: vec3f) -> bool {
    return max(c.x, max(c.y, c.z)) <= 0.0;
}
