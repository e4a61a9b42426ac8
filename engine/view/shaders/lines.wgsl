// Lines of constant width in pixels: each is a quad around the segment between two projected ends.
#import engine.view.lines

@group(0) @binding(0) var<uniform> view: LineView;
@group(0) @binding(1) var<storage, read> items: array<u32>;
@group(0) @binding(2) var<storage, read> chosen: array<u32>;
@group(0) @binding(3) var<storage, read> colours: array<vec4f>;
@group(0) @binding(4) var<storage, read> transforms: array<vec4f>; // three rows each
@group(0) @binding(5) var depth: texture_2d<f32>;
@group(0) @binding(6) var<uniform> eye: LineEye;

const ITEM_WORDS: u32 = 8u; // of a LineBox and of a LineSegment

struct Varying {
    @builtin(position) clip: vec4f,
    @location(0) colour: vec4f,
    @location(1) @interpolate(linear) across: f32, // pixels from the line's middle
    @location(2) distance: f32, // metres along the view axis
}

fn item_vec3(at: u32) -> vec3f {
    return vec3f(bitcast<f32>(items[at]), bitcast<f32>(items[at + 1u]), bitcast<f32>(items[at + 2u]));
}

fn to_clip(point: vec3f) -> vec4f {
    let p = vec4f(point, 1.0);
    let m = eye.view_projection;
    return vec4f(dot(m[0], p), dot(m[1], p), dot(m[2], p), dot(m[3], p));
}

// Corner `corner` (0..3) of the quad around the line from `a` to `b` in clip space.
fn line_corner(a_given: vec4f, b_given: vec4f, corner: u32, colour: vec4f) -> Varying {
    var a = a_given;
    var b = b_given;
    // What is behind the near plane has no place in the picture: w is the distance along the axis.
    if (a.w < view.near && b.w < view.near) {
        return Varying(vec4f(2.0, 2.0, 2.0, 1.0), colour, 0.0, 0.0);
    }
    if (a.w < view.near) {
        a = mix(a, b, (view.near - a.w) / (b.w - a.w));
    } else if (b.w < view.near) {
        b = mix(b, a, (view.near - b.w) / (a.w - b.w));
    }
    let half_size = 0.5 * view.picture_size;
    let from_pixel = a.xy / a.w * half_size;
    let to_pixel = b.xy / b.w * half_size;
    var along = to_pixel - from_pixel;
    let length_in_pixels = length(along);
    along = select(vec2f(1.0, 0.0), along / length_in_pixels, length_in_pixels > 1e-6);
    let reach = 0.5 * view.width + view.softness;
    let side = select(-reach, reach, (corner & 1u) != 0u);
    let at_end = corner >= 2u;
    let point = select(from_pixel - 0.5 * along, to_pixel + 0.5 * along, at_end)
        + side * vec2f(-along.y, along.x);
    let end = select(a, b, at_end);
    // Depth is not tested: in the middle of the range nothing is clipped by it.
    return Varying(vec4f(point / half_size * end.w, 0.5 * end.w, end.w), colour, side, end.w);
}

// Edge e of a box runs along axis e / 4; the two bits of e % 4 say where on the other two axes.
@vertex
fn boxes_main(@builtin(vertex_index) vertex: u32, @builtin(instance_index) index: u32) -> Varying {
    let at = chosen[index] * ITEM_WORDS;
    let low = item_vec3(at);
    let high = item_vec3(at + 4u);
    let edge = vertex >> 2u;
    let axis = edge >> 2u;
    var a: vec3f;
    a[(axis + 1u) % 3u] = select(0.0, 1.0, (edge & 1u) != 0u);
    a[(axis + 2u) % 3u] = select(0.0, 1.0, (edge & 2u) != 0u);
    var b = a;
    b[axis] = 1.0;
    let transform = 3u * items[at + 7u];
    return line_corner(to_clip(place(mix(low, high, a), transform)),
        to_clip(place(mix(low, high, b), transform)), vertex & 3u, colours[items[at + 3u]]);
}

fn place(point: vec3f, row: u32) -> vec3f {
    let p = vec4f(point, 1.0);
    return vec3f(dot(transforms[row], p), dot(transforms[row + 1u], p), dot(transforms[row + 2u], p));
}

@vertex
fn segments_main(@builtin(vertex_index) vertex: u32, @builtin(instance_index) index: u32) -> Varying {
    let at = chosen[index] * ITEM_WORDS;
    return line_corner(to_clip(item_vec3(at)), to_clip(item_vec3(at + 4u)), vertex & 3u,
        colours[items[at + 3u]]);
}

@fragment
fn line_main(in: Varying) -> @location(0) vec4f {
    var alpha = in.colour.a * clamp(0.5 * view.width + 0.5 - abs(in.across), 0.0, 1.0);
    let size = vec2f(textureDimensions(depth));
    let texel = vec2u(clamp(in.clip.xy / view.picture_size * size, vec2f(0.0), size - 1.0));
    let seen = textureLoad(depth, texel, 0).x;
    if (seen > 0.0 && in.distance > seen * (1.0 + view.depth_slack)) { alpha *= view.hidden_alpha; }
    return vec4f(in.colour.rgb, alpha);
}
