// Where what a pixel shows was on the picture before. Needs `frame`, `previous_view`, `tables`,
// `geometry`, `previous_objects`, `previous_vertices` and `visibility`.
#import passes.motion_records
#import "passes/shaders/gbuffer.wgsl"
#import "passes/shaders/surface.wgsl"
#import "passes/shaders/camera.wgsl"

// Of a point of the world (w 1) or a direction (w 0): pixels from the top left; z is not positive
// behind the camera.
fn on_picture(rows: array<vec4f, 4>, p: vec4f) -> vec3f {
    let w = dot(rows[3], p);
    let x = 0.5 + 0.5 * dot(rows[0], p) / w;
    let y = 0.5 - 0.5 * dot(rows[1], p) / w;
    return vec3f(x * f32(frame.width), y * f32(frame.height), w);
}

// From a sphere's centre to a point of it, `local` in its own space, in the world now and before.
fn offset_now(object: u32, local: vec3f) -> vec3f {
    let row = object * OBJECT_VEC4S;
    return turn(array<vec4f, 3>(tables_f(row), tables_f(row + 1u), tables_f(row + 2u)), local);
}

fn offset_before(object: u32, local: vec3f) -> vec3f {
    let row = object * OBJECT_VEC4S;
    return turn(array<vec4f, 3>(previous_objects[row], previous_objects[row + 1u],
        previous_objects[row + 2u]), local);
}

fn previous_vertex(vertex: u32) -> vec3f {
    let at = vertex * VERTEX_WORDS;
    return bitcast<vec3f>(vec3u(previous_vertices[at], previous_vertices[at + 1u],
        previous_vertices[at + 2u]));
}

fn previous_position(object: u32, vertex: u32) -> vec3f {
    let row = object * OBJECT_VEC4S;
    return transform_point(array<vec4f, 3>(previous_objects[row], previous_objects[row + 1u],
        previous_objects[row + 2u]), previous_vertex(vertex));
}

// Whether the object or one of the vertices of its triangle, which begins at `corner`, lay otherwise before.
fn has_moved(object: u32, corner: u32) -> bool {
    if (previous_view.still != 0u) { return false; }
    var same = true;
    for (var k = 0u; k < 3u; k += 1u) {
        let row = object * OBJECT_VEC4S + k;
        let vertex = geometry[corner + k];
        same &= all(tables_f(row) == previous_objects[row]);
        same &= all(vertex_position(vertex) == previous_vertex(vertex));
    }
    return !same;
}

fn same_view() -> bool {
    var same = true;
    for (var k = 0u; k < 4u; k += 1u) {
        same &= all(frame.view_projection[k] == previous_view.view_projection[k]);
    }
    return same;
}

struct Moved {
    by: vec2f, // pixels
    depth_before: f32, // along the axis of the view before; of the sky without meaning
}

// What stands still moves by exactly 0 before a camera that does: a compiler may round the two sides
// of a difference in different ways, so equal things are found by what they are made of.
fn moved_by(pixel: vec2u) -> Moved {
    let seen = textureLoad(visibility, pixel, 0);
    var now = vec4f(camera_direction(pixel), 0.0);
    var before = now;
    var still = true;
    if (seen.x != NOTHING) {
        let corner = 3u * (tables[seen.x * OBJECT_VEC4S + 6u].x + seen.y);
        let u = clamp(bitcast<f32>(seen.z), 0.0, 1.0);
        let v = clamp(bitcast<f32>(seen.w), 0.0, 1.0 - u);
        let weights = array<f32, 3>(1.0 - u - v, u, v);
        let radius = vertex_radius(geometry[corner]);
        let on_sphere = HAS_SPHERES && radius > 0.0;
        let local = radius * decode_place(bitcast<f32>(seen.z), bitcast<f32>(seen.w));
        now = vec4f(0.0, 0.0, 0.0, 1.0);
        for (var k = 0u; k < 3u; k += 1u) {
            now += vec4f(weights[k] * world_position(seen.x, geometry[corner + k]), 0.0);
        }
        if (on_sphere) { now += vec4f(offset_now(seen.x, local), 0.0); }
        before = now;
        still = !has_moved(seen.x, corner);
        if (!still) {
            before = vec4f(0.0, 0.0, 0.0, 1.0);
            for (var k = 0u; k < 3u; k += 1u) {
                before += vec4f(weights[k] * previous_position(seen.x, geometry[corner + k]), 0.0);
            }
            if (on_sphere) { before += vec4f(offset_before(seen.x, local), 0.0); }
        }
    }
    let here = on_picture(frame.view_projection, now);
    let there = on_picture(previous_view.view_projection, before);
    // What was behind the camera came from nowhere on the picture.
    let unmoved = (still && same_view()) || !(there.z > 0.0);
    return Moved(select(here.xy - there.xy, vec2f(0.0), unmoved), there.z);
}
