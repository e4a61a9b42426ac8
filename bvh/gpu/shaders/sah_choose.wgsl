// A node's cheapest cut between bins, a workgroup a node: see bvh/gpu/binned_sah_stages.py.

#import bvh.gpu.binned_sah_records
#import "bvh/gpu/shaders/sah_boxes.wgsl"
#import "bvh/gpu/shaders/sah_bins.wgsl"
#import "bvh/gpu/shaders/sah_choice.wgsl"

@group(0) @binding(0) var<uniform> parameters: SahParameters;
@group(0) @binding(1) var<storage, read> nodes: array<SahNode>;
@group(0) @binding(2) var<storage, read_write> bins: array<u32>;
@group(0) @binding(3) var<storage, read_write> next_extents: array<u32>;
@group(0) @binding(4) var<storage, read_write> splits: array<SahSplit>;
@group(0) @binding(5) var<storage, read_write> children: array<i32>;
@group(0) @binding(6) var<storage, read_write> bounds: array<u32>;

@compute @workgroup_size(128)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    let node_count = nodes[0].first;
    for (var slot = group.x; slot < node_count; slot += groups.x) {
        let node = nodes[slot + 1u];
        take_bins(slot, lane);
        if (lane < 12u && 12u * slot + lane < arrayLength(&next_extents)) {
            next_extents[12u * slot + lane] = select(0u, 0xffffffffu, lane % 6u < 3u);
        }
        if (lane == 0u) { reset_choice(); }
        workgroupBarrier();
        let cut = cut_after(lane);
        let whole = join(cut.left, cut.right);
        let left_count = cut.left_count;
        let right_count = node.count - left_count;
        // What both children can still bring down to SWEEP, and keep within the depth.
        let most = min(most_below(parameters.level + 1u, parameters.max_depth),
            SWEEP << min(parameters.levels - 1u - parameters.level, 20u));
        let larger = max(left_count, right_count);
        let usable = lane < 3u * BINS && larger < node.count && larger <= most;
        var cost = 0.0;
        if (usable) {
            cost = cut_cost(cut.left, left_count, cut.right, right_count, area_scale(whole));
        }
        let uneven = larger - min(left_count, right_count);
        let best = choose(lane, usable, bitcast<u32>(cost), uneven);
        let halve = best == 0xffffffffu;
        if (lane == select(best, 0u, halve)) {
            var split = SahSplit(lane / BINS, lane % BINS, left_count, NO_SLOT, NO_SLOT);
            if (halve) { split = SahSplit(HALVED, 0u, node.count / 2u, NO_SLOT, NO_SLOT); }
            splits[slot] = split;
            // The move writes leaves.
            if (split.left_count > 1u) { children[2u * node.id] = i32(node.id + 1u); }
            if (node.count - split.left_count > 1u) {
                children[2u * node.id + 1u] = i32(node.id + split.left_count);
            }
            let low = bitcast<vec3u>(value_of(whole.low));
            let high = bitcast<vec3u>(value_of(whole.high));
            for (var k = 0u; k < 3u; k += 1u) {
                bounds[6u * node.id + k] = low[k];
                bounds[6u * node.id + 3u + k] = high[k];
            }
        }
        workgroupBarrier();
    }
}
