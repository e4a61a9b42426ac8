// The reflection ray that a pixel sends (reflect_ray.wgsl), and the surface that sends it.
// Needs `frame`, `tables`, `geometry`, `visibility` and `surface`.
#import "passes/shaders/surface.wgsl"
#import "passes/shaders/gbuffer.wgsl"
#import "passes/shaders/reflect_ray.wgsl"
#import "passes/shaders/sample_number.wgsl"

struct SentReflection {
    s: GBufferSurface,
    point: SurfacePoint,
    view: vec3f, // away from the surface
    ray: ReflectedDirection,
}

// `index` of the pixel, which shows a surface.
fn sent_reflection(pixel: vec2u, index: u32) -> SentReflection {
    let seen = textureLoad(visibility, pixel, 0);
    let s = unpack_surface(textureLoad(surface, pixel, 0));
    let view = normalize(-camera_direction(pixel));
    let point = surface_point(seen.x, seen.y, bitcast<f32>(seen.z), bitcast<f32>(seen.w));
    let ray = reflect_ray(view, s.shading_normal, s.geometric_normal, s.roughness,
        sample_number(index, REFLECTION_DIMENSION), sample_number(index, REFLECTION_DIMENSION + 1u));
    return SentReflection(s, point, view, ray);
}
