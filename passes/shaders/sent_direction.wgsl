// The direction of the reflection ray that a pixel sends (reflect_ray.wgsl), and what it shows.
// Needs `frame`, `tables` and `surface`.
#import "passes/shaders/gbuffer.wgsl"
#import "passes/shaders/reflect_ray.wgsl"
#import "passes/shaders/sample_number.wgsl"

struct SentDirection {
    s: GBufferSurface,
    view: vec3f, // away from the surface
    ray: ReflectedDirection,
}

// `index` of the pixel, which shows a surface.
fn sent_direction(pixel: vec2u, index: u32) -> SentDirection {
    let s = unpack_surface(textureLoad(surface, pixel, 0));
    let view = normalize(-camera_direction(pixel));
    let ray = reflect_ray(view, s.shading_normal, s.geometric_normal, s.roughness,
        sample_number(index, REFLECTION_DIMENSION), sample_number(index, REFLECTION_DIMENSION + 1u));
    return SentDirection(s, view, ray);
}
