// Which nodes every inner node would open as a wide node: see bvh/gpu/collapse.py.

#import bvh.gpu.build_records
#import bvh.gpu.tree_order_records
#import "bvh/gpu/shaders/box.wgsl"

override GREEDY: bool = false;

@group(0) @binding(0) var<uniform> parameters: vec4u; // zero, 0, 0, 0
@group(0) @binding(1) var<storage, read> state: array<BuildState>;
@group(0) @binding(2) var<storage, read> children: array<vec2i>;
@group(0) @binding(3) var<storage, read> bounds: array<vec2f>;
@group(0) @binding(4) var<storage, read> heights: array<u32>;
@group(0) @binding(5) var<storage, read> shares: array<u32>;
@group(0) @binding(6) var<storage, read> leaf_counts: array<vec2u>;
@group(0) @binding(7) var<storage, read_write> steps: array<vec4i>;
@group(0) @binding(8) var<storage, read_write> wide_summary: array<u32>;

fn rounded(value: f32) -> f32 {
    return bitcast<f32>(bitcast<u32>(value) ^ parameters.x);
}

#import "bvh/gpu/shaders/node_area.wgsl"

struct Slots {
    child: vec4i,
    code: vec4u,
    mask: u32, // of the codes that were opened
}

// The slots with the inner child in `place` (0 to 2) replaced by its two children.
fn opened(slots: Slots, place: u32) -> Slots {
    let old = slots.child;
    let code = slots.code;
    let pair = children[old[place]];
    let at = 2u * code[place];
    let codes = vec2u(at, at + 1u);
    let mask = slots.mask | 1u << (code[place] - 2u);
    if (place == 0u) { return Slots(vec4i(pair, old.yz), vec4u(codes, code.yz), mask); }
    if (place == 1u) { return Slots(vec4i(old.x, pair, old.z), vec4u(code.x, codes, code.z), mask); }
    return Slots(vec4i(old.xy, pair), vec4u(code.xy, codes), mask);
}

fn height(child: i32) -> u32 {
    if (child < 0) { return 0u; }
    return heights[child];
}

// What decides which child is opened: its area or its height; -1 for a leaf or an empty slot.
fn size(child: i32, by_height: bool) -> f32 {
    if (child < 0) { return -1.0; }
    if (by_height) { return f32(heights[child]); }
    return half_area(u32(child));
}

// The inner child of largest size, the first of equals, opened, if there is one.
fn open_largest(slots: Slots, by_height: bool) -> Slots {
    let child = slots.child;
    let sizes = vec3f(size(child.x, by_height), size(child.y, by_height), size(child.z, by_height));
    let most = max(max(sizes.x, sizes.y), sizes.z);
    if (most < 0.0) { return slots; }
    return opened(slots, select(select(2u, 1u, sizes.y == most), 0u, sizes.x == most));
}

// How many of `slots` (2 or 3) that a child may fill go left; 0 where it is a slot itself.
fn left_share(child: i32, slots: u32) -> u32 {
    if (child < 0 || slots < 2u) { return 0u; }
    return shares[child] >> select(4u, 2u, slots == 3u) & 3u;
}

fn open_best(node: u32, unopened: Slots) -> Slots {
    let left = shares[node] & 3u;
    var slots = unopened;
    var width = vec3u(left, 4u - left, 0u);
    for (var round = 0u; round < 2u; round += 1u) {
        let child = slots.child;
        let split = vec3u(left_share(child.x, width.x), left_share(child.y, width.y),
            left_share(child.z, width.z));
        if (split.x > 0u) {
            slots = opened(slots, 0u);
            width = vec3u(split.x, width.x - split.x, width.y);
        } else if (split.y > 0u) {
            slots = opened(slots, 1u);
            width = vec3u(width.x, split.y, width.y - split.y);
        } else if (split.z > 0u) {
            slots = opened(slots, 2u);
        }
    }
    return slots;
}

// Stack entries that a traversal below may need: the slots, and one a level of the tallest.
fn entries(slots: Slots) -> u32 {
    let child = slots.child;
    let tallest = max(max(height(child.x), height(child.y)), max(height(child.z), height(child.w)));
    return 2u + countOneBits(slots.mask) + tallest;
}

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    let node = flat_index(group, groups, lane);
    if (node < 4u) { wide_summary[node] = 0u; }
    if (node >= max(state[0].kept, 2u) - 1u) { return; }
    let pair = children[node];
    let unopened = Slots(vec4i(pair, EMPTY_CHILD, EMPTY_CHILD), vec4u(2u, 3u, 0u, 0u), 0u);
    var wanted: Slots;
    if (GREEDY) {
        wanted = open_largest(open_largest(unopened, false), false);
    } else {
        wanted = open_best(node, unopened);
    }
    let tallest = open_largest(open_largest(unopened, true), true);
    let shape = wanted.mask | tallest.mask << MASK_BITS | entries(wanted) << (2u * MASK_BITS)
        | entries(tallest) << (2u * MASK_BITS + ENTRY_BITS);
    steps[node] = vec4i(pair, i32(leaf_counts[node].x), i32(shape));
}
