// Rasterises spheres: the box around each, and in it the pixel's own ray against the sphere, so that
// ids and depth are exact whatever the box covers. Beside gbuffer_raster.wgsl, same attachments.
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

const BOX_VERTICES: u32 = 36u; // two triangles a face
const BOX_MARGIN: f32 = 1.0001; // so that rounding cuts nothing off

struct Varying {
    @builtin(position) clip: vec4f,
    @location(0) @interpolate(flat, either) object: u32,
    @location(1) @interpolate(flat, either) sphere: u32,
}

struct Fragment {
    @location(0) ids: vec2u,
    @builtin(frag_depth) depth: f32,
}

fn clip_of(world: vec3f) -> vec4f {
    let p = vec4f(world, 1.0);
    let m = frame.view_projection;
    return vec4f(dot(m[0], p), dot(m[1], p), dot(m[2], p), dot(m[3], p));
}

// Of 36 vertices in turn: the corner of a box from -1 to 1.
fn box_corner(index: u32) -> vec3f {
    let face = index / 6u;
    // Corners 0 1 2, 2 1 3 of the face, two bits each.
    let corner = (0xda4u >> (2u * (index % 6u))) & 3u;
    let side = f32(face & 1u) * 2.0 - 1.0;
    let a = f32(corner & 1u) * 2.0 - 1.0;
    let b = f32(corner >> 1u) * 2.0 - 1.0;
    let axis = face >> 1u;
    if (axis == 0u) { return vec3f(side, a, b); }
    if (axis == 1u) { return vec3f(b, side, a); }
    return vec3f(a, b, side);
}

@vertex
fn sphere_vertex(@builtin(vertex_index) index: u32, @builtin(instance_index) instance: u32) -> Varying {
    let object = drawn[instance];
    let sphere = index / BOX_VERTICES;
    let vertex = geometry[3u * (tables[object * OBJECT_VEC4S + 6u].x + sphere)];
    let local = vertex_position(vertex)
        + BOX_MARGIN * vertex_radius(vertex) * box_corner(index % BOX_VERTICES);
    let at = object * OBJECT_VEC4S;
    let rows = array<vec4f, 3>(tables_f(at), tables_f(at + 1u), tables_f(at + 2u));
    return Varying(clip_of(transform_point(rows, local)), object, sphere);
}

@fragment
fn sphere_main(in: Varying) -> Fragment {
    let direction = camera_direction(vec2u(in.clip.xy));
    let vertex = geometry[3u * (tables[in.object * OBJECT_VEC4S + 6u].x + in.sphere)];
    let found = pixel_sphere(in.object, vertex, direction);
    var id = in.sphere;
    var t = found.enter;
    var seen = found.hit && t > 0.0;
    if (seen) {
        let place = encode_place(found.enter_normal);
        seen = accept_candidate(in.object, in.sphere, place.x, place.y);
    }
    if (!seen && found.hit && found.leave > 0.0) {
        let place = encode_place(found.leave_normal);
        seen = accept_candidate(in.object, in.sphere, place.x, place.y);
        id |= SPHERE_LEFT;
        t = found.leave;
    }
    if (!seen || vertex_radius(vertex) <= 0.0) { discard; }
    let clip = clip_of(frame.camera_origin.xyz + t * direction);
    return Fragment(vec2u(in.object, id), clamp(clip.z / clip.w, 0.0, 1.0));
}
