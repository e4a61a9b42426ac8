// The cheapest plane of a node that tries one: see bvh/gpu/spatial_cuts.py.

#import bvh.gpu.binned_sah_records
#import bvh.gpu.spatial_records
#import "bvh/gpu/shaders/sah_boxes.wgsl"
#import "bvh/gpu/shaders/sah_slabs.wgsl"
#import "bvh/gpu/shaders/sah_choice.wgsl"

@group(0) @binding(0) var<uniform> parameters: SplitParameters;
@group(0) @binding(1) var<storage, read> nodes: array<SahNode>;
@group(0) @binding(2) var<storage, read_write> space: array<u32>;
@group(0) @binding(3) var<storage, read_write> cuts: array<SpatialCut>;

const LANES = 128u; // at least a lane a slab of each axis

var<workgroup> bin: array<u32, SPACE_WORDS>;

fn load_slab(index: u32) -> OrderedBox {
    let at = index * SPACE_BIN_WORDS;
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
        if (cuts[slot].tried == 0u) { continue; }
        let count = nodes[slot + 1u].count;
        let low = cuts[slot].low;
        let high = cuts[slot].high;
        for (var k = lane; k < SPACE_WORDS; k += LANES) {
            let at = slot * SPACE_WORDS + k;
            bin[k] = space[at];
            space[at] = select(0u, 0xffffffffu, k % SPACE_BIN_WORDS < 3u);
        }
        if (lane == 0u) { reset_choice(); }
        workgroupBarrier();
        var left = no_box();
        var right = no_box();
        var left_count = 0u;
        var right_count = 0u;
        let base = lane / BINS * BINS;
        if (lane < 3u * BINS) {
            for (var k = 0u; k < BINS; k += 1u) {
                let at = (base + k) * SPACE_BIN_WORDS;
                if (base + k <= lane) {
                    left = join(left, load_slab(base + k));
                    left_count += bin[at + 6u];
                } else {
                    right = join(right, load_slab(base + k));
                    right_count += bin[at + 7u];
                }
            }
        }
        let usable = lane < 3u * BINS && left_count > 0u && right_count > 0u
            && max(left_count, right_count) < count;
        let node_box = OrderedBox(vec3u(low[0], low[1], low[2]), vec3u(high[0], high[1], high[2]));
        var cost = 0.0;
        if (usable) {
            cost = cut_cost(left, left_count, right, right_count, area_scale(node_box));
        }
        let uneven = max(left_count, right_count) - min(left_count, right_count);
        let best = choose(lane, usable, bitcast<u32>(cost), uneven);
        if (lane == best && cost < cuts[slot].object_cost) {
            let axis = lane / BINS;
            cuts[slot].axis = axis;
            cuts[slot].plane = slab_plane(lane % BINS + 1u, value_of(node_box.low)[axis],
                value_of(node_box.high)[axis]);
            cuts[slot].cheaper = 1u;
        }
        workgroupBarrier();
    }
}
