// Bounds of refitted BLASes from their headers into the table that a TLAS is built from: see
// bvh/gpu/refit_table.py.

#import bvh.layout
#import bvh.gpu.tlas_records
#import bvh.gpu.refit_records

@group(0) @binding(0) var<storage, read> refitted: array<u32>;
@group(0) @binding(1) var<storage, read> words: array<u32>;
@group(0) @binding(2) var<storage, read_write> blases: array<BlasRecord>;

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) lane: vec3u) {
    if (lane.x >= arrayLength(&refitted) || refitted[lane.x] == NO_BLAS) { return; }
    let blas = refitted[lane.x];
    let at = UNIT_WORDS * blases[blas].base_unit + HEADER_BOUNDS_WORD;
    let low = vec3u(words[at], words[at + 1u], words[at + 2u]);
    let high = vec3u(words[at + 3u], words[at + 4u], words[at + 5u]);
    if ((low.x & 0x7fffffffu) > 0x7f800000u) { return; } // NaN: empty, and so it stays
    blases[blas].low = bitcast<vec3f>(low);
    blases[blas].high = bitcast<vec3f>(high);
}
