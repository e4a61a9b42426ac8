// Random numbers and sampled directions.

// PCG output permutation over a mixed key (Jarzynski, Olano, "Hash Functions for GPU Rendering",
// JCGT 2020): integers only, so that the NumPy twin draws the same numbers.
fn pcg(value: u32) -> u32 {
    let state = value * 747796405u + 2891336453u;
    let word = ((state >> ((state >> 28u) + 4u)) ^ state) * 277803737u;
    return (word >> 22u) ^ word;
}

// A number in [0, 1) for one dimension of one pixel's sample. 16 dimensions lie side by side; those
// beyond are far from any seed's.
fn random(pixel: u32, frame_index: u32, seed: u32, dimension: u32) -> f32 {
    let key = pcg(pixel + pcg(frame_index + pcg(seed * 16u + dimension % 16u + (dimension / 16u) * 0x9e3779b9u)));
    return f32(key >> 8u) * 5.9604645e-8; // 2^-24
}

// Dimensions, two a sample.
const REFLECTION_DIMENSION: u32 = 0u;
const PRIMARY_LIGHT_DIMENSION: u32 = 2u;
const REFLECTED_LIGHT_DIMENSION: u32 = 4u;
const OCCLUSION_DIMENSION: u32 = 6u;

// Of a path's reflection ray, 1 and on.
fn reflection_dimension(bounce: u32) -> u32 {
    return select(4u + 2u * bounce, REFLECTION_DIMENSION, bounce == 1u);
}

// Of the place on the light, and of which light, that the `number`th shadow ray of a pixel's surface
// of that kind goes to (kind and number as in shadow_slot.wgsl).
fn light_dimension(kind: u32, number: u32) -> u32 {
    if (number > 0u || kind > 1u) { return 32u + 8u * kind + 2u * number; }
    return select(PRIMARY_LIGHT_DIMENSION, REFLECTED_LIGHT_DIMENSION, kind > 0u);
}

fn light_choice_dimension(kind: u32, number: u32) -> u32 {
    return 80u + 4u * kind + number;
}

const PI: f32 = 3.14159265;

struct Basis {
    tangent: vec3f,
    bitangent: vec3f,
}

// An orthonormal basis around a unit normal (Duff et al., "Building an Orthonormal Basis,
// Revisited", JCGT 2017).
fn basis(n: vec3f) -> Basis {
    let s = select(-1.0, 1.0, n.z >= 0.0);
    let a = -1.0 / (s + n.z);
    let b = n.x * n.y * a;
    return Basis(vec3f(1.0 + s * n.x * n.x * a, s * b, -s * n.x),
                 vec3f(b, s + n.y * n.y * a, -n.y));
}

// Above the geometric horizon, of a unit direction that 2 x 16 bits will hold and that is to stay
// above: more than their rounding.
const LEAST_HEIGHT: f32 = 1.0e-4;

// Directions about +z, as many as their cosine.
fn sample_cosine(r1: f32, r2: f32) -> vec3f {
    let radius = sqrt(r1);
    let phi = 2.0 * PI * r2;
    return vec3f(radius * cos(phi), radius * sin(phi), sqrt(1.0 - r1));
}

// Half vector of the visible GGX normals, in the frame where the normal is +z; `view` points away
// from the surface (Heitz, "Sampling the GGX Distribution of Visible Normals", JCGT 2018).
fn sample_visible_normal(view: vec3f, alpha: f32, r1: f32, r2: f32) -> vec3f {
    let v = normalize(vec3f(alpha * view.x, alpha * view.y, view.z));
    let length2 = v.x * v.x + v.y * v.y;
    var t1 = vec3f(1.0, 0.0, 0.0);
    if (length2 > 0.0) { t1 = vec3f(-v.y, v.x, 0.0) * inverseSqrt(length2); }
    let t2 = cross(v, t1);
    let radius = sqrt(r1);
    let phi = 2.0 * PI * r2;
    let p1 = radius * cos(phi);
    let s = 0.5 * (1.0 + v.z);
    let p2 = (1.0 - s) * sqrt(max(0.0, 1.0 - p1 * p1)) + s * radius * sin(phi);
    let n = p1 * t1 + p2 * t2 + sqrt(max(0.0, 1.0 - p1 * p1 - p2 * p2)) * v;
    return normalize(vec3f(alpha * n.x, alpha * n.y, max(1.0e-6, n.z)));
}
