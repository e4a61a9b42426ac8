// A node's cheapest cut between bins of centroids, and whether a plane is worth a try: see
// bvh/gpu/spatial_stages.py.

#import bvh.gpu.binned_sah_records
#import bvh.gpu.spatial_records
#import "bvh/gpu/shaders/sah_boxes.wgsl"
#import "bvh/gpu/shaders/spatial_choice.wgsl"

@group(0) @binding(0) var<uniform> parameters: SplitParameters;
@group(0) @binding(1) var<storage, read> nodes: array<SahNode>;
@group(0) @binding(2) var<storage, read_write> bins: array<u32>;
@group(0) @binding(3) var<storage, read_write> extents: array<u32>;
@group(0) @binding(4) var<storage, read_write> split_state: array<SplitState>;
@group(0) @binding(5) var<storage, read_write> cuts: array<SpatialCut>;

const LANES = 128u; // at least a lane a bin of each axis

var<workgroup> bin: array<u32, NODE_BIN_WORDS>;

fn load_bin(index: u32) -> OrderedBox {
    let at = index * BIN_WORDS;
    return OrderedBox(vec3u(bin[at], bin[at + 1u], bin[at + 2u]),
        vec3u(bin[at + 3u], bin[at + 4u], bin[at + 5u]));
}

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
        for (var k = lane; k < NODE_BIN_WORDS; k += LANES) {
            let at = slot * NODE_BIN_WORDS + k;
            bin[k] = bins[at];
            bins[at] = select(0u, 0xffffffffu, k % BIN_WORDS < 3u); // empty for the next level
        }
        if (lane < 12u && 12u * slot + lane < arrayLength(&extents)) {
            extents[12u * slot + lane] = select(0u, 0xffffffffu, lane % 6u < 3u);
        }
        if (lane == 0u) { reset_choice(); }
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
        let larger = max(left_count, right_count);
        let usable = lane < 3u * BINS && larger < node.count;
        var cost = 0.0;
        if (usable) {
            let scale = area_scale(whole);
            let a = rounded(scaled_area(left, scale) * f32(left_count));
            cost = a + rounded(scaled_area(right, scale) * f32(right_count));
        }
        let uneven = larger - min(left_count, right_count);
        let best = choose(lane, usable, bitcast<u32>(cost), uneven);
        let found = best != 0xffffffffu;
        if (lane == select(0u, best, found)) {
            var cut = SpatialCut();
            cut.object_axis = select(HALVED, lane / BINS, found);
            cut.last_bin = select(0u, lane % BINS, found);
            cut.object_left = select(node.count / 2u, left_count, found);
            cut.object_cost = cost;
            cut.tried = select(0u, 1u, found && worth_a_try(whole, left, right));
            cut.low = array<u32, 3>(whole.low.x, whole.low.y, whole.low.z);
            cut.high = array<u32, 3>(whole.high.x, whole.high.y, whole.high.z);
            cut.left_slot = NO_SLOT;
            cut.right_slot = NO_SLOT;
            cuts[slot] = cut;
            if (parameters.level == 0u) {
                split_state[0].root_low = cut.low;
                split_state[0].root_high = cut.high;
            }
        }
        workgroupBarrier();
    }
}
