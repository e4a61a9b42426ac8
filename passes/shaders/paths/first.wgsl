// What a path is worth when its first reflection ray arrives: the weight of the visible surface.
// Needs `frame`, `surface` and `lobe_table`.
#import "passes/shaders/gbuffer.wgsl"
#import "passes/shaders/sent_weight.wgsl"
#import passes.rays.reflection

alias PathRay = ReflectionRay;

struct Path {
    weight: vec3f, // of what the ray brings
    sees_lights: bool, // the ray left a mirror or a narrow lobe
}

fn path_of(record: PathRay) -> Path {
    let direction = vec3f(record.direction[0], record.direction[1], record.direction[2]);
    let pixel = vec2u(record.pixel % frame.width, record.pixel / frame.width);
    let first = unpack_surface(textureLoad(surface, pixel, 0));
    let weight = sent_weight(first, normalize(-camera_direction(pixel)), direction);
    return Path(weight, first.roughness < NARROW_ROUGHNESS);
}
