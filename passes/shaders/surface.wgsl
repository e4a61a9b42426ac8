// The surface at a hit: where it is, how precisely, which way it faces, what it is made of.
// Needs `frame`, `tables` (objects, materials, textures), `geometry` (indices, then vertices) and,
// for `material_at`, `texels`.
#import engine.scene.records
#import "passes/shaders/octahedral.wgsl"
#import "passes/shaders/material_record.wgsl"
#import "bvh/shaders/sphere.wgsl"

const OBJECT_VEC4S: u32 = 7u;
const TEXTURE_VEC4S: u32 = 2u;
const VERTEX_WORDS: u32 = 8u;

// n roundings of float32 change a result by at most this part of it (Higham; gamma_n).
const GAMMA_5: f32 = 2.9802331e-7;
const GAMMA_8: f32 = 4.7683739e-7;
const TAU: f32 = 6.2831855;

struct SurfacePoint {
    position: vec3f,
    error: vec3f, // bound on the distance to the true surface, by component
    geometric_normal: vec3f, // unit, as the winding gives it
    shading_normal: vec3f, // unit, stored or geometric, not yet turned towards anyone
    uv: vec2f,
    color: vec4f, // vertex colour
    material: u32,
    uv_density: f32, // sqrt(uv area / world area)
}

struct SurfaceMaterial {
    base_color: vec3f,
    metalness: f32,
    roughness: f32,
    emissive: vec3f,
    fetches: u32, // textures sampled
}

fn tables_f(at: u32) -> vec4f {
    return bitcast<vec4f>(tables[at]);
}

fn vertex_word(vertex: u32, word: u32) -> u32 {
    return geometry[frame.vertex_base + vertex * VERTEX_WORDS + word];
}

fn vertex_position(vertex: u32) -> vec3f {
    return bitcast<vec3f>(vec3u(vertex_word(vertex, 0u), vertex_word(vertex, 1u), vertex_word(vertex, 2u)));
}

// Of a sphere about this vertex; 0: it is a corner of triangles.
fn vertex_radius(vertex: u32) -> f32 {
    return bitcast<f32>(vertex_word(vertex, 7u));
}

fn vertex_uv(vertex: u32) -> vec2f {
    return bitcast<vec2f>(vec2u(vertex_word(vertex, 4u), vertex_word(vertex, 5u)));
}

fn transform_point(rows: array<vec4f, 3>, p: vec3f) -> vec3f {
    let q = vec4f(p, 1.0);
    return vec3f(dot(rows[0], q), dot(rows[1], q), dot(rows[2], q));
}

// How far, along each world axis, a ray that starts at a point of a triangle may find that triangle
// from it (as bvh/surface.py): the point's transform to world and its interpolation, the ray's way
// back to object space, and the triangle test there. The test measures t along the direction's main
// axis, so a triangle's extent along any axis displaces it along all: a floor at height zero too.
// `local` and `world` are the largest coordinates by axis, `extent` the longest edge along an axis
// of object space.
fn error_bound(
    to_world: array<vec4f, 3>, to_object: array<vec4f, 3>, local: vec3f, world: vec3f, extent: f32,
) -> vec3f {
    let inner = GAMMA_8 * extent + GAMMA_5 * magnitude(to_object, world);
    let turned = vec3f(dot(abs(to_world[0].xyz), inner), dot(abs(to_world[1].xyz), inner),
        dot(abs(to_world[2].xyz), inner));
    return GAMMA_8 * magnitude(to_world, local) + turned;
}

// The sum of the absolute terms of `transform_point`.
fn magnitude(rows: array<vec4f, 3>, size: vec3f) -> vec3f {
    let q = vec4f(size, 1.0);
    return vec3f(dot(abs(rows[0]), q), dot(abs(rows[1]), q), dot(abs(rows[2]), q));
}

fn world_position(object: u32, vertex: u32) -> vec3f {
    let at = object * OBJECT_VEC4S;
    return transform_point(
        array<vec4f, 3>(tables_f(at), tables_f(at + 1u), tables_f(at + 2u)), vertex_position(vertex));
}

// The point of a sphere about `vertex` at the place (u, v).
fn sphere_point(
    to_world: array<vec4f, 3>, to_object: array<vec4f, 3>, vertex: u32, u_in: f32, v_in: f32, material: u32,
) -> SurfacePoint {
    let u = clamp(u_in, 0.0, 1.0);
    let v = clamp(v_in, 0.0, 1.0);
    let center = vertex_position(vertex);
    let radius = vertex_radius(vertex);
    let n = decode_place(u, v);
    var point: SurfacePoint;
    point.position = transform_point(to_world, center + radius * n);
    // The ray's test places the surface to within 4 roundings of its diameter.
    point.error = error_bound(to_world, to_object, abs(center) + radius, abs(point.position), 2.0 * radius);
    point.geometric_normal = unit_vector(
        to_object[0].xyz * n.x + to_object[1].xyz * n.y + to_object[2].xyz * n.z);
    point.shading_normal = point.geometric_normal;
    point.uv = vec2f(u, v);
    // World area for an area of the texture: of the steps along and across a circle of latitude.
    let ring = max(sqrt(n.x * n.x + n.z * n.z), 0.05); // a pole is a point
    let along = TAU * radius * vec3f(-n.z, 0.0, n.x) / max(sqrt(n.x * n.x + n.z * n.z), 1.0e-20) * ring;
    let across = 0.5 * TAU * radius * vec3f(n.x * n.y / ring, -ring, n.z * n.y / ring);
    let area = length(cross(turn(to_world, along), turn(to_world, across)));
    point.uv_density = sqrt(1.0 / max(area, 1.0e-20));
    point.color = unpack4x8unorm(vertex_word(vertex, 6u));
    point.material = material;
    return point;
}

fn turn(rows: array<vec4f, 3>, v: vec3f) -> vec3f {
    return vec3f(dot(rows[0].xyz, v), dot(rows[1].xyz, v), dot(rows[2].xyz, v));
}

// `u` and `v` weigh vertices 1 and 2 of triangle `primitive` of `object`; values a rounding
// outside of the triangle are brought back, so that the point comes from the primitive.
fn surface_point(object: u32, primitive: u32, u_in: f32, v_in: f32) -> SurfacePoint {
    let at = object * OBJECT_VEC4S;
    let to_world = array<vec4f, 3>(tables_f(at), tables_f(at + 1u), tables_f(at + 2u));
    let to_object = array<vec4f, 3>(tables_f(at + 3u), tables_f(at + 4u), tables_f(at + 5u));
    let facts = tables[at + 6u]; // first triangle, triangle count, material, mask
    let corner = 3u * (facts.x + primitive);
    let i0 = geometry[corner];
    let i1 = geometry[corner + 1u];
    let i2 = geometry[corner + 2u];
    if (HAS_SPHERES && vertex_radius(i0) > 0.0) {
        return sphere_point(to_world, to_object, i0, u_in, v_in, facts.z);
    }
    let u = clamp(u_in, 0.0, 1.0);
    let v = clamp(v_in, 0.0, 1.0 - u);
    let w = 1.0 - u - v;
    let q0 = vertex_position(i0);
    let q1 = vertex_position(i1);
    let q2 = vertex_position(i2);
    let p0 = transform_point(to_world, q0);
    let p1 = transform_point(to_world, q1);
    let p2 = transform_point(to_world, q2);

    var point: SurfacePoint;
    point.position = w * p0 + u * p1 + v * p2;
    let edges = max(abs(q1 - q0), abs(q2 - q0));
    point.error = error_bound(to_world, to_object, max(abs(q0), max(abs(q1), abs(q2))),
        max(abs(p0), max(abs(p1), abs(p2))), max(edges.x, max(edges.y, edges.z)));
    let area_normal = cross(p1 - p0, p2 - p0);
    let area2 = length(area_normal);
    point.geometric_normal = area_normal / max(area2, 1.0e-37);

    var stored = vec3f(0.0);
    if (vertex_word(i0, 3u) != NO_STORED_NORMAL && vertex_word(i1, 3u) != NO_STORED_NORMAL
            && vertex_word(i2, 3u) != NO_STORED_NORMAL) {
        let n = w * decode_normal(vertex_word(i0, 3u)) + u * decode_normal(vertex_word(i1, 3u))
            + v * decode_normal(vertex_word(i2, 3u));
        stored = to_object[0].xyz * n.x + to_object[1].xyz * n.y + to_object[2].xyz * n.z;
    }
    let stored_length = length(stored);
    point.shading_normal = point.geometric_normal;
    if (stored_length > 0.0) { point.shading_normal = stored / stored_length; }

    let t0 = vertex_uv(i0);
    let t1 = vertex_uv(i1);
    let t2 = vertex_uv(i2);
    point.uv = w * t0 + u * t1 + v * t2;
    let uv_area2 = abs((t1.x - t0.x) * (t2.y - t0.y) - (t2.x - t0.x) * (t1.y - t0.y));
    point.uv_density = sqrt(uv_area2 / max(area2, 1.0e-20));
    point.color = w * unpack4x8unorm(vertex_word(i0, 6u)) + u * unpack4x8unorm(vertex_word(i1, 6u))
        + v * unpack4x8unorm(vertex_word(i2, 6u));
    point.material = facts.z;
    return point;
}

// Turns both normals towards `view` (away from the surface): files hold windings and stored
// normals that face either way. A stored normal that still looks away is bent to the horizon.
fn face_viewer(point: SurfacePoint, view: vec3f) -> SurfacePoint {
    var turned = point;
    if (dot(turned.geometric_normal, view) < 0.0) { turned.geometric_normal = -turned.geometric_normal; }
    if (dot(turned.shading_normal, turned.geometric_normal) < 0.0) {
        turned.shading_normal = -turned.shading_normal;
    }
    let facing = dot(turned.shading_normal, view);
    if (facing < 1.0e-3) {
        turned.shading_normal = normalize(turned.shading_normal + (1.0e-3 - facing) * view);
    }
    return turned;
}

// Where a ray that leaves `point` along `direction` starts: moved off the surface, along its
// geometric normal, by the error bound, then rounded away from it (Pharr, Jakob, Humphreys,
// "Physically Based Rendering", 4th edition, section 6.8.6). t_min can then be 0.
fn ray_origin(point: SurfacePoint, direction: vec3f) -> vec3f {
    var normal = point.geometric_normal;
    if (dot(normal, direction) < 0.0) { normal = -normal; }
    let offset = dot(abs(normal), point.error) * normal;
    var origin = point.position + offset;
    origin.x = away(origin.x, offset.x);
    origin.y = away(origin.y, offset.y);
    origin.z = away(origin.z, offset.z);
    return origin;
}

// The next float32 from `value` in the direction of `side`'s sign.
fn away(value: f32, side: f32) -> f32 {
    let bits = bitcast<u32>(value);
    if (side == 0.0 || value == 0.0) { return value; }
    return bitcast<f32>(select(bits - 1u, bits + 1u, (value > 0.0) == (side > 0.0)));
}
