// The box of every child into its node, a lane a child slot, and the header's bounds: see
// bvh/gpu/refit.py.

#import bvh.layout
#import bvh.gpu.refit_records
#import "bvh/gpu/shaders/refit_box.wgsl"
#import "bvh/gpu/shaders/refit_runs.wgsl"

@group(0) @binding(0) var<uniform> parameters: RefitParameters;
@group(0) @binding(1) var<storage, read> node_units: array<u32>;
@group(0) @binding(2) var<storage, read> slot_runs: array<vec2u>;
@group(0) @binding(3) var<storage, read> boxes: array<vec2i>;
@group(0) @binding(4) var<storage, read_write> words: array<u32>;
@group(0) @binding(5) var<storage, read_write> counts: array<atomic<u32>, 4>;

fn store_float_box(at: u32, box: OrderedBox) {
    let low = bitcast<vec3u>(ordered(box.low));
    let high = bitcast<vec3u>(ordered(box.high));
    words[at] = low.x;
    words[at + 1u] = low.y;
    words[at + 2u] = low.z;
    words[at + 3u] = high.x;
    words[at + 4u] = high.y;
    words[at + 5u] = high.z;
}

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    let place = (group.y * groups.x + group.x) * 256u + lane;
    let blocks = parameters.blocks;
    let base = UNIT_WORDS * parameters.base_unit;
    let node = place / BOX_WIDTH;
    if (node >= parameters.nodes) {
        // The first lane past the nodes.
        if (place == BOX_WIDTH * parameters.nodes && blocks > 0u) {
            store_float_box(base + HEADER_BOUNDS_WORD, run_box(blocks, 0u, blocks - 1u));
        }
        return;
    }
    let run = slot_runs[place];
    if (run.x > run.y) { return; } // no child: its words stay
    let box = run_box(blocks, run.x, run.y);
    let unit = node_units[node];
    let bounds = base + UNIT_WORDS * (unit & ~HALF_NODE) + BOX_BOUNDS_WORD;
    let slot = place % BOX_WIDTH;
    if ((unit & HALF_NODE) == 0u) {
        store_float_box(bounds + 6u * slot, box);
        return;
    }
    let at = bounds + BOX_FP16_CHILD_WORDS * slot;
    let packed = pack_half_box(box);
    if (half_overflows(packed)) { atomicAdd(&counts[FOUND_OVERFLOW], 1u); }
    words[at] = packed.x;
    words[at + 1u] = packed.y;
    words[at + 2u] = packed.z;
}
