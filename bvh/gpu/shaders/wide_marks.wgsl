// Which inner nodes become wide, and the leaves below each, by a walk from the root: see bvh/gpu/collapse.py.

#import bvh.gpu.build_records
#import bvh.gpu.tree_order_records
#import "bvh/gpu/shaders/box.wgsl"

@group(0) @binding(0) var<storage, read> state: array<BuildState>;
@group(0) @binding(1) var<storage, read> paths: array<vec2u>;
@group(0) @binding(2) var<storage, read> steps: array<vec4i>;
@group(0) @binding(3) var<storage, read> leaf_counts: array<vec2u>;
@group(0) @binding(4) var<storage, read_write> ranges: array<vec2u>;
@group(0) @binding(5) var<storage, read_write> leaf_order: array<u32>;
@group(0) @binding(6) var<storage, read_write> marks: array<vec2u>;
@group(0) @binding(7) var<storage, read_write> order: array<u32>;

const MASK = (1u << MASK_BITS) - 1u;
const ENTRIES = (1u << ENTRY_BITS) - 1u;

// The nodes that a wide node opens where so many entries wait.
fn fitting_mask(shape: u32, waiting: u32) -> u32 {
    if (waiting + (shape >> (2u * MASK_BITS) & ENTRIES) <= STACK_ENTRIES) { return shape & MASK; }
    let by_height = shape >> (2u * MASK_BITS + ENTRY_BITS) & ENTRIES;
    return select(0u, shape >> MASK_BITS & MASK, waiting + by_height <= STACK_ENTRIES);
}

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    let node = flat_index(group, groups, lane);
    if (node >= max(state[0].kept, 2u) - 1u) { return; }
    let path = paths[node];
    let depth = path.y >> DEPTH_SHIFT;
    var turns = vec2u(path.x, path.y & 0xffffu);
    let left_turns = depth - countOneBits(turns.x) - countOneBits(turns.y);
    var at = steps[0]; // left child, right child, leaves on the left, shape
    var first = 0u;
    var waiting = 0u;
    var level = 1u;
    var mask = fitting_mask(u32(at.w), 0u);
    var code = 1u; // of the node that `at` is about, below the last wide node
    for (var step = 0u; step < depth; step += 1u) {
        let right = turns.x & 1u;
        turns = vec2u(turns.x >> 1u | turns.y << 31u, turns.y >> 1u);
        first += select(0u, u32(at.z), right == 1u);
        at = steps[select(at.x, at.y, right == 1u)];
        code = 2u * code + right;
        if ((mask >> (code - 2u) & 1u) == 0u) {
            // Of the slots of the wide node above, all but this one wait.
            waiting += 1u + countOneBits(mask);
            level += 1u;
            mask = fitting_mask(u32(at.w), waiting);
            code = 1u;
        }
    }
    let left_leaves = u32(at.z);
    let leaves = max(left_leaves + leaf_counts[node].y, 1u);
    ranges[node] = vec2u(first, first + leaves - 1u);
    if (at.x < 0 && at.x != EMPTY_CHILD) { leaf_order[first] = u32(~at.x); }
    if (at.y < 0 && at.y != EMPTY_CHILD) { leaf_order[first + left_leaves] = u32(~at.y); }
    let wide = code == 1u;
    let mark = 1u | mask << MARK_MASK_SHIFT | waiting << MARK_WAITING_SHIFT
        | level << MARK_LEVEL_SHIFT;
    // Before a node in preorder stand its ancestors and the subtrees to its left, one a right turn,
    // which have one inner node less than leaves.
    let place = first + left_turns;
    marks[node] = vec2u(select(0u, mark, wide), place);
    order[place] = select(0u, 1u, wide);
}
