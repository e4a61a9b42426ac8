// What a path is worth when a later ray of it arrives: as the record says.
#import passes.rays.bounce

alias PathRay = BounceRay;

struct Path {
    weight: vec3f, // of what the ray brings
    sees_lights: bool, // the ray left a mirror or a narrow lobe
}

fn path_of(record: PathRay) -> Path {
    let rest = unpack2x16float(record.path[1]);
    return Path(vec3f(unpack2x16float(record.path[0]), rest.x), rest.y > 0.0);
}
