// Half the surface areas of a refitted tree's boxes, summed by workgroup: bvh/gpu/refit_cost.py.

#import bvh.gpu.refit_records
#import "bvh/gpu/shaders/refit_box.wgsl"
#import "bvh/gpu/shaders/refit_runs.wgsl"

@group(0) @binding(0) var<uniform> parameters: RefitParameters;
@group(0) @binding(1) var<storage, read> slots: array<u32>; // three words each
@group(0) @binding(2) var<storage, read> boxes: array<vec2i>;
@group(0) @binding(3) var<storage, read_write> areas: array<f32>; // by workgroup, then the root's

const LONGEST_SIDE = 1e18; // no area overflows

var<workgroup> sums: array<f32, 256>;

fn rounded(value: f32) -> f32 {
    return bitcast<f32>(bitcast<u32>(value) ^ parameters.zero);
}

fn half_area(slot: u32) -> f32 {
    let box = run_box(parameters.blocks, slots[3u * slot + 1u], slots[3u * slot + 2u]);
    let low = bitcast<vec3f>(ordered(box.low));
    let side = min(bitcast<vec3f>(ordered(box.high)) - low, vec3f(LONGEST_SIDE));
    let two = rounded(rounded(side.x * side.y) + rounded(side.y * side.z));
    return two + rounded(side.z * side.x);
}

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    let count = parameters.slots;
    var sum = 0.0;
    for (var slot = group.x * 256u + lane; slot < count; slot += groups.x * 256u) {
        sum = rounded(sum + half_area(slot));
    }
    sums[lane] = sum;
    workgroupBarrier();
    for (var width = 128u; width > 0u; width /= 2u) {
        if (lane < width) { sums[lane] = rounded(sums[lane] + sums[lane + width]); }
        workgroupBarrier();
    }
    if (lane == 0u) { areas[group.x] = sums[0]; }
    if (lane == 0u && group.x == 0u && count > 0u) { areas[groups.x] = half_area(0u); }
}
