// Metallic-roughness reflectance: Lambert plus GGX with Smith's height-correlated masking and
// Schlick's Fresnel term (glTF 2.0 specification, appendix B).
#import "passes/shaders/sampling.wgsl"

// Below this, alpha = roughness^2 is treated as a mirror: its lobe is narrower than float32 can
// evaluate. A mirror reflects rays exactly and receives no light from sampled directions.
const MIRROR_ROUGHNESS: f32 = 0.02;

// Below this, a reflection ray sees the lights themselves, as a mirror's does. Sampled points of a light
// hardly ever meet so narrow a lobe, and then bring more than a half holds.
const NARROW_ROUGHNESS: f32 = 0.1;

fn fresnel(f0: vec3f, cosine: f32) -> vec3f {
    let m = clamp(1.0 - cosine, 0.0, 1.0);
    let m2 = m * m;
    return f0 + (vec3f(1.0) - f0) * (m2 * m2 * m);
}

fn reflectance_at_normal(base_color: vec3f, metalness: f32) -> vec3f {
    return mix(vec3f(0.04), base_color, metalness);
}

// Smith's lambda for GGX.
fn smith_lambda(cosine: f32, alpha: f32) -> f32 {
    let c2 = cosine * cosine;
    let tangent2 = max(0.0, 1.0 - c2) / max(c2, 1.0e-12);
    return 0.5 * (sqrt(1.0 + alpha * alpha * tangent2) - 1.0);
}

// BRDF times the cosine at the surface, for directions away from it.
fn evaluate_brdf(
    base_color: vec3f, metalness: f32, roughness: f32, normal: vec3f, view: vec3f, light: vec3f,
) -> vec3f {
    let n_l = dot(normal, light);
    let n_v = max(dot(normal, view), 1.0e-4);
    if (n_l <= 0.0) { return vec3f(0.0); }
    let h = normalize(view + light);
    let f = fresnel(reflectance_at_normal(base_color, metalness), dot(view, h));
    let diffuse = (vec3f(1.0) - f) * (1.0 - metalness) * base_color / PI;
    var specular = vec3f(0.0);
    if (roughness >= MIRROR_ROUGHNESS) {
        let alpha = roughness * roughness;
        let n_h = clamp(dot(normal, h), 0.0, 1.0);
        // sin^2 + cos^2 alpha^2; 1 - cos^2 would lose all digits in a narrow lobe.
        let sine = cross(normal, h);
        let d = dot(sine, sine) + n_h * n_h * (alpha * alpha);
        let distribution = alpha * alpha / max(PI * d * d, 1.0e-20);
        let masking = 1.0 / (1.0 + smith_lambda(n_l, alpha) + smith_lambda(n_v, alpha));
        specular = f * (distribution * masking / max(4.0 * n_l * n_v, 1.0e-8));
    }
    return (diffuse + specular) * n_l;
}

// Weight of a direction sampled by `sample_visible_normal`: F * G2 / G1.
fn reflection_weight(
    base_color: vec3f, metalness: f32, roughness: f32, normal: vec3f, view: vec3f, light: vec3f,
) -> vec3f {
    let h = normalize(view + light);
    let f = fresnel(reflectance_at_normal(base_color, metalness), dot(view, h));
    if (roughness < MIRROR_ROUGHNESS) { return f; }
    let alpha = roughness * roughness;
    let lambda_view = smith_lambda(max(dot(normal, view), 1.0e-4), alpha);
    let lambda_light = smith_lambda(max(dot(normal, light), 1.0e-4), alpha);
    return f * ((1.0 + lambda_view) / (1.0 + lambda_view + lambda_light));
}

// Albedo of the diffuse part under uniform light: of what `specular` (its albedo) leaves over.
fn diffuse_albedo(base_color: vec3f, metalness: f32, specular: vec3f) -> vec3f {
    return (1.0 - metalness) * base_color * max(vec3f(0.0), vec3f(1.0) - specular);
}
