// The numbers that a frame samples with: in [0, 1), one for each dimension of each pixel's sample.
// `frame.sampler` (passes/sampler.py) says which; each is right on average over seeds, and over
// frames. Dimensions 2 p and 2 p + 1 are a pair: the two numbers of one sample.
// Needs `frame` and `tables`.
#import "passes/shaders/sampling.wgsl"
#import passes.sampler

// The second dimension of Sobol's sequence; the first is the index with its bits reversed. The
// direction numbers are those of Pascal's triangle modulo 2.
fn sobol_second(index: u32) -> u32 {
    var result = 0u;
    var direction = 0x80000000u;
    for (var rest = index; rest != 0u; rest >>= 1u) {
        if ((rest & 1u) != 0u) { result ^= direction; }
        direction ^= direction >> 1u;
    }
    return result;
}

// Owen's scrambling of a binary fraction: each bit is flipped or not by a hash of those above it
// (Laine, Karras, "Stratified Sampling for Stochastic Transparency", EGSR 2011; the constants are
// Vegdahl's, "Building a Better LK Hash", 2021).
fn scrambled(fraction: u32, seed: u32) -> u32 {
    var x = reverseBits(fraction);
    x ^= x * 0x3d20adeau;
    x += seed;
    x *= (seed >> 16u) | 1u;
    x ^= x * 0x05526c56u;
    x ^= x * 0x53a22864u;
    return reverseBits(x);
}

// Point `index` of a scrambled (0, 2)-sequence: 32-bit fractions. Each pair of dimensions goes
// through the points of every power of two in an order of its own (Burley, "Practical Hash-based
// Owen Scrambling", JCGT 2020), so that no two pairs run together.
fn sobol_number(index: u32, key: u32, second: bool) -> u32 {
    let shuffled = scrambled(index, key);
    if (second) { return scrambled(sobol_second(shuffled), pcg(key + 2u)); }
    return scrambled(reverseBits(shuffled), pcg(key + 1u));
}

// Blue noise between pixels: its rank in a table, moved for each dimension, and below that a hash.
fn blue_fraction(pixel: u32, dimension: u32) -> u32 {
    let shift = pcg(frame.seed * 65536u + dimension);
    let x = (pixel % frame.width + shift) % BLUE_SIDE;
    let y = (pixel / frame.width + (shift >> 16u)) % BLUE_SIDE;
    let place = y * BLUE_SIDE + x;
    let word = tables[frame.noise_base + place / 8u][place / 2u % 4u];
    let rank = (word >> (16u * (place & 1u))) & 0xffffu;
    return rank * (0xffffffffu / (BLUE_SIDE * BLUE_SIDE) + 1u) + (pcg(pixel + shift) >> (2u * BLUE_BITS));
}

fn sample_number(pixel: u32, dimension: u32) -> f32 {
    if (frame.sampler == SAMPLER_HASH) {
        return random(pixel, frame.frame_index, frame.seed, dimension);
    }
    let second = (dimension & 1u) == 1u;
    var fraction: u32;
    if (frame.sampler == SAMPLER_SOBOL) {
        let key = pcg(pixel + pcg(frame.seed * 65536u + dimension / 2u));
        fraction = sobol_number(frame.frame_index, key, second);
    } else {
        // All pixels go through one sequence from where the table has them.
        let key = pcg(frame.seed * 65536u + dimension / 2u);
        fraction = blue_fraction(pixel, dimension) + sobol_number(frame.frame_index, key, second);
    }
    return f32(fraction >> 8u) * 5.9604645e-8; // 2^-24
}
