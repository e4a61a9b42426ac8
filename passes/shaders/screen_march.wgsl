// Follows a ray over the picture and finds the first visible surface that it goes into, if the
// picture shows one (after McGuire, Mara, "Efficient GPU Screen-Space Ray Tracing", JCGT 2014: pixel
// by pixel along the longer side of its way, in a longer way first by longer steps).
//
// A pixel is taken for a piece of its surface's plane, not for a depth: so a ray along a floor does
// not meet that floor where pixels are much deeper than wide. A ray that comes into a pixel behind
// its surface goes on, unless it is at most SCREEN_THICKNESS of the surface's depth behind it: the
// picture does not say how thick things are. Needs `frame`, `surface` and `depth`.
#import "passes/shaders/gbuffer.wgsl"

override SCREEN_STEPS: u32 = 256u;
const SCREEN_THICKNESS: f32 = 0.02;

struct ScreenHit {
    found: bool,
    pixel: vec2u,
    t: f32,
}

// A ray's place on the picture at t: (a + t b) / (z + t dz), in pixels.
struct ScreenRay {
    a: vec2f,
    b: vec2f,
    z: f32, // along the view axis
    dz: f32,
}

fn screen_ray(origin: vec3f, direction: vec3f) -> ScreenRay {
    let size = vec2f(f32(frame.width), f32(frame.height));
    let right = frame.camera_right.xyz / dot(frame.camera_right.xyz, frame.camera_right.xyz);
    let up = frame.camera_up.xyz / dot(frame.camera_up.xyz, frame.camera_up.xyz);
    let from_eye = origin - frame.camera_origin.xyz;
    let z = dot(from_eye, frame.camera_forward.xyz);
    let dz = dot(direction, frame.camera_forward.xyz);
    let at = vec2f(dot(from_eye, right), -dot(from_eye, up));
    let along = vec2f(dot(direction, right), -dot(direction, up));
    return ScreenRay(0.5 * size * (at + z), 0.5 * size * (along + dz), z, dz);
}

fn screen_place(ray: ScreenRay, t: f32) -> vec2f {
    return (ray.a + t * ray.b) / (ray.z + t * ray.dz);
}

// Height of the ray over a pixel's plane at t: start + t * slope. `depth` 0: nothing is there.
struct PixelPlane {
    start: f32,
    slope: f32,
    depth: f32,
}

fn pixel_plane(pixel: vec2u, origin: vec3f, direction: vec3f) -> PixelPlane {
    let pixel_depth = textureLoad(depth, pixel, 0).x; // 0 where nothing is seen
    if (pixel_depth == 0.0) { return PixelPlane(0.0, 0.0, 0.0); }
    let normal = decode_normal(textureLoad(surface, pixel, 0).y);
    let position = frame.camera_origin.xyz + pixel_depth * camera_direction(pixel);
    return PixelPlane(dot(normal, origin - position), dot(normal, direction), pixel_depth);
}

fn on_screen(place: vec2f) -> bool {
    return all(place >= vec2f(0.0)) && place.x < f32(frame.width) && place.y < f32(frame.height);
}

// The border between pixels number `passed` that a ray comes to, and the t at which it is there.
struct Way {
    along_x: bool,
    unit: f32, // 1 or -1: the direction along the longer side
    first: f32,
    a: f32, // of ScreenRay, along that side
    b: f32,
}

fn border_t(ray: ScreenRay, way: Way, border: f32) -> f32 {
    return (border * ray.z - way.a) / (way.b - border * ray.dz);
}

fn march_screen(origin: vec3f, direction: vec3f) -> ScreenHit {
    let nothing = ScreenHit(false, vec2u(0u), 0.0);
    let ray = screen_ray(origin, direction);
    let start = screen_place(ray, 0.0);
    let moves = ray.b * ray.z - ray.a * ray.dz; // where it goes on the picture
    var way: Way;
    way.along_x = abs(moves.x) >= abs(moves.y);
    let forward = select(moves.y, moves.x, way.along_x);
    if (forward == 0.0 || !on_screen(start)) { return nothing; }
    let begin = select(start.y, start.x, way.along_x);
    let size = select(f32(frame.height), f32(frame.width), way.along_x);
    way.unit = select(-1.0, 1.0, forward > 0.0);
    way.first = select(ceil(begin) - 1.0, floor(begin) + 1.0, forward > 0.0);
    way.a = select(ray.a.y, ray.a.x, way.along_x);
    way.b = select(ray.b.y, ray.b.x, way.along_x);
    let borders = u32(max(select(way.first + 1.0, size - way.first + 1.0, forward > 0.0), 1.0));
    let stride = (borders + SCREEN_STEPS - 1u) / SCREEN_STEPS;

    var entered = 0.0; // t at which the ray came into the present pixel
    var passed = 0u;
    var single = 0u; // pixels to be gone through one by one before the next long step
    while (passed < borders) {
        if (stride > 1u && single == 0u) {
            // In front of what lies at a long step's end: nothing is looked for within it.
            let border = way.first + way.unit * f32(passed + stride - 1u);
            let t = border_t(ray, way, border);
            let place = screen_place(ray, t) - 0.5 * way.unit * select(vec2f(0.0, 1.0), vec2f(1.0, 0.0), way.along_x);
            if (t > entered && ray.z + t * ray.dz > 0.0 && on_screen(place)) {
                let plane = pixel_plane(vec2u(place), origin, direction);
                if (plane.depth == 0.0 || plane.start + t * plane.slope > 0.0) {
                    entered = t;
                    passed += stride;
                    continue;
                }
            }
            single = stride;
        }
        let border = way.first + way.unit * f32(passed);
        let t = border_t(ray, way, border);
        // Past its vanishing point, or behind the eye.
        let ends = !(t > entered) || ray.z + t * ray.dz <= 0.0;
        let last = select(3.0e38, -ray.z / ray.dz, ray.dz < 0.0);
        let leaves = select(t, last, ends);
        let other = screen_place(ray, select(0.5 * (entered + t), entered, ends));
        let centre = border - 0.5 * way.unit;
        let place = select(vec2f(other.x, centre), vec2f(centre, other.y), way.along_x);
        if (!on_screen(place)) { return nothing; }
        let pixel = vec2u(place);
        let plane = pixel_plane(pixel, origin, direction);
        if (plane.depth > 0.0 && plane.slope < 0.0) {
            let comes = plane.start + entered * plane.slope;
            let behind = ray.z + entered * ray.dz - plane.depth;
            let near = comes >= 0.0 || behind <= SCREEN_THICKNESS * plane.depth;
            if (near && plane.start + leaves * plane.slope <= 0.0) {
                return ScreenHit(true, pixel, clamp(-plane.start / plane.slope, entered, leaves));
            }
        }
        if (ends) { return nothing; }
        entered = t;
        passed += 1u;
        single -= select(0u, 1u, single > 0u);
    }
    return nothing;
}
