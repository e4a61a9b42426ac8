// The reflection ray that a pixel sends, and the surface that sends it.
// Needs `frame`, `tables`, `geometry`, `visibility` and `surface`.
#import "passes/shaders/surface.wgsl"
#import "passes/shaders/sent_direction.wgsl"

struct SentReflection {
    s: GBufferSurface,
    point: SurfacePoint,
    view: vec3f, // away from the surface
    ray: ReflectedDirection,
}

// `index` of the pixel, which shows a surface.
fn sent_reflection(pixel: vec2u, index: u32) -> SentReflection {
    let seen = textureLoad(visibility, pixel, 0);
    let sent = sent_direction(pixel, index);
    let point = surface_point(seen.x, seen.y, bitcast<f32>(seen.z), bitcast<f32>(seen.w));
    return SentReflection(sent.s, point, sent.view, sent.ray);
}
