// Keeps what an accepted round changed and takes back what a rejected one did: see bvh/gpu/reinsertion_refit.py.

#import bvh.gpu.build_records
#import bvh.gpu.reinsertion_records
#import "bvh/gpu/shaders/box.wgsl"
#import "bvh/gpu/shaders/reinsertion/nodes.wgsl"

@group(0) @binding(0) var<storage, read> tally: array<u32>;
@group(0) @binding(1) var<storage, read> progress: array<Progress>;
@group(0) @binding(2) var<storage, read> changed: array<u32>;
@group(0) @binding(3) var<storage, read_write> children: array<vec2i>;
@group(0) @binding(4) var<storage, read_write> bounds: array<vec2f>;
@group(0) @binding(5) var<storage, read_write> kept_children: array<vec2i>;
@group(0) @binding(6) var<storage, read_write> kept_bounds: array<vec2f>;

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    let verdict = progress[0].verdict;
    if (verdict == NO_VERDICT) { return; }
    let count = tally[STARTS + LEVEL_SLOTS];
    for (var slot = group.x * 256u + lane; slot < count; slot += groups.x * 256u) {
        let node = changed[slot];
        if (verdict == ACCEPTED) {
            kept_children[node] = children[node];
            for (var k = 3u * node; k < 3u * node + 3u; k += 1u) { kept_bounds[k] = bounds[k]; }
        } else {
            children[node] = kept_children[node];
            for (var k = 3u * node; k < 3u * node + 3u; k += 1u) { bounds[k] = kept_bounds[k]; }
        }
    }
}
