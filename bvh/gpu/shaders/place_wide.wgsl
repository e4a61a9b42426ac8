// Wide nodes in depth-first order: see bvh/gpu/collapse.py.

#import bvh.gpu.build_records
#import "bvh/gpu/shaders/box.wgsl"

@group(0) @binding(0) var<storage, read> state: array<BuildState>;
@group(0) @binding(1) var<storage, read> ranges: array<vec2u>;
@group(0) @binding(2) var<storage, read> paths: array<vec2u>;
@group(0) @binding(3) var<storage, read> marks: array<u32>;
@group(0) @binding(4) var<storage, read> order: array<u32>;
@group(0) @binding(5) var<storage, read> slots: array<vec4i>;
@group(0) @binding(6) var<storage, read_write> places: array<u32>;
@group(0) @binding(7) var<storage, read_write> wide_children: array<vec4i>;

fn rank(node: u32) -> u32 {
    return order[ranges[node].x + paths[node].y / LEFT_TURN];
}

fn placed(child: i32) -> i32 {
    if (child < 0) { return child; }
    return i32(rank(u32(child)));
}

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    let node = flat_index(group, groups, lane);
    if (node >= max(state[0].kept, 2u) - 1u || marks[node] == 0u) { return; }
    let slot = slots[node];
    let at = rank(node);
    places[at] = node;
    wide_children[at] = vec4i(placed(slot.x), placed(slot.y), placed(slot.z), placed(slot.w));
}
