// BINS slabs of a node's extent along an axis.

// Slab of a place in an extent that is open. The factor comes from an integer division, rounded
// down, so that it is the same on every adapter and the last slab is the last.
fn slab_of(place: f32, low: f32, high: f32) -> u32 {
    let pattern = bitcast<u32>(high - low);
    let normalise = bitcast<f32>((254u - (pattern >> 23u)) << 23u);
    let factor = f32(0x1000000u / ((pattern >> 12u & 0x7ffu | 0x800u) + 1u)) * (f32(BINS) / 8192.0);
    return min(u32((place - low) * normalise * factor), BINS - 1u);
}

// Where slab `index` begins.
fn slab_plane(index: u32, low: f32, high: f32) -> f32 {
    return low + rounded((high - low) * (f32(index) * (1.0 / f32(BINS))));
}
