// The albedo of a visible surface's specular lobe. Needs `lobe_table`.
#import "passes/shaders/gbuffer.wgsl"
#import "passes/shaders/specular_albedo.wgsl"

fn surface_albedo(s: GBufferSurface, view: vec3f) -> vec3f {
    let n_v = max(dot(s.shading_normal, view), 1.0e-4);
    return specular_albedo(reflectance_at_normal(s.base_color, s.metalness), s.roughness, n_v);
}
