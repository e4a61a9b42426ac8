// Direct light from the rectangular area light: one sampled point, not yet tested for shadow.
// Needs `frame`.
#import "passes/shaders/brdf.wgsl"

// Shadow rays end this part of the way short of the light, so that a lamp's frame behind the
// sampled point does not count.
const SHADOW_T_MAX: f32 = 0.9995;

struct LightSample {
    radiance: vec3f, // towards the viewer, if the light is seen; zero: send no ray
    to_light: vec3f, // not normalised: t = 1 is on the light
}

// A random point of the light as two 16-bit unorms: what a shadow ray carries.
fn sample_light(pixel: u32, dimension: u32) -> u32 {
    return pack2x16unorm(vec2f(random(pixel, frame.frame_index, frame.seed, dimension),
                               random(pixel, frame.frame_index, frame.seed, dimension + 1u)));
}

fn light_point(light_uv: u32) -> vec3f {
    let s = 2.0 * unpack2x16unorm(light_uv) - 1.0;
    return frame.light_center.xyz + s.x * frame.light_half_u.xyz + s.y * frame.light_half_v.xyz;
}

fn light_from(
    light_uv: u32, position: vec3f, geometric_normal: vec3f, normal: vec3f, view: vec3f,
    base_color: vec3f, metalness: f32, roughness: f32,
) -> LightSample {
    var result: LightSample;
    result.to_light = light_point(light_uv) - position;
    let distance2 = dot(result.to_light, result.to_light);
    let direction = result.to_light * inverseSqrt(max(distance2, 1.0e-20));
    let cosine_light = -dot(direction, frame.light_normal.xyz);
    if (cosine_light <= 0.0 || dot(geometric_normal, direction) <= 0.0 || distance2 == 0.0) { return result; }
    let reflected = evaluate_brdf(base_color, metalness, roughness, normal, view, direction);
    result.radiance = reflected * frame.light_radiance.xyz * (cosine_light * frame.light_normal.w / distance2);
    return result;
}

fn is_black(c: vec3f) -> bool {
    return max(c.x, max(c.y, c.z)) <= 0.0;
}
