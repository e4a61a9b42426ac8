// What lies below every node of a strip of levels, from the deepest of them up: see
// bvh/gpu/tree_order.py.
//
// A node of the strip's first level and its descendants within the strip are a treelet, a heap of
// at most 2^levels - 1 nodes that 2^(levels - 1) lanes share. Below the strip lie results of an
// earlier dispatch.

#import bvh.gpu.build_records
#import bvh.gpu.tree_order_records

@group(0) @binding(0) var<uniform> parameters: vec4u; // first level, levels (1..8), zero, 0
@group(0) @binding(1) var<storage, read> level_starts: array<u32>;
@group(0) @binding(2) var<storage, read> level_nodes: array<u32>;
@group(0) @binding(3) var<storage, read> children: array<vec2i>;
@group(0) @binding(4) var<storage, read> bounds: array<vec2f>;
@group(0) @binding(5) var<storage, read_write> leaf_counts: array<vec2u>;
@group(0) @binding(6) var<storage, read_write> heights: array<u32>;
@group(0) @binding(7) var<storage, read_write> shares: array<u32>;
@group(0) @binding(8) var<storage, read_write> costs: array<f32>;

#import "bvh/gpu/shaders/node_area.wgsl"

// Leaves, levels, and the least area of wide nodes where it may fill up to one, two, three slots.
struct Subtree {
    leaves: u32,
    height: u32,
    one: f32,
    two: f32,
    three: f32,
}

var<workgroup> nodes: array<i32, 1024>;
var<workgroup> subtrees: array<Subtree, 512>;

fn rounded(value: f32) -> f32 {
    return bitcast<f32>(bitcast<u32>(value) ^ parameters.z);
}

fn outer_subtree(child: i32) -> Subtree {
    return Subtree(select(1u, 0u, child == EMPTY_CHILD), 0u, 0.0, 0.0, 0.0);
}

fn stored_subtree(child: i32) -> Subtree {
    if (child < 0) { return outer_subtree(child); }
    let leaves = leaf_counts[child];
    return Subtree(leaves.x + leaves.y, heights[child], costs[3 * child], costs[3 * child + 1],
        costs[3 * child + 2]);
}

// The node over two subtrees; of equal costs the first counts.
fn join(node: i32, area: f32, left: Subtree, right: Subtree) -> Subtree {
    leaf_counts[node] = vec2u(left.leaves, right.leaves);
    let height = 1u + max(left.height, right.height);
    heights[node] = height;
    var four = left.one + right.three;
    var share_four = 1u;
    if (left.two + right.two < four) {
        four = left.two + right.two;
        share_four = 2u;
    }
    if (left.three + right.one < four) {
        four = left.three + right.one;
        share_four = 3u;
    }
    var three = left.one + right.two;
    var share_three = 1u;
    if (left.two + right.one < three) {
        three = left.two + right.one;
        share_three = 2u;
    }
    let one = area + four;
    if (three >= one) {
        three = one;
        share_three = 0u;
    }
    var two = left.one + right.one;
    var share_two = 1u;
    if (two >= one) {
        two = one;
        share_two = 0u;
    }
    shares[node] = share_four | share_three << 2u | share_two << 4u;
    return Subtree(left.leaves + right.leaves, height, one, two, three);
}

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    let levels = parameters.y;
    let first = level_starts[parameters.x];
    let last = level_starts[parameters.x + 1u];
    let width: u32 = 1u << (levels - 1u);
    let treelets = 256u / width;
    let mine = lane / width;
    let place = lane % width;
    let heap = mine * 4u * width;
    let results = mine * 2u * width;
    for (var at = first + group.x * treelets; at < last; at += groups.x * treelets) {
        if (place == 0u) {
            var root = EMPTY_CHILD;
            if (at + mine < last) { root = i32(level_nodes[at + mine]); }
            nodes[heap + 1u] = root;
        }
        workgroupBarrier();
        for (var k = 0u; k < levels; k += 1u) {
            if (place < 1u << k) {
                let entry = (1u << k) + place;
                let node = nodes[heap + entry];
                var pair = vec2i(EMPTY_CHILD);
                if (node >= 0) {
                    pair = children[node];
                    // Kept here until the way up, which then waits for no memory but this.
                    subtrees[results + entry].one = rounded(half_area(u32(node)));
                }
                nodes[heap + 2u * entry] = pair.x;
                nodes[heap + 2u * entry + 1u] = pair.y;
            }
            workgroupBarrier();
        }
        for (var k = levels; k > 0u; k -= 1u) {
            if (place < 1u << (k - 1u)) {
                let entry = (1u << (k - 1u)) + place;
                let node = nodes[heap + entry];
                var subtree = outer_subtree(node);
                if (node >= 0) {
                    let area = subtrees[results + entry].one;
                    if (k == levels) {
                        subtree = join(node, area, stored_subtree(nodes[heap + 2u * entry]),
                            stored_subtree(nodes[heap + 2u * entry + 1u]));
                    } else {
                        subtree = join(node, area, subtrees[results + 2u * entry],
                            subtrees[results + 2u * entry + 1u]);
                    }
                    if (k == 1u) {
                        costs[3 * node] = subtree.one;
                        costs[3 * node + 1] = subtree.two;
                        costs[3 * node + 2] = subtree.three;
                    }
                }
                subtrees[results + entry] = subtree;
            }
            workgroupBarrier();
        }
    }
}
