// Where the pyramid of passes/depth_pyramid.py keeps what, and how a pixel's plane is packed.

const PYRAMID_TOP: u32 = 5u;

// A side of the picture, up to whole cells of the top level.
fn padded_size(size: vec2u) -> vec2u {
    return ((size + (1u << PYRAMID_TOP) - 1u) >> vec2u(PYRAMID_TOP)) << vec2u(PYRAMID_TOP);
}

// A level's first texel; `padded` is the size of level 0.
fn pyramid_corner(padded: vec2u, level: u32) -> vec2u {
    return select(vec2u(padded.x - ((2u * padded.x) >> level), padded.y), vec2u(0u), level == 0u);
}

// The plane that stands for a pixel, by reciprocal depths: over the picture these are linear.
struct PixelPlane {
    near: f32, // of its centre; 0: nothing is seen there
    tilt: vec2f, // change from pixel to pixel, as a part of it
}

// Ends of tilts that are packed as f16.
const STEEPEST: f32 = 6.0e4;

fn pack_plane(plane: PixelPlane) -> vec2u {
    let tilt = clamp(plane.tilt, vec2f(-STEEPEST), vec2f(STEEPEST));
    return vec2u(bitcast<u32>(plane.near), pack2x16float(tilt));
}

fn unpack_plane(words: vec2u) -> PixelPlane {
    return PixelPlane(bitcast<f32>(words.x), unpack2x16float(words.y));
}

// A ray that comes into a pixel behind its plane meets it all the same if it is no more than a
// fiftieth of its depth behind it: the picture does not say how thick things are.
const BEHIND: f32 = 1.0 / 1.02;

// The greatest and the least reciprocal depth at which a ray may meet what a cell shows.
struct CellBounds {
    nearest: f32,
    farthest: f32,
}

const EMPTY_CELL = CellBounds(-1.0, 3.0e38);
const ROUNDING: f32 = 1.0e-6; // a few roundings' part of a reciprocal depth
const PLACE_ROUNDING: f32 = 1.0 / 256.0; // of a ray's place on the picture, as a part of half a pixel

fn plane_bounds(plane: PixelPlane) -> CellBounds {
    if (plane.near == 0.0) { return EMPTY_CELL; }
    let to_corner = 0.5 * (abs(plane.tilt.x) + abs(plane.tilt.y));
    let slope = to_corner * (1.0 + PLACE_ROUNDING) + ROUNDING;
    return CellBounds(plane.near * (1.0 + slope), plane.near * min(1.0 - slope, BEHIND - ROUNDING));
}

fn both_bounds(a: CellBounds, b: CellBounds) -> CellBounds {
    return CellBounds(max(a.nearest, b.nearest), min(a.farthest, b.farthest));
}

fn pack_bounds(bounds: CellBounds) -> vec2u {
    return bitcast<vec2u>(vec2f(bounds.nearest, bounds.farthest));
}

fn unpack_bounds(words: vec2u) -> CellBounds {
    let ends = bitcast<vec2f>(words);
    return CellBounds(ends.x, ends.y);
}
