// Who sends reflection rays: of each block of REFLECTION_BLOCK x REFLECTION_BLOCK pixels one, another
// in every frame, so that after REFLECTION_BLOCK^2 frames each has had its turn. Where it is too rough
// for a ray, shows nothing or lies outside, the next one of the block takes it: a block that holds one
// smooth pixel has a ray in every frame. Blocks along a column or a row of the picture take turns as
// well, so that of a line of pixels in either direction some send in every frame.
// With NARROW_OWN, pixels whose lobe is narrower than what a block's rays can tell apart send a ray
// of their own in every frame and take no turns: what a mirror shows at one pixel says nothing about
// the next one. Where a surface bends, mirrored rays turn from pixel to pixel by twice as much, and so
// wider lobes are narrow there, if they are among those that see the lights themselves.
// Needs `frame`, `visibility` and `surface`.
#import "passes/shaders/brdf.wgsl"
#import "passes/shaders/gbuffer.wgsl"
#import "passes/shaders/lobe_radius.wgsl"
#import "passes/shaders/sampling.wgsl"

override REFLECTION_BLOCK: u32 = 1u; // a power of two, 4 at most
override NARROW_OWN: bool = false;

// Of the angle between the mirrored rays at a block's ends: a lobe with a smaller radius is narrow.
const NARROW_PART: f32 = 0.25;

struct ReflectionSender {
    pixel: vec2u,
    sends: bool, // false: no pixel of the block takes a turn
}

// By how much the normal turns from a pixel to the next ones of its pair of columns and of rows, where
// these show the same object; about radians.
fn bend_at(pixel: vec2u) -> f32 {
    let object = textureLoad(visibility, pixel, 0).x;
    let normal = decode_normal(textureLoad(surface, pixel, 0).x);
    var bend = 0.0;
    for (var axis = 0u; axis < 2u; axis += 1u) {
        let other = pixel ^ vec2u(1u - axis, axis);
        if (in_picture(other) && textureLoad(visibility, other, 0).x == object) {
            bend = max(bend, length(decode_normal(textureLoad(surface, other, 0).x) - normal));
        }
    }
    return bend;
}

fn is_narrow(pixel: vec2u, roughness: f32) -> bool {
    if (!NARROW_OWN) { return false; }
    let part = NARROW_PART * f32(REFLECTION_BLOCK);
    let lobe = lobe_angle(roughness);
    if (lobe < part * frame.pixel_spread) { return true; }
    return roughness < NARROW_ROUGHNESS && lobe < part * (frame.pixel_spread + 2.0 * bend_at(pixel));
}

// How a pixel sends rays.
const SENDS_NONE: u32 = 0u; // too rough, or nothing there
const SENDS_IN_TURN: u32 = 1u;
const SENDS_ALWAYS: u32 = 2u;

fn way_of_sending(pixel: vec2u) -> u32 {
    if (textureLoad(visibility, pixel, 0).x == NOTHING) { return SENDS_NONE; }
    let roughness = unpack_surface(textureLoad(surface, pixel, 0)).roughness;
    if (roughness > frame.roughness_cutoff) { return SENDS_NONE; }
    return select(SENDS_IN_TURN, SENDS_ALWAYS, is_narrow(pixel, roughness));
}

fn sends_reflection(pixel: vec2u) -> bool {
    return way_of_sending(pixel) != SENDS_NONE;
}

// The pixels of a block in an order in which each is far from the one before.
fn place_in_block(turn: u32) -> vec2u {
    var place = vec2u(0u);
    var bits = turn;
    for (var side = REFLECTION_BLOCK / 2u; side > 0u; side /= 2u) {
        place += side * vec2u(bits & 1u, (bits ^ (bits >> 1u)) & 1u);
        bits >>= 2u;
    }
    return place;
}

// The bits of a number below REFLECTION_BLOCK in reverse.
fn reversed(number: u32) -> u32 {
    return select(number, (number & 1u) << 1u | number >> 1u, REFLECTION_BLOCK == 4u);
}

// Which pixel of a block has the `turn`th turn from the one whose turn it is in this frame.
fn pixel_in_turn(block: vec2u, turn: u32) -> vec2u {
    let last = REFLECTION_BLOCK - 1u;
    let shift = vec2u(reversed(block.y & last), reversed(block.x & last));
    let turns: u32 = REFLECTION_BLOCK * REFLECTION_BLOCK;
    // Where a round of turns begins is random: what a pixel sends then, by a sampler whose numbers
    // follow the frames, is not every n-th of them.
    let first = frame.frame_index + pcg(frame.frame_index / turns + pcg(frame.seed));
    let place = (place_in_block((first + turn) % turns) + shift) & vec2u(last);
    return REFLECTION_BLOCK * block + place;
}

fn in_picture(pixel: vec2u) -> bool {
    return pixel.x < frame.width && pixel.y < frame.height;
}

// The one of a block that sends in its turn.
fn reflection_sender(block: vec2u) -> ReflectionSender {
    for (var turn = 0u; turn < REFLECTION_BLOCK * REFLECTION_BLOCK; turn += 1u) {
        let pixel = pixel_in_turn(block, turn);
        if (in_picture(pixel) && way_of_sending(pixel) == SENDS_IN_TURN) {
            return ReflectionSender(pixel, true);
        }
    }
    return ReflectionSender(REFLECTION_BLOCK * block, false);
}

// All of a block's pixels that send in this frame: a bit for each turn.
fn sending_turns(block: vec2u) -> u32 {
    var sending = 0u;
    var taken = false;
    for (var turn = 0u; turn < REFLECTION_BLOCK * REFLECTION_BLOCK; turn += 1u) {
        let pixel = pixel_in_turn(block, turn);
        if (!in_picture(pixel)) { continue; }
        let way = way_of_sending(pixel);
        if (way == SENDS_ALWAYS || (way == SENDS_IN_TURN && !taken)) { sending |= 1u << turn; }
        taken = taken || way == SENDS_IN_TURN;
        if (taken && !NARROW_OWN) { break; }
    }
    return sending;
}

// Whose ray is a pixel's: its own, or the one that its block shares.
fn sender_for(pixel: vec2u) -> ReflectionSender {
    if (NARROW_OWN && way_of_sending(pixel) == SENDS_ALWAYS) { return ReflectionSender(pixel, true); }
    return reflection_sender(pixel / REFLECTION_BLOCK);
}

// How many pixels' sides a ray of this pixel's stands for.
fn ray_footprint(pixel: vec2u, roughness: f32) -> f32 {
    return select(f32(REFLECTION_BLOCK), 1.0, is_narrow(pixel, roughness));
}
