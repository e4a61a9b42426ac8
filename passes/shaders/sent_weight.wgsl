// What the light that a reflected direction brings is weighed by before it is kept for a pixel, and,
// where it is kept without the pixel's colour, before it is shown. Needs `lobe_table`.
#import "passes/shaders/gbuffer.wgsl"
#import "passes/shaders/specular_albedo.wgsl"

override WITHOUT_COLOR: bool = false; // light is upsampled, and takes the colour of whom it is shown to

// Without colour, a reflectance below this, which would leave nothing of the light, counts as this.
const LEAST_F0: f32 = 0.02;

fn sent_weight(s: GBufferSurface, view: vec3f, direction: vec3f) -> vec3f {
    if (!WITHOUT_COLOR) {
        return reflection_weight(s.base_color, s.metalness, s.roughness, s.shading_normal, view, direction);
    }
    let f0 = max(reflectance_at_normal(s.base_color, s.metalness), vec3f(LEAST_F0));
    let n_v = max(dot(s.shading_normal, view), 1.0e-4);
    return reflection_weight(f0, 1.0, s.roughness, s.shading_normal, view, direction)
        / specular_albedo(f0, s.roughness, n_v);
}

// Of light that is kept without colour.
fn shown_weight(s: GBufferSurface, view: vec3f) -> vec3f {
    let n_v = max(dot(s.shading_normal, view), 1.0e-4);
    return specular_albedo(reflectance_at_normal(s.base_color, s.metalness), s.roughness, n_v);
}
