// One round of pointer jumping towards the root: see bvh/gpu/tree_paths.py.

#import bvh.gpu.build_records
#import "bvh/gpu/shaders/box.wgsl"

@group(0) @binding(0) var<uniform> parameters: BuildParameters;
@group(0) @binding(1) var<storage, read> state: array<BuildState>;
@group(0) @binding(2) var<storage, read> deepest: array<u32>;
@group(0) @binding(3) var<storage, read> paths: array<vec2u>;
@group(0) @binding(4) var<storage, read_write> longer_paths: array<vec2u>;

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    let node = flat_index(group, groups, lane);
    if (parameters.attempt == 1u && deepest[0] < parameters.max_depth) { return; }
    if (node >= max(state[0].kept, 2u) - 1u) { return; }
    let path = paths[node];
    let beyond = paths[path.x]; // the root's own is (0, 0)
    longer_paths[node] = vec2u(beyond.x, path.y + beyond.y);
}
