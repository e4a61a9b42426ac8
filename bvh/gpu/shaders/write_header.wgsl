// One lane: the container's header, and whether all of it fits. See bvh/gpu/encode.py.

#import bvh.layout
#import bvh.gpu.build_records
#import bvh.gpu.encode_records
#import "bvh/gpu/shaders/fan_places.wgsl"

@group(0) @binding(0) var<uniform> parameters: EncodeParameters;
@group(0) @binding(1) var<storage, read> state: array<BuildState>;
@group(0) @binding(2) var<storage, read> wide_summary: array<u32>;
@group(0) @binding(3) var<storage, read> unit_total: array<u32>;
@group(0) @binding(4) var<storage, read> fan_total: array<u32>; // 0 where no block is a fan
@group(0) @binding(5) var<storage, read> bounds: array<vec2u>;
@group(0) @binding(6) var<storage, read_write> words: array<vec4u>;
@group(0) @binding(7) var<storage, read_write> encode_summary: array<EncodeSummary>;

const HEADER_UNITS = HEADER_BYTES / UNIT_BYTES;

@compute @workgroup_size(1)
fn main() {
    let kept = state[0].kept;
    let nodes = wide_summary[0];
    let nodes_fp16 = 2u * nodes - unit_total[0];
    let leaf_unit = HEADER_UNITS + unit_total[0];
    let fans = fan_total[0];
    let units = leaf_unit + kept + fan_table_units(kept, fans);
    let fits = units <= parameters.capacity_units;
    encode_summary[0] = EncodeSummary(units, select(0u, 1u, fits), leaf_unit, nodes, nodes_fp16,
        kept, wide_summary[1], fans);
    if (!fits) { return; }
    var low = vec3u(EMPTY_BOUND_FP32);
    var high = vec3u(EMPTY_BOUND_FP32);
    if (kept > 0u) {
        low = vec3u(bounds[0], bounds[1].x);
        high = vec3u(bounds[1].y, bounds[2]);
    }
    let at = 4u * parameters.base_unit;
    words[at] = vec4u(HEADER_MAGIC, select(HEADER_VERSION, HEADER_FAN_VERSION, fans > 0u), HEADER_KIND_BLAS, ROOT_POINTER);
    words[at + 1u] = vec4u(units, leaf_unit, nodes - nodes_fp16, nodes_fp16);
    words[at + 2u] = vec4u(kept, state[0].triangles, parameters.geometry_count, wide_summary[1]);
    words[at + 3u] = vec4u(low, high.x);
    words[at + 4u] = vec4u(high.yz, select(0u, leaf_unit + kept, fans > 0u), fans);
    // bvh.layout.pack_descriptor: base >> 8, growth and sorting, last unit, return mode and type.
    words[at + 5u] = vec4u(parameters.base_unit >> 2u, DEFAULT_GROWTH << 23u | 1u << 31u,
        units - 1u, 1u << 24u | DESCRIPTOR_TYPE << 28u);
    words[at + 6u] = vec4u(0u);
    words[at + 7u] = vec4u(0u);
}
