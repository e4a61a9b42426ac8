// Edges of triangles without a partner into the table: see bvh/gpu/pair_far.py.

#import bvh.gpu.build_records
#import bvh.gpu.pair_records
#import "bvh/gpu/shaders/box.wgsl"
#import "bvh/gpu/shaders/edge.wgsl"
#import "bvh/gpu/shaders/triangle_vertex.wgsl"

@group(0) @binding(0) var<uniform> parameters: PairParameters;
@group(0) @binding(1) var<storage, read> triangles: array<u32>;
@group(0) @binding(2) var<storage, read> mates: array<u32>;
@group(0) @binding(3) var<storage, read_write> edge_table: array<atomic<u32>>;
@group(0) @binding(4) var<storage, read_write> choices: array<vec2u>;

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    let lanes = groups.x * groups.y * 256u;
    for (var t = flat_index(group, groups, lane); t < parameters.count; t += lanes) {
        let open = mates[t] == NONE;
        choices[t] = select(vec2u(NONE), vec2u(0u), open);
        if (!open) { continue; }
        var hash: array<u32, 3>;
        for (var c = 0u; c < 3u; c += 1u) { hash[c] = hash_vertex(vertex(t, c)); }
        for (var c = 0u; c < 3u; c += 1u) {
            let start = hash[(c + 1u) % 3u];
            let end = hash[(c + 2u) % 3u];
            let place = table_place(start, end, parameters.seed, parameters.table_mask);
            atomicMin(&edge_table[place], 3u * t + c);
        }
    }
}
