// The direction of a reflection ray: a visible GGX normal is sampled and the view direction mirrored
// about it. What a rough lobe sends below the surface that it belongs to, it loses. A direction above
// the shading normal's horizon but below the geometric one would start inside the surface: it is
// mirrored up again.
#import "passes/shaders/brdf.wgsl"

struct ReflectedDirection {
    direction: vec3f, // unit
    raised: bool, // it was below the geometric horizon
    lost: bool,
}

// `view` points away from the surface, as both normals do; `r1` and `r2` are random numbers.
fn reflect_ray(
    view: vec3f, normal: vec3f, geometric_normal: vec3f, roughness: f32, r1: f32, r2: f32,
) -> ReflectedDirection {
    var half_vector = normal;
    if (roughness >= MIRROR_ROUGHNESS) {
        let b = basis(normal);
        let local = vec3f(dot(view, b.tangent), dot(view, b.bitangent), dot(view, normal));
        let h = sample_visible_normal(local, roughness * roughness, r1, r2);
        half_vector = h.x * b.tangent + h.y * b.bitangent + h.z * normal;
    }
    let direction = normalize(2.0 * dot(view, half_vector) * half_vector - view);
    let lost = roughness >= MIRROR_ROUGHNESS && dot(direction, normal) <= 0.0;
    let height = dot(direction, geometric_normal);
    if (lost || height > 0.0) { return ReflectedDirection(direction, false, lost); }
    let up = normalize(direction + (1.0e-4 - 2.0 * height) * geometric_normal);
    return ReflectedDirection(up, true, false);
}
