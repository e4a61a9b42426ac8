// Which places of the binary tree's preorder hold a wide node: see bvh/gpu/collapse.py.

#import bvh.gpu.build_records
#import "bvh/gpu/shaders/box.wgsl"

@group(0) @binding(0) var<storage, read> state: array<BuildState>;
@group(0) @binding(1) var<storage, read> ranges: array<vec2u>;
@group(0) @binding(2) var<storage, read> paths: array<vec2u>;
@group(0) @binding(3) var<storage, read> marks: array<u32>;
@group(0) @binding(4) var<storage, read_write> order: array<u32>;

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    let node = flat_index(group, groups, lane);
    if (node >= max(state[0].kept, 2u) - 1u) {
        // Preorder fills the places of the nodes there are, so this one is nobody else's.
        if (node < arrayLength(&order)) { order[node] = 0u; }
        return;
    }
    order[ranges[node].x + paths[node].y / LEFT_TURN] = select(0u, 1u, marks[node] > 0u);
}
