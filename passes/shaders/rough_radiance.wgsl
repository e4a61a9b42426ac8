// What stands for the reflection ray of a surface that sends none (passes/rough_fallback.py), not yet
// weighed by its albedo. Needs `frame` and `probe`.
#import "passes/shaders/gbuffer.wgsl"
#import "passes/shaders/environment.wgsl"
#import "passes/shaders/probe.wgsl"

override ROUGH_LOBE: bool = false; // the environment over the surface's lobe, else in one direction
override ROUGH_PROBE: bool = false; // what the frame's probe shows of it

// The environment's mean over the lobe of a rough surface. The wider it is, the more it leans from
// the mirrored direction to the normal (Lagarde, de Rousiers, "Moving Frostbite to Physically Based
// Rendering", 2014) and the more it sees of the hemisphere.
fn lobe_environment(mirrored: vec3f, normal: vec3f, roughness: f32) -> vec3f {
    let alpha = roughness * roughness;
    let middle = normalize(mix(mirrored, normal, alpha));
    return mix(environment(middle), ambient_radiance(middle), alpha);
}

fn rough_radiance(s: GBufferSurface, view: vec3f, position: vec3f) -> vec3f {
    let mirrored = reflect(-view, s.shading_normal);
    if (ROUGH_PROBE) { return probe_radiance(position, mirrored, s.roughness); }
    if (ROUGH_LOBE) { return lobe_environment(mirrored, s.shading_normal, s.roughness); }
    return environment(mirrored);
}
