// What a pixel is shown that sent no reflection ray of its own, where a block of pixels shares one: the
// light that arrives at the senders nearby (`reflected` holds it without their own colour), each weighed by how near it is and
// how much its surface is like the pixel's, after Kopf et al., "Joint Bilateral Upsampling", 2007.
// The pixel's own colour comes after that, so that textures stay sharp. Surfaces are alike that lie in
// one plane, face one way and are equally rough; a mirror is like no surface that is none, and a
// narrow lobe like none that is not, as only these see the lights themselves. Materials matter little, since their colour is left out.
// Needs `frame`, `visibility`, `surface`, `depth`, `reflected` and `shadow_results`.
#import "passes/shaders/gbuffer.wgsl"
#import "passes/shaders/brdf.wgsl"
#import "passes/shaders/reflection_block.wgsl"
#import "passes/shaders/reflected.wgsl"

// Of the sides of a block as they are where the pixel is: how far from its plane a surface may lie.
const PLANE_TOLERANCE: f32 = 1.0;
const ROUGHNESS_TOLERANCE: f32 = 0.5; // of the roughness
const WIDE_SLACK: f32 = 8.0; // times both, where none nearer is like the pixel's
const HARDLY: f32 = 1.0e-3;
const LEAST_LIKENESS: f32 = 0.05;
const OTHER_MATERIAL: f32 = 0.25;
const LIKER: f32 = 1.001; // the first of equals is the likest, however they are rounded
const NEAREST: f32 = 0.025; // blocks squared: a sender that near weighs half of one at no distance

struct Receiver {
    pixel: vec2u,
    position: vec3f, // from the camera
    tolerance: f32, // metres from its plane
    s: GBufferSurface,
}

struct Gathered {
    radiance: vec3f, // times `weight`
    weight: f32,
    distance: f32, // of what the sender with the largest weight hit
}

fn from_camera(pixel: vec2u) -> vec3f {
    return textureLoad(depth, pixel, 0).x * camera_direction(pixel);
}

fn receiver(pixel: vec2u, s: GBufferSurface) -> Receiver {
    let footprint = f32(REFLECTION_BLOCK) * frame.pixel_spread * textureLoad(depth, pixel, 0).x;
    return Receiver(pixel, from_camera(pixel), PLANE_TOLERANCE * footprint, s);
}

// How much alike two surfaces are, 0 to 1: how far the sender lies from the pixel's plane, how it
// faces and how rough it is, by tolerances `slack` times as wide.
fn alike(r: Receiver, other: GBufferSurface, height: f32, slack: f32) -> f32 {
    let plane = max(0.0, 1.0 - abs(height) / (slack * r.tolerance));
    let c = max(0.0, dot(r.s.shading_normal, other.shading_normal));
    let c2 = c * c;
    let facing = select(c2, c2 * c2 * c2 * c2 * c2 * c2 * c2 * c2, slack == 1.0);
    let roughness = max(r.s.roughness, other.roughness);
    let apart = abs(r.s.roughness - other.roughness) / (slack * (0.02 + ROUGHNESS_TOLERANCE * roughness));
    return max(0.0, plane * facing * max(0.0, 1.0 - apart) - LEAST_LIKENESS);
}

// 0: the light there says nothing about the light here. Of a wide search surfaces that are hardly like
// the pixel's count, too, but far less than any that is.
fn likeness(r: Receiver, sender: vec2u, wide: bool) -> f32 {
    let other = unpack_surface(textureLoad(surface, sender, 0));
    if ((other.roughness < MIRROR_ROUGHNESS) != (r.s.roughness < MIRROR_ROUGHNESS)) { return 0.0; }
    if ((other.roughness < NARROW_ROUGHNESS) != (r.s.roughness < NARROW_ROUGHNESS)) { return 0.0; }
    let height = dot(r.s.geometric_normal, from_camera(sender) - r.position);
    var weight = alike(r, other, height, 1.0);
    if (wide) { weight += HARDLY * alike(r, other, height, WIDE_SLACK); }
    return weight * select(OTHER_MATERIAL, 1.0, other.material == r.s.material);
}

// From the senders of side x side blocks, `corner` the first.
fn gather(r: Receiver, corner: vec2i, side: i32, wide: bool) -> Gathered {
    let size = vec2u(frame.width, frame.height) + vec2u(REFLECTION_BLOCK - 1u);
    let blocks = vec2i(size / REFLECTION_BLOCK);
    var found = Gathered(vec3f(0.0), 0.0, MISS_DISTANCE);
    var largest = 0.0;
    for (var y = 0; y < side; y += 1) {
        for (var x = 0; x < side; x += 1) {
            let block = corner + vec2i(x, y);
            if (any(block < vec2i(0)) || any(block >= blocks)) { continue; }
            let sender = reflection_sender(vec2u(block));
            if (!sender.sends) { continue; }
            let step = (vec2f(sender.pixel) - vec2f(r.pixel)) / f32(REFLECTION_BLOCK);
            let weight = likeness(r, sender.pixel, wide) / (NEAREST + dot(step, step));
            if (weight <= 0.0) { continue; }
            let index = sender.pixel.y * frame.width + sender.pixel.x;
            found.radiance += weight * reflected_radiance(index);
            found.weight += weight;
            if (weight > LIKER * largest) {
                largest = weight;
                found.distance = reflected_distance(index);
            }
        }
    }
    return found;
}

// The first of the 2x2 blocks whose middles are nearest.
fn nearest_blocks(pixel: vec2u) -> vec2i {
    return vec2i((2u * pixel + vec2u(1u + REFLECTION_BLOCK)) / (2u * REFLECTION_BLOCK)) - vec2i(1);
}
