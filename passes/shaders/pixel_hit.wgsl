// Where a pixel's ray meets the triangle that the pixel is known to see. Needs `frame`, `tables`
// and `geometry`.
#import "passes/shaders/surface.wgsl"
#import "passes/shaders/camera.wgsl"

// Weights of vertices 1 and 2 (Moeller, Trumbore, "Fast, Minimum Storage Ray/Triangle
// Intersection", 1997). A triangle seen edge-on gives its middle.
fn pixel_hit(object: u32, primitive: u32, direction: vec3f) -> vec2f {
    let corner = 3u * (tables[object * OBJECT_VEC4S + 6u].x + primitive);
    let p0 = world_position(object, geometry[corner]);
    let e1 = world_position(object, geometry[corner + 1u]) - p0;
    let e2 = world_position(object, geometry[corner + 2u]) - p0;
    let p = cross(direction, e2);
    let determinant = dot(e1, p);
    if (determinant == 0.0) { return vec2f(1.0 / 3.0); }
    let s = frame.camera_origin.xyz - p0;
    return vec2f(dot(s, p), dot(direction, cross(s, e1))) / determinant;
}
