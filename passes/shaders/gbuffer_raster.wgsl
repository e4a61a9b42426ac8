// Rasterises visibility: for each pixel the object, the triangle and where on it. Vertices are
// pulled by index, so that a triangle's number is the vertex number / 3 on every adapter.
#import passes.frame_uniforms
#import engine.scene.records
#import $accept

@group(0) @binding(0) var<uniform> frame: FrameUniforms;
@group(0) @binding(1) var<storage, read> tables: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read> geometry: array<u32>;
@group(0) @binding(3) var<storage, read> alpha: array<u32>;
@group(0) @binding(4) var<storage, read> texels: array<u32>;

struct Varying {
    @builtin(position) clip: vec4f,
    @location(0) @interpolate(flat, either) object: u32,
    @location(1) @interpolate(flat, either) primitive: u32,
    @location(2) barycentric: vec2f,
}

@vertex
fn vertex_main(@builtin(vertex_index) corner: u32, @builtin(instance_index) object: u32) -> Varying {
    let at = object * 7u;
    let vertex = frame.vertex_base + geometry[corner] * 8u;
    let p = vec4f(bitcast<vec3f>(vec3u(geometry[vertex], geometry[vertex + 1u], geometry[vertex + 2u])), 1.0);
    let world = vec4f(
        dot(bitcast<vec4f>(tables[at]), p),
        dot(bitcast<vec4f>(tables[at + 1u]), p),
        dot(bitcast<vec4f>(tables[at + 2u]), p), 1.0);
    let m = frame.view_projection;
    let slot = corner % 3u;
    return Varying(
        vec4f(dot(m[0], world), dot(m[1], world), dot(m[2], world), dot(m[3], world)),
        object,
        corner / 3u - tables[at + 6u].x,
        vec2f(f32(slot == 1u), f32(slot == 2u)),
    );
}

fn visibility(in: Varying) -> vec4u {
    return vec4u(in.object, in.primitive, bitcast<vec2u>(in.barycentric));
}

@fragment
fn opaque_main(in: Varying) -> @location(0) vec4u {
    return visibility(in);
}

@fragment
fn alpha_main(in: Varying) -> @location(0) vec4u {
    if (!accept_candidate(in.object, in.primitive, in.barycentric.x, in.barycentric.y)) { discard; }
    return visibility(in);
}
