// Follows a ray over the picture and finds the first visible surface that it goes into, if the
// picture shows one: through every pixel that its way touches, by a pyramid of cells, of which one
// that the ray passes in front of or behind everything in it is left at once (after Uludag,
// "Hi-Z Screen-Space Cone-Traced Reflections", GPU Pro 5, 2014; cells here have both ends, and a
// ray loses nothing by them).
//
// A pixel is taken for a piece of its surface's plane, not for a depth: so a ray along a floor does
// not meet that floor where pixels are much deeper than wide. Needs `frame` and `pyramid`.
#import "passes/shaders/camera.wgsl"
#import "passes/shaders/pyramid_layout.wgsl"

override SCREEN_STEPS: u32 = 512u; // cells that a ray looks at, at most

struct ScreenHit {
    found: bool,
    cut: bool, // it had not come to its end
    pixel: vec2u,
    t: f32,
}

// A ray over s = t / depth, which makes it linear on the picture: its place there, pixels, and the
// reciprocal of its depth.
struct ScreenRay {
    start: vec2f,
    moves: vec2f,
    near: f32,
    near_rate: f32,
}

const LEAST_MOVE: f32 = 1.0e-20; // so that no way is without a direction

// From where a pixel's centre shows something, at the reciprocal depth `near`.
fn screen_ray(pixel: vec2u, near: f32, direction: vec3f) -> ScreenRay {
    let size = vec2f(f32(frame.width), f32(frame.height));
    let start = vec2f(pixel) + 0.5;
    let right = frame.camera_right.xyz / dot(frame.camera_right.xyz, frame.camera_right.xyz);
    let up = frame.camera_up.xyz / dot(frame.camera_up.xyz, frame.camera_up.xyz);
    let along = vec2f(dot(direction, right), -dot(direction, up));
    let dz = dot(direction, frame.camera_forward.xyz);
    let moves = 0.5 * size * along + (0.5 * size - start) * dz;
    let least = select(vec2f(LEAST_MOVE), vec2f(-LEAST_MOVE), moves < vec2f(0.0));
    return ScreenRay(start, select(moves, least, abs(moves) < vec2f(LEAST_MOVE)), near, -dz * near);
}

fn screen_place(ray: ScreenRay, s: f32) -> vec2f {
    return ray.start + s * ray.moves;
}

fn nearness(ray: ScreenRay, s: f32) -> f32 {
    return max(ray.near + s * ray.near_rate, 0.0);
}

// Of what a pixel shows.
fn seen_nearness(pixel: vec2u) -> f32 {
    return bitcast<f32>(textureLoad(pyramid, pixel, 0).x);
}

fn seen_position(pixel: vec2u) -> vec3f {
    return frame.camera_origin.xyz + camera_direction(pixel) / seen_nearness(pixel);
}

// The pixel that a ray comes into over the border that it crosses at s, `beyond` which it is in
// that direction; in the other one where it is by the borders that it has crossed, so that no
// rounding leads it past a pixel.
fn next_pixel(
    ray: ScreenRay, inverse: vec2f, forward: vec2i, beyond: vec2i, by_x: bool, s: f32,
) -> vec2i {
    let start = select(ray.start.x, ray.start.y, by_x);
    let moves = select(ray.moves.x, ray.moves.y, by_x);
    let to_s = select(inverse.x, inverse.y, by_x);
    let ahead = select(forward.x, forward.y, by_x);
    let place = i32(floor(start + s * moves));
    let passed = (f32(place + ahead) - start) * to_s <= s;
    let not_yet = (f32(place + 1 - ahead) - start) * to_s > s;
    let along = place + (2 * ahead - 1) * (i32(passed) - i32(not_yet));
    return select(vec2i(along, beyond.y), vec2i(beyond.x, along), by_x);
}

// From what a pixel shows on.
fn march_screen(from_pixel: vec2u, direction: vec3f) -> ScreenHit {
    let size = vec2u(frame.width, frame.height);
    let padded = padded_size(size);
    let ray = screen_ray(from_pixel, seen_nearness(from_pixel), direction);
    let inverse = 1.0 / ray.moves;
    let forward = select(vec2i(0), vec2i(1), ray.moves > vec2f(0.0));
    // Where it leaves the picture or comes to its vanishing point.
    let last = (select(vec2f(0.0), vec2f(size), ray.moves > vec2f(0.0)) - ray.start) * inverse;
    var end = min(last.x, last.y);
    if (ray.near_rate < 0.0) { end = min(end, -ray.near / ray.near_rate); }
    if (!(end > 0.0)) { return ScreenHit(false, false, vec2u(0u), 0.0); } // it is no number, either

    var pixel = vec2i(from_pixel);
    var level = 0u;
    var entered = 0.0; // s at which the ray came into the pixel,
    var near = ray.near; // and how near it was then
    for (var step = 0u; step < SCREEN_STEPS; step += 1u) {
        let cell = pixel >> vec2u(level);
        let words = textureLoad(pyramid, pyramid_corner(padded, level) + vec2u(cell), 0).xy;
        // While that is on its way: where the ray leaves the cell, and for which pixel.
        let border = (cell + forward) << vec2u(level);
        let crossings = (vec2f(border) - ray.start) * inverse;
        let leaves = min(min(crossings.x, crossings.y), end);
        let near_out = nearness(ray, leaves);
        let next = next_pixel(
            ray, inverse, forward, border + forward - 1, crossings.x < crossings.y, leaves);

        let bounds = unpack_bounds(words);
        let meets = min(near, near_out) <= bounds.nearest && max(near, near_out) >= bounds.farthest;
        if (level == 0u && words.x != 0u && step > 0u) {
            // How much nearer than the pixel's plane the ray is, as reciprocal depths, at both ends.
            let plane = unpack_plane(words);
            let offset = screen_place(ray, entered) - (vec2f(pixel) + 0.5);
            let lifted = 1.0 + dot(plane.tilt, offset);
            let before = near - plane.near * lifted;
            let after = near_out - plane.near * (lifted + (leaves - entered) * dot(plane.tilt, ray.moves));
            // Through it from in front, or on behind it from a little behind it.
            let comes = before >= 0.0 || near >= BEHIND * plane.near;
            if (comes && after <= 0.0 && after < before) {
                let s = entered + clamp(before / (before - after), 0.0, 1.0) * (leaves - entered);
                return ScreenHit(true, false, vec2u(pixel), s / nearness(ray, s));
            }
        }
        let descends = level > 0u && meets;
        if (!descends && leaves >= end) { return ScreenHit(false, false, vec2u(0u), 0.0); }
        // Out of the cell above, too: that one's neighbour may be left at once.
        let apart = next ^ pixel;
        let leaves_parent = ((apart.x | apart.y) >> (level + 1u)) != 0;
        let risen = min(level + select(0u, 1u, leaves_parent), PYRAMID_TOP);
        level = select(risen, level - 1u, descends);
        pixel = select(next, pixel, descends);
        entered = select(leaves, entered, descends);
        near = select(near_out, near, descends);
    }
    return ScreenHit(false, true, vec2u(0u), 0.0);
}
