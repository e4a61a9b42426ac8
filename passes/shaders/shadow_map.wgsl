// How much of an area light a point sees, from a map of depths about the light's centre: five
// layers a light, the faces of half a cube that opens along its normal (passes/raster_views.py).
//
// Percentage-closer soft shadows (Fernando, "Percentage-Closer Soft Shadows", 2005) without a depth
// bias by slope: the receiver is taken for a plane, and a texel is compared with that plane where
// the texel's own ray meets it. A blocker counts if it hides a point of the light from here (as in
// Guennebaud et al., "Real-Time Soft Shadow Mapping by Backprojection", 2006); the mean over those
// gives the filter's width. Needs `frame` and `shadow_map`.
#import "passes/shaders/rect_light.wgsl"

override SHADOW_MAP_SIZE: u32 = 1024u; // pixels a side of a layer

const LIGHT_FACES: u32 = 5u; // layers a light

const SHADOW_TAPS_A_SIDE: u32 = 4u; // of the filter, which visits so many points squared
// Blockers are looked for up to this many times the light's size from the point, as seen from the
// light's centre: down to a quarter of the way from it. Then in smaller and smaller squares, since
// what is close to the point hides the light from its immediate neighbourhood alone.
const SHADOW_SEARCH: f32 = 3.0;
const SHADOW_RINGS: u32 = 5u; // each a quarter of the one before, with four points
// Where none of them hides the light, the one that comes nearest to that stands for all, if it does
// so within this many times the light's size of its centre: else the outer edges of penumbras, where
// a small part of the light is hidden, and by few points, would be lit.
const SHADOW_ASIDE: f32 = 3.0;
// The receiving plane is raised by so many texels: what triangles of a curved surface differ by.
const SHADOW_BIAS: f32 = 0.5;

// A texel of the map, and the direction of its centre from the light's: 1 along its face's axis.
struct MapTexel {
    pixel: vec2u,
    layer: u32,
    direction: vec3f,
    stored: f32,
}

struct LightAxes {
    x: vec3f,
    y: vec3f,
    z: vec3f, // the light's normal
}

fn light_axes(light: RectLight) -> LightAxes {
    let x = normalize(light.half_u);
    return LightAxes(x, cross(light.normal, x), light.normal);
}

// The texel that the direction `d` from the light's centre goes through; its map begins at `first`.
fn map_texel(axes: LightAxes, first: u32, d: vec3f) -> MapTexel {
    let p = vec3f(dot(d, axes.x), dot(d, axes.y), dot(d, axes.z));
    let a = abs(p);
    var axis = axes.z;
    var right = axes.x;
    var up = axes.y;
    var at = p.xyz; // along right, up, axis
    var layer = 0u;
    if (p.z < max(a.x, a.y)) {
        up = axes.z;
        if (a.x >= a.y) {
            layer = select(2u, 1u, p.x >= 0.0);
            axis = select(-axes.x, axes.x, p.x >= 0.0);
            right = axes.y;
            at = vec3f(p.y, p.z, a.x);
        } else {
            layer = select(4u, 3u, p.y >= 0.0);
            axis = select(-axes.y, axes.y, p.y >= 0.0);
            right = axes.x;
            at = vec3f(p.x, p.z, a.y);
        }
    }
    let size = f32(SHADOW_MAP_SIZE);
    // A half face has its pixels between 0 and 1 along its up.
    let half_face = layer > 0u;
    let tangent = at.xy / max(at.z, 1.0e-20);
    let y = select(tangent.y, 2.0 * tangent.y - 1.0, half_face);
    let place = vec2f(0.5 + 0.5 * tangent.x, 0.5 - 0.5 * y) * size;
    var texel: MapTexel;
    texel.pixel = vec2u(clamp(place, vec2f(0.0), vec2f(size - 1.0)));
    texel.layer = first + layer;
    let centre = (vec2f(texel.pixel) + 0.5) / size;
    let right_part = 2.0 * centre.x - 1.0;
    let up_part = select(1.0 - 2.0 * centre.y, 1.0 - centre.y, half_face);
    texel.direction = axis + right_part * right + up_part * up;
    texel.stored = textureLoad(shadow_map, texel.pixel, texel.layer, 0);
    return texel;
}

struct Receiver {
    offset: vec3f, // from the light's centre, on the raised plane
    normal: vec3f, // towards the light
    height: f32, // along the light's normal
}

// Depth along the texel's axis at which something in the texel would be in the receiver's way.
fn receiver_depth(axes: LightAxes, r: Receiver, direction: vec3f) -> f32 {
    // Not behind the point: what is there does not stand between it and the light.
    let ahead = dot(direction, axes.z);
    var depth = select(3.0e38, r.height / ahead, ahead > 0.0);
    let facing = dot(direction, r.normal);
    let plane = dot(r.offset, r.normal) / facing;
    if (facing < 0.0 && plane > 0.0) { depth = min(depth, plane); }
    return depth;
}

// Part of light number `number`, 0 to 1, that is seen from `position` on a surface with this normal,
// turned to either side. `jitter` in [0, 1)^2 places all these points in their cells.
fn map_visibility(number: u32, position: vec3f, surface_normal: vec3f, jitter: vec2f) -> f32 {
    let light = light_at(number);
    let axes = light_axes(light);
    let first = LIGHT_FACES * number;
    var r: Receiver;
    r.offset = position - light.center;
    r.normal = select(surface_normal, -surface_normal, dot(surface_normal, r.offset) > 0.0);
    let texel_part = 2.0 / f32(SHADOW_MAP_SIZE);
    let reach = max(abs(dot(r.offset, axes.x)), max(abs(dot(r.offset, axes.y)), dot(r.offset, axes.z)));
    r.offset += (SHADOW_BIAS * texel_part * reach) * r.normal;
    r.height = dot(r.offset, axes.z);
    if (r.height <= 0.0) { return 0.0; }
    let u = light.half_u;
    let v = light.half_v;
    let u2 = dot(u, u);
    let v2 = dot(v, v);
    let least = sqrt(min(u2, v2)); // of the light's half edges

    var blockers = 0u;
    var width = 0.0; // of the penumbra here, in lights
    var nearest = SHADOW_ASIDE;
    var nearest_width = 0.0;
    for (var i = 0u; i <= 4u * SHADOW_RINGS; i += 1u) {
        let s = search_point(i, jitter);
        let texel = map_texel(axes, first, r.offset + s.x * u + s.y * v);
        let depth = frame.view_near / max(texel.stored, 1.0e-30);
        if (depth >= receiver_depth(axes, r, texel.direction)) { continue; }
        let blocker = depth * texel.direction;
        let blocker_height = dot(blocker, axes.z);
        let below = r.height - blocker_height;
        if (blocker_height <= 0.0 || below <= 0.0) { continue; }
        // Where the way from the point through the blocker meets the light's plane.
        let on_light = r.offset + (blocker - r.offset) * (r.height / below);
        // The blocker may be anywhere in its texel; towards the light's horizon that moves the
        // place on the light by more.
        let slack = 1.0 + texel_part * depth * (reach / below) / least;
        let aside = max(abs(dot(on_light, u)) / u2, abs(dot(on_light, v)) / v2);
        if (aside <= slack) {
            blockers += 1u;
            width += below / blocker_height;
        } else if (aside < nearest) {
            nearest = aside;
            nearest_width = below / blocker_height;
        }
    }
    if (blockers == 0u && nearest == SHADOW_ASIDE) { return 1.0; }
    width = select(width / f32(max(blockers, 1u)), nearest_width, blockers == 0u);
    width = max(width, texel_part * reach / least);

    var hidden = 0u;
    for (var i = 0u; i < SHADOW_TAPS_A_SIDE * SHADOW_TAPS_A_SIDE; i += 1u) {
        let s = width * tap(i, jitter);
        let texel = map_texel(axes, first, r.offset + s.x * u + s.y * v);
        let depth = frame.view_near / max(texel.stored, 1.0e-30);
        hidden += select(0u, 1u, depth < receiver_depth(axes, r, texel.direction));
    }
    return 1.0 - f32(hidden) / f32(SHADOW_TAPS_A_SIDE * SHADOW_TAPS_A_SIDE);
}

// Where blockers are looked for, in lights: a point in each quarter of each square, then the middle.
fn search_point(i: u32, jitter: vec2f) -> vec2f {
    if (i == 4u * SHADOW_RINGS) { return vec2f(0.0); }
    let side = SHADOW_SEARCH / f32(1u << (2u * (i / 4u)));
    return side * (vec2f(f32(i & 1u), f32((i >> 1u) & 1u)) + jitter - 1.0);
}

// Point i of the filter, each in its own cell of the square from -1 to 1.
fn tap(i: u32, jitter: vec2f) -> vec2f {
    let cell = vec2f(f32(i % SHADOW_TAPS_A_SIDE), f32(i / SHADOW_TAPS_A_SIDE));
    return 2.0 * (cell + jitter) / f32(SHADOW_TAPS_A_SIDE) - 1.0;
}
