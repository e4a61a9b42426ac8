// The traversal pass of treeline/triangle.py: one primary ray a pixel, hits coloured by their
// barycentric coordinates.
#import $traverse

@group(0) @binding(0) var<storage, read> bvh: array<vec4<u32>>;
@group(0) @binding(1) var<uniform> zero: vec4<u32>; // see ray_triangle.wgsl

const SIZE = vec2f(1280.0, 720.0);

// One triangle that covers the whole picture.
@vertex
fn cover(@builtin(vertex_index) index: u32) -> @builtin(position) vec4f {
    return vec4f(f32(index & 1u) * 4.0 - 1.0, f32(index >> 1u) * 4.0 - 1.0, 0.0, 1.0);
}

@fragment
fn shoot(@builtin(position) pixel: vec4f) -> @location(0) vec4f {
    let clip = (2.0 * pixel.xy - SIZE) / SIZE.y * vec2f(1.0, -1.0);
    let ray = Ray(vec3f(0.0, 0.0, 2.0), 0.0, vec3f(clip, -2.0), INFINITE_T);
    let hit = trace(ray, zero.x).hit;
    if (hit.object == MISS) { return vec4f(0.02, 0.02, 0.03, 1.0); }
    return vec4f(1.0 - hit.u - hit.v, hit.u, hit.v, 1.0);
}
