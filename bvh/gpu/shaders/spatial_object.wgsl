// A node's cheapest cut between bins of centroids, and whether a plane is worth a try: see
// bvh/gpu/spatial_cuts.py.

#import bvh.gpu.binned_sah_records
#import bvh.gpu.spatial_records
#import "bvh/gpu/shaders/sah_boxes.wgsl"
#import "bvh/gpu/shaders/sah_bins.wgsl"
#import "bvh/gpu/shaders/sah_choice.wgsl"

@group(0) @binding(0) var<uniform> parameters: SplitParameters;
@group(0) @binding(1) var<storage, read> nodes: array<SahNode>;
@group(0) @binding(2) var<storage, read_write> bins: array<u32>;
@group(0) @binding(3) var<storage, read_write> extents: array<u32>;
@group(0) @binding(4) var<storage, read_write> split_state: array<SplitState>;
@group(0) @binding(5) var<storage, read_write> cuts: array<SpatialCut>;

// Whether the two sides overlap by so much, in a node whose coordinates stay in range.
fn worth_a_try(whole: OrderedBox, left: OrderedBox, right: OrderedBox) -> bool {
    let both = OrderedBox(max(left.low, right.low), min(left.high, right.high));
    if (any(both.low > both.high)) { return false; }
    var root = whole;
    if (parameters.level > 0u) {
        let low = split_state[0].root_low;
        let high = split_state[0].root_high;
        root = OrderedBox(vec3u(low[0], low[1], low[2]), vec3u(high[0], high[1], high[2]));
    }
    let bound = vec3f(LARGEST_COORDINATE);
    let small = all(value_of(whole.low) > -bound) && all(value_of(whole.high) < bound);
    let scale = area_scale(root);
    let least = rounded(scaled_area(root, scale) * LEAST_OVERLAP);
    return small && scaled_area(both, scale) > least;
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
        take_bins(slot, lane);
        if (lane < 12u && 12u * slot + lane < arrayLength(&extents)) {
            extents[12u * slot + lane] = select(0u, 0xffffffffu, lane % 6u < 3u);
        }
        if (lane == 0u) { reset_choice(); }
        workgroupBarrier();
        let cut = cut_after(lane);
        let whole = join(cut.left, cut.right);
        let left_count = cut.left_count;
        let right_count = node.count - left_count;
        let larger = max(left_count, right_count);
        let usable = lane < 3u * BINS && larger < node.count;
        var cost = 0.0;
        if (usable) {
            cost = cut_cost(cut.left, left_count, cut.right, right_count, area_scale(whole));
        }
        let uneven = larger - min(left_count, right_count);
        let best = choose(lane, usable, bitcast<u32>(cost), uneven);
        let found = best != 0xffffffffu;
        if (lane == select(0u, best, found)) {
            var record = SpatialCut();
            record.object_axis = select(HALVED, lane / BINS, found);
            record.last_bin = select(0u, lane % BINS, found);
            record.object_left = select(node.count / 2u, left_count, found);
            record.object_cost = cost;
            record.tried = select(0u, 1u, found && worth_a_try(whole, cut.left, cut.right));
            record.low = array<u32, 3>(whole.low.x, whole.low.y, whole.low.z);
            record.high = array<u32, 3>(whole.high.x, whole.high.y, whole.high.z);
            record.left_slot = NO_SLOT;
            record.right_slot = NO_SLOT;
            cuts[slot] = record;
            if (parameters.level == 0u) {
                split_state[0].root_low = record.low;
                split_state[0].root_high = record.high;
            }
        }
        workgroupBarrier();
    }
}
