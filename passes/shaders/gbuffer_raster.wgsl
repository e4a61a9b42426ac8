// Rasterises visibility: the object and the triangle that each pixel sees. Where on the triangle
// is worked out from the pixel's ray, so that nothing is interpolated and the fragment stage, far
// slower than compute on some GPUs, has next to nothing to do.
enable primitive_index;
#import passes.frame_uniforms
#import engine.scene.records
#import "passes/shaders/pixel_hit.wgsl"
#import $accept

@group(0) @binding(0) var<uniform> frame: FrameUniforms;
@group(0) @binding(1) var<storage, read> tables: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read> geometry: array<u32>;
@group(0) @binding(3) var<storage, read> alpha: array<u32>;
@group(0) @binding(4) var<storage, read> texels: array<u32>;
@group(0) @binding(5) var<storage, read> drawn: array<u32>; // the object of each instance

struct Varying {
    @builtin(position) clip: vec4f,
    @location(0) @interpolate(flat, either) object: u32,
}

@vertex
fn vertex_main(@builtin(vertex_index) vertex: u32, @builtin(instance_index) instance: u32) -> Varying {
    let object = drawn[instance];
    let world = vec4f(world_position(object, vertex), 1.0);
    let m = frame.view_projection;
    return Varying(
        vec4f(dot(m[0], world), dot(m[1], world), dot(m[2], world), dot(m[3], world)), object);
}

// A draw counts its triangles from 0: one that begins within an object, where the pass runs in
// parts, adds those before.
fn object_triangle(object: u32, primitive: u32) -> u32 {
    return primitive + select(0u, frame.split_triangle, object == frame.split_object);
}

@fragment
fn opaque_main(in: Varying, @builtin(primitive_index) primitive: u32) -> @location(0) vec2u {
    return vec2u(in.object, object_triangle(in.object, primitive));
}

@fragment
fn alpha_main(in: Varying, @builtin(primitive_index) drawn: u32) -> @location(0) vec2u {
    let primitive = object_triangle(in.object, drawn);
    let uv = pixel_hit(in.object, primitive, camera_direction(vec2u(in.clip.xy)));
    if (!accept_candidate(in.object, primitive, uv.x, uv.y)) { discard; }
    return vec2u(in.object, primitive);
}
