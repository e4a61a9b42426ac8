// A node's cheapest cut between bins, a workgroup a node: see bvh/gpu/binned_sah_stages.py.

#import bvh.gpu.binned_sah_records
#import "bvh/gpu/shaders/sah_boxes.wgsl"

@group(0) @binding(0) var<uniform> parameters: SahParameters;
@group(0) @binding(1) var<storage, read> nodes: array<SahNode>;
@group(0) @binding(2) var<storage, read_write> bins: array<u32>;
@group(0) @binding(3) var<storage, read_write> next_extents: array<u32>;
@group(0) @binding(4) var<storage, read_write> splits: array<SahSplit>;
@group(0) @binding(5) var<storage, read_write> children: array<i32>;
@group(0) @binding(6) var<storage, read_write> bounds: array<u32>;

const LANES = 128u; // at least a lane a bin of each axis

var<workgroup> bin: array<u32, NODE_BIN_WORDS>;
var<workgroup> least_cost: atomic<u32>;
var<workgroup> least_uneven: atomic<u32>;
var<workgroup> chosen: atomic<u32>;

fn load_bin(index: u32) -> OrderedBox {
    let at = index * BIN_WORDS;
    return OrderedBox(vec3u(bin[at], bin[at + 1u], bin[at + 2u]),
        vec3u(bin[at + 3u], bin[at + 4u], bin[at + 5u]));
}

@compute @workgroup_size(128)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    let node_count = nodes[0].first;
    for (var slot = group.x; slot < node_count; slot += groups.x) {
        let node = nodes[slot + 1u];
        for (var k = lane; k < NODE_BIN_WORDS; k += LANES) {
            let at = slot * NODE_BIN_WORDS + k;
            bin[k] = bins[at];
            bins[at] = select(0u, 0xffffffffu, k % BIN_WORDS < 3u); // empty for the next level
        }
        if (lane < 12u && 12u * slot + lane < arrayLength(&next_extents)) {
            next_extents[12u * slot + lane] = select(0u, 0xffffffffu, lane % 6u < 3u);
        }
        if (lane == 0u) {
            atomicStore(&least_cost, 0xffffffffu);
            atomicStore(&least_uneven, 0xffffffffu);
            atomicStore(&chosen, 0xffffffffu);
        }
        workgroupBarrier();
        var left = no_box();
        var right = no_box();
        var left_count = 0u;
        let base = lane / BINS * BINS;
        if (lane < 3u * BINS) {
            for (var k = 0u; k < BINS; k += 1u) {
                let box = load_bin(base + k);
                if (base + k <= lane) {
                    left = join(left, box);
                    left_count += bin[(base + k) * BIN_WORDS + 6u];
                } else {
                    right = join(right, box);
                }
            }
        }
        let whole = join(left, right);
        let right_count = node.count - left_count;
        // What both children can still bring down to SWEEP, and keep within the depth.
        let most = min(most_below(parameters.level + 1u, parameters.max_depth),
            SWEEP << min(parameters.levels - 1u - parameters.level, 20u));
        let larger = max(left_count, right_count);
        let usable = lane < 3u * BINS && larger < node.count && larger <= most;
        var cost = 0xffffffffu;
        if (usable) {
            let scale = area_scale(whole);
            let a = rounded(scaled_area(left, scale) * f32(left_count));
            cost = bitcast<u32>(a + rounded(scaled_area(right, scale) * f32(right_count)));
            atomicMin(&least_cost, cost);
        }
        workgroupBarrier();
        let cheapest = usable && cost == atomicLoad(&least_cost);
        let uneven = larger - min(left_count, right_count);
        if (cheapest) { atomicMin(&least_uneven, uneven); }
        workgroupBarrier();
        if (cheapest && uneven == atomicLoad(&least_uneven)) { atomicMin(&chosen, lane); }
        workgroupBarrier();
        let best = atomicLoad(&chosen);
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
