// The best candidate of every triangle without a partner: see bvh/gpu/pair_far.py.

#import bvh.gpu.build_records
#import bvh.gpu.pair_records
#import "bvh/gpu/shaders/box.wgsl"
#import "bvh/gpu/shaders/rank_pair.wgsl"

@group(0) @binding(0) var<uniform> parameters: PairParameters;
@group(0) @binding(1) var<storage, read> triangles: array<u32>;
@group(0) @binding(2) var<storage, read> triangle_ids: array<vec2u>;
@group(0) @binding(3) var<storage, read> triangle_boxes: array<vec2f>;
@group(0) @binding(4) var<storage, read> mates: array<u32>;
@group(0) @binding(5) var<storage, read> edge_table: array<u32>;
@group(0) @binding(6) var<storage, read_write> choices: array<vec2u>;

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    let lanes = groups.x * groups.y * 256u;
    for (var t = flat_index(group, groups, lane); t < parameters.count; t += lanes) {
        // Who had no candidate in a round before this one has none now.
        if (choices[t].x == NONE) { continue; }
        var choice = vec2u(NONE);
        if (mates[t] == NONE) {
            var hash: array<u32, 3>;
            for (var c = 0u; c < 3u; c += 1u) { hash[c] = hash_vertex(vertex(t, c)); }
            var best = NONE;
            for (var c = 0u; c < 3u; c += 1u) {
                let start = hash[(c + 1u) % 3u];
                let end = hash[(c + 2u) % 3u];
                let place = table_place(start, end, parameters.seed, parameters.table_mask);
                let mine = 3u * t + c;
                let other = edge_table[place ^ 1u];
                // Displaced by another edge, or alone.
                if (edge_table[place] != mine || other == NONE) { continue; }
                if (mates[other / 3u] != NONE) { continue; }
                let rank = rank_pair(mine, other);
                if (rank < best) {
                    best = rank;
                    choice = vec2u(mine, other);
                }
            }
        }
        choices[t] = choice;
    }
}
