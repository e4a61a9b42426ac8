// Mutual choices become pairs: see bvh/gpu/pair_far.py.

#import bvh.gpu.build_records
#import bvh.gpu.pair_records
#import "bvh/gpu/shaders/box.wgsl"

@group(0) @binding(0) var<uniform> parameters: PairParameters;
@group(0) @binding(1) var<storage, read> choices: array<vec2u>;
@group(0) @binding(2) var<storage, read_write> mates: array<u32>;
@group(0) @binding(3) var<storage, read_write> starts: array<u32>;

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    let lanes = groups.x * groups.y * 256u;
    for (var t = flat_index(group, groups, lane); t < parameters.count; t += lanes) {
        let choice = choices[t];
        if (choice.x == NONE) { continue; }
        let other = choice.y / 3u;
        if (choices[other].x != choice.y) { continue; }
        mates[t] = (choice.x % 3u) << CORNER_SHIFT | other;
        if (other < t) { starts[t] = 0u; }
    }
}
