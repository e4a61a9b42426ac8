// What a point sees of the light that its shadow ray would have gone to, by that light's shadow map,
// jittered by the sampled point of the light; as shadow_visibility.wgsl unpacks it.
// Needs `frame` and `shadow_map`.
#import "passes/shaders/light.wgsl"
#import "passes/shaders/shadow_map.wgsl"

// `sampled` is the light and the place on it, as light.wgsl packs them.
fn sampled_visibility(sampled: u32, position: vec3f, geometric_normal: vec3f) -> u32 {
    let seen = map_visibility(
        sampled_light(sampled), position, geometric_normal, sampled_place(sampled));
    return u32(seen * 65535.0 + 0.5);
}
