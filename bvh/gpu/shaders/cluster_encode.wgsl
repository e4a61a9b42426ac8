// Guest bytes of finished trees: see bvh/gpu/cluster_encode.py.

#import bvh.layout
#import bvh.gpu.build_records
#import bvh.gpu.cluster_records
#import "bvh/gpu/shaders/box.wgsl"
#import "bvh/gpu/shaders/half_bounds.wgsl"
#import "bvh/gpu/shaders/cluster_node.wgsl"
#import "bvh/gpu/shaders/cluster_place.wgsl"

@group(0) @binding(0) var<uniform> parameters: ClusterParameters;
@group(0) @binding(1) var<storage, read> segments: array<ClusterSegment>;
@group(0) @binding(2) var<storage, read> trees: array<ClusterTree>;
@group(0) @binding(3) var<storage, read> nodes: array<ClusterNode>;
@group(0) @binding(4) var<storage, read> leaf_parents: array<u32>;
@group(0) @binding(5) var<storage, read> boxes: array<vec2f>;
@group(0) @binding(6) var<storage, read> leaves: array<vec4u>;
@group(0) @binding(7) var<storage, read_write> words: array<u32>;
@group(0) @binding(8) var<storage, read_write> parents: array<u32>;

struct Slot {
    child: i32,
    units: u32,
    leaves: u32,
    kind: u32, // of node
    box: Box,
}

fn leaf_type(leaf: u32) -> u32 {
    if (parameters.kind == KIND_TLAS) { return NODE_INSTANCE; }
    let at = UNIT_WORDS * leaf + TRIANGLE_PRIMITIVE_1_WORD;
    let second = leaves[at / 4u][at % 4u];
    return select(NODE_TRIANGLE_1, NODE_TRIANGLE_0, second == INVALID_POINTER);
}

fn slot_of(child: i32, root: u32) -> Slot {
    if (child == EMPTY_CHILD) { return Slot(child, 0u, 0u, 0u, empty_box()); }
    if (child < 0) { return Slot(child, 0u, 1u, leaf_type(u32(~child)), box_of(child)); }
    let kind = select(NODE_BOX_FP32, NODE_BOX_FP16, node_size(u32(child), root) == 1u);
    return Slot(child, nodes[child].units.x, nodes[child].leaves, kind, box_of(child));
}

// Slot `k` of the node at word `at`, whose own pointer is `own`; `unit` is where its subtree goes.
fn write_slot(at: u32, k: u32, own: u32, slot: Slot, unit: u32, rank: u32, c: Container) {
    let child = slot.child;
    let box = slot.box;
    var pointer = INVALID_POINTER;
    if (child >= 0) {
        pointer = unit << 3u | slot.kind;
        parents[c.base + unit] = own;
    } else if (child != EMPTY_CHILD) {
        let leaf_at = c.leaf_unit + parameters.leaf_units * rank;
        pointer = leaf_at << 3u | slot.kind;
        parents[c.base + leaf_at] = own;
    }
    words[at + k] = pointer;
    if ((own & 7u) == NODE_BOX_FP32) {
        let to = at + BOX_BOUNDS_WORD + BOX_FP32_CHILD_WORDS * k;
        var low = bitcast<vec3u>(box.low);
        var high = bitcast<vec3u>(box.high);
        if (child == EMPTY_CHILD) {
            low = vec3u(EMPTY_BOUND_FP32);
            high = vec3u(EMPTY_BOUND_FP32);
        }
        words[to] = low.x;
        words[to + 1u] = low.y;
        words[to + 2u] = low.z;
        words[to + 3u] = high.x;
        words[to + 4u] = high.y;
        words[to + 5u] = high.z;
        words[at + BOX_FP32_TAIL_WORD + k] = 0u;
    } else {
        let to = at + BOX_BOUNDS_WORD + BOX_FP16_CHILD_WORDS * k;
        var packed = vec3u(EMPTY_BOUND_FP16);
        if (child != EMPTY_CHILD) {
            packed = vec3u(half_down(box.low.x) | half_down(box.low.y) << 16u,
                half_down(box.low.z) | half_up(box.high.x) << 16u,
                half_up(box.high.y) | half_up(box.high.z) << 16u);
        }
        words[to] = packed.x;
        words[to + 1u] = packed.y;
        words[to + 2u] = packed.z;
    }
}

fn write_node(node: u32, place: Place, c: Container) {
    let size = node_size(node, c.root);
    let own = place.unit << 3u | select(NODE_BOX_FP32, NODE_BOX_FP16, size == 1u);
    let children = slots_of(nodes[node].left, nodes[node].right, nodes[node].shares);
    // Everything is read before the first word is written, so that reads do not wait for each other.
    let a = slot_of(children.x, c.root);
    let b = slot_of(children.y, c.root);
    let d = slot_of(children.z, c.root);
    let e = slot_of(children.w, c.root);
    let at = UNIT_WORDS * (c.base + place.unit);
    var unit = place.unit + size;
    var rank = place.leaf;
    write_slot(at, 0u, own, a, unit, rank, c);
    unit += a.units;
    rank += a.leaves;
    write_slot(at, 1u, own, b, unit, rank, c);
    unit += b.units;
    rank += b.leaves;
    write_slot(at, 2u, own, d, unit, rank, c);
    unit += d.units;
    rank += d.leaves;
    write_slot(at, 3u, own, e, unit, rank, c);
    if (node == c.root) { parents[c.base + place.unit] = INVALID_POINTER; }
    if (size == 2u) { parents[c.base + place.unit + 1u] = INVALID_POINTER; }
}

fn write_four(to: u32, values: vec4u) {
    words[to] = values.x;
    words[to + 1u] = values.y;
    words[to + 2u] = values.z;
    words[to + 3u] = values.w;
}

fn write_leaf(leaf: u32, tree: u32, c: Container) {
    let rank = leaf_rank(leaf, c.root);
    let to = UNIT_WORDS * (c.base + c.leaf_unit + parameters.leaf_units * rank);
    // A unit at a time is read before it is written.
    for (var unit = 0u; unit < parameters.leaf_units; unit += 1u) {
        let source = UNIT_WORDS / 4u * (parameters.leaf_units * leaf + unit);
        let x = leaves[source];
        let y = leaves[source + 1u];
        let z = leaves[source + 2u];
        var w = leaves[source + 3u];
        if (parameters.kind != KIND_TLAS) {
            w[TRIANGLE_GEOMETRY_WORD - 12u] -= trees[tree].first_geometry;
        }
        write_four(to + UNIT_WORDS * unit, x);
        write_four(to + UNIT_WORDS * unit + 4u, y);
        write_four(to + UNIT_WORDS * unit + 8u, z);
        write_four(to + UNIT_WORDS * unit + 12u, w);
        if (unit > 0u) { parents[to / UNIT_WORDS + unit] = INVALID_POINTER; }
    }
}

fn write_header(tree: u32, c: Container) {
    let at = UNIT_WORDS * c.base;
    let count = nodes[c.root].counts.x;
    let half_count = 2u * count + ROOT_UNIT - c.leaf_unit;
    let found = nodes[c.root].leaves;
    let empty = found == 0u;
    words[at] = MAGIC;
    words[at + 1u] = VERSION;
    words[at + 2u] = parameters.kind;
    words[at + 3u] = ROOT_POINTER;
    words[at + 4u] = c.size;
    words[at + 5u] = c.leaf_unit;
    words[at + 6u] = count - half_count;
    words[at + 7u] = half_count;
    words[at + 8u] = found;
    words[at + 9u] = select(trees[tree].primitives, found, parameters.kind == KIND_TLAS);
    words[at + 10u] = trees[tree].geometries;
    words[at + 11u] = nodes[c.root].depth & 0xffu;
    for (var axis = 0u; axis < 3u; axis += 1u) {
        let low = bitcast<u32>(nodes[c.root].low[axis]);
        let high = bitcast<u32>(nodes[c.root].high[axis]);
        words[at + 12u + axis] = select(low, EMPTY_BOUND_FP32, empty);
        words[at + 15u + axis] = select(high, EMPTY_BOUND_FP32, empty);
    }
    words[at + 18u] = 0u;
    words[at + 19u] = 0u;
    words[at + 20u] = c.base >> 2u; // 256 bytes
    words[at + 21u] = DESCRIPTOR_WORD_1;
    words[at + 22u] = c.size - 1u;
    words[at + 23u] = DESCRIPTOR_WORD_3;
    for (var k = 24u; k < 32u; k += 1u) { words[at + k] = 0u; }
    parents[c.base] = INVALID_POINTER;
    parents[c.base + 1u] = INVALID_POINTER;
    let aligned = (c.size + parameters.align_units - 1u) / parameters.align_units;
    for (var unit = c.size; unit < aligned * parameters.align_units; unit += 1u) {
        for (var k = 0u; k < UNIT_WORDS; k += 1u) {
            words[UNIT_WORDS * (c.base + unit) + k] = 0u;
        }
        parents[c.base + unit] = INVALID_POINTER;
    }
}

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    let number = group.y * groups.x + group.x;
    let segment = number / parameters.parts;
    let begin = (number % parameters.parts) * 256u + lane;
    let one_tree = parameters.kind == KIND_TLAS;
    if (segment >= parameters.segments + parameters.top) { return; }
    var tree = segment;
    var root_segment = segment;
    if (one_tree) {
        tree = 0u;
        root_segment = parameters.top * parameters.segments;
    }
    let c = container(tree, segments[root_segment].root);
    let aligned = (c.size + parameters.align_units - 1u) / parameters.align_units;
    if (c.base + aligned * parameters.align_units > trees[tree].limit_unit) { return; }
    let base = segments[segment].first + segment;
    let created = segments[segment].created;
    let first = segments[segment].first;
    let count = select(segments[segment].count, 0u, segment == parameters.segments);
    // Nodes, then leaves, so that no lane has one of each to do before others have one.
    for (var i = begin; i < created + count; i += 256u * parameters.parts) {
        if (i < created) {
            let place = place_of(base + i, c);
            if (place.wide) { write_node(base + i, place, c); }
        } else {
            write_leaf(first + i - created, tree, c);
        }
    }
    if (begin == 0u && segment == root_segment) { write_header(tree, c); }
}
