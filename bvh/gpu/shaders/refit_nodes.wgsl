// Boxes into nodes, a lane a child slot, and into the header: see bvh/gpu/refit.py.

#import bvh.layout
#import bvh.gpu.refit_records
#import "bvh/gpu/shaders/refit_box.wgsl"
#import "bvh/gpu/shaders/refit_runs.wgsl"

@group(0) @binding(0) var<uniform> parameters: RefitParameters;
@group(0) @binding(1) var<storage, read> slots: array<u32>; // three words each
@group(0) @binding(2) var<storage, read> boxes: array<vec2i>;
@group(0) @binding(3) var<storage, read_write> words: array<u32>;
@group(0) @binding(4) var<storage, read_write> counts: array<atomic<u32>, 4>;

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    let slot = (group.y * groups.x + group.x) * 256u + lane;
    if (slot >= parameters.slots) { return; }
    let box = run_box(parameters.blocks, slots[3u * slot + 1u], slots[3u * slot + 2u]);
    let place = slots[3u * slot];
    let at = UNIT_WORDS * parameters.base_unit + (place & ~HALF_BOX);
    if ((place & HALF_BOX) != 0u) {
        let packed = pack_half_box(box);
        if (half_overflows(packed)) { atomicAdd(&counts[FOUND_OVERFLOW], 1u); }
        words[at] = packed.x;
        words[at + 1u] = packed.y;
        words[at + 2u] = packed.z;
    } else {
        let low = bitcast<vec3u>(ordered(box.low));
        let high = bitcast<vec3u>(ordered(box.high));
        words[at] = low.x;
        words[at + 1u] = low.y;
        words[at + 2u] = low.z;
        words[at + 3u] = high.x;
        words[at + 4u] = high.y;
        words[at + 5u] = high.z;
    }
}
