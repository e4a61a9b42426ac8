// Who sends reflection rays: of each block of REFLECTION_BLOCK x REFLECTION_BLOCK pixels one, another
// in every frame, so that after REFLECTION_BLOCK^2 frames each has had its turn. Where it is too rough
// for a ray, shows nothing or lies outside, the next one of the block takes it: a block that holds one
// smooth pixel has a ray in every frame. Blocks along a column or a row of the picture take turns as
// well, so that of a line of pixels in either direction some send in every frame.
// Needs `frame`, `visibility` and `surface`.
#import "passes/shaders/gbuffer.wgsl"
#import "passes/shaders/sampling.wgsl"

override REFLECTION_BLOCK: u32 = 1u; // a power of two, 4 at most

struct ReflectionSender {
    pixel: vec2u,
    sends: bool, // false: no pixel of the block does
}

fn sends_reflection(pixel: vec2u) -> bool {
    return textureLoad(visibility, pixel, 0).x != NOTHING
        && unpack_surface(textureLoad(surface, pixel, 0)).roughness <= frame.roughness_cutoff;
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

fn reflection_sender(block: vec2u) -> ReflectionSender {
    let last = REFLECTION_BLOCK - 1u;
    let shift = vec2u(reversed(block.y & last), reversed(block.x & last));
    let turns = REFLECTION_BLOCK * REFLECTION_BLOCK;
    // Where a round of turns begins is random: what a pixel sends then, by a sampler whose numbers
    // follow the frames, is not every n-th of them.
    let first = frame.frame_index + pcg(frame.frame_index / turns + pcg(frame.seed));
    for (var turn = 0u; turn < turns; turn += 1u) {
        let place = (place_in_block((first + turn) % turns) + shift) & vec2u(last);
        let pixel = REFLECTION_BLOCK * block + place;
        if (pixel.x < frame.width && pixel.y < frame.height && sends_reflection(pixel)) {
            return ReflectionSender(pixel, true);
        }
    }
    return ReflectionSender(REFLECTION_BLOCK * block, false);
}
