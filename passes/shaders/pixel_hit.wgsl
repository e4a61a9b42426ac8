// Where a pixel's ray meets the triangle or sphere that the pixel is known to see. Needs `frame`, `tables`
// and `geometry`.
#import "passes/shaders/surface.wgsl"
#import "passes/shaders/camera.wgsl"

// In a pixel's id of a sphere: the ray was let through where it enters, and hits where it leaves.
const SPHERE_LEFT: u32 = 0x80000000u;

fn pixel_primitive(id: u32) -> u32 {
    return select(id, id & ~SPHERE_LEFT, HAS_SPHERES);
}

// The pixel's ray against a sphere, in the object's space.
fn pixel_sphere(object: u32, vertex: u32, direction: vec3f) -> SphereHit {
    let at = object * OBJECT_VEC4S + 3u;
    let rows = array<vec4f, 3>(tables_f(at), tables_f(at + 1u), tables_f(at + 2u));
    return test_sphere(transform_point(rows, frame.camera_origin.xyz), turn(rows, direction),
        vertex_position(vertex), vertex_radius(vertex));
}

// Weights of vertices 1 and 2 (Moeller, Trumbore, "Fast, Minimum Storage Ray/Triangle
// Intersection", 1997), or the place on a sphere. A triangle seen edge-on gives its middle, a sphere
// that rounding lets the ray pass where it passes. `id` is the pixel's primitive.
fn pixel_hit(object: u32, id: u32, direction: vec3f) -> vec2f {
    let corner = 3u * (tables[object * OBJECT_VEC4S + 6u].x + pixel_primitive(id));
    if (HAS_SPHERES && vertex_radius(geometry[corner]) > 0.0) {
        let found = pixel_sphere(object, geometry[corner], direction);
        let leaves = id >= SPHERE_LEFT || (found.hit && found.enter <= 0.0);
        return encode_place(select(found.enter_normal, found.leave_normal, leaves));
    }
    let p0 = world_position(object, geometry[corner]);
    let e1 = world_position(object, geometry[corner + 1u]) - p0;
    let e2 = world_position(object, geometry[corner + 2u]) - p0;
    let p = cross(direction, e2);
    let determinant = dot(e1, p);
    if (determinant == 0.0) { return vec2f(1.0 / 3.0); }
    let s = frame.camera_origin.xyz - p0;
    return vec2f(dot(s, p), dot(direction, cross(s, e1))) / determinant;
}
