// What stands for the reflection ray of a surface that sends none. Needs `frame`.
#import "passes/shaders/gbuffer.wgsl"
#import "passes/shaders/brdf.wgsl"
#import "passes/shaders/environment.wgsl"

fn surface_albedo(s: GBufferSurface, view: vec3f) -> vec3f {
    let n_v = max(dot(s.shading_normal, view), 1.0e-4);
    return specular_albedo(reflectance_at_normal(s.base_color, s.metalness), s.roughness, n_v);
}

fn reflected_environment(s: GBufferSurface, view: vec3f) -> vec3f {
    return surface_albedo(s, view) * environment(reflect(-view, s.shading_normal));
}
