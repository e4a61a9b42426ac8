// One workgroup merges neighbours in Morton order into trees: see bvh/gpu/cluster_tree.py.

#import bvh.gpu.build_records
#import bvh.gpu.cluster_records
#import "bvh/gpu/shaders/box.wgsl"
#import "bvh/gpu/shaders/half_bounds.wgsl"
#import "bvh/gpu/shaders/cluster_node.wgsl"

@group(0) @binding(0) var<uniform> parameters: ClusterParameters;
@group(0) @binding(1) var<storage, read> order: array<u32>;
@group(0) @binding(2) var<storage, read> boxes: array<vec2f>;
@group(0) @binding(3) var<storage, read_write> segments: array<ClusterSegment>;
@group(0) @binding(4) var<storage, read_write> nodes: array<ClusterNode>;
@group(0) @binding(5) var<storage, read_write> leaf_parents: array<u32>;
@group(0) @binding(6) var<storage, read_write> roots: array<i32>;

var<workgroup> clusters: array<i32, 512>;
var<workgroup> cluster_boxes: array<vec2f, 1536>;
var<workgroup> best: array<u32, 512>;
var<workgroup> partial_sums: array<u32, 256>;
var<workgroup> row_sums: array<u32, 16>;
var<workgroup> left_over: u32; // clusters
var<workgroup> deepest: atomic<u32>;

fn shared_box(i: u32) -> Box {
    return make_box(cluster_boxes[3u * i], cluster_boxes[3u * i + 1u], cluster_boxes[3u * i + 2u]);
}

fn share_box(i: u32, box: Box) {
    cluster_boxes[3u * i] = box.low.xy;
    cluster_boxes[3u * i + 1u] = vec2f(box.low.z, box.high.x);
    cluster_boxes[3u * i + 2u] = box.high.yz;
}

// (sum of the values of lanes before this one, of all). Every lane calls it.
fn exclusive_sum(lane: u32, value: u32) -> vec2u {
    partial_sums[lane] = value;
    workgroupBarrier();
    if (lane < 16u) {
        var sum = 0u;
        for (var i = 0u; i < 16u; i += 1u) { sum += partial_sums[16u * lane + i]; }
        row_sums[lane] = sum;
    }
    workgroupBarrier();
    var before = 0u;
    var all = 0u;
    for (var i = 0u; i < 16u; i += 1u) {
        if (i < lane / 16u) { before += row_sums[i]; }
        all += row_sums[i];
    }
    for (var i = lane & ~15u; i < lane; i += 1u) { before += partial_sums[i]; }
    workgroupBarrier();
    return vec2u(before, all);
}

fn ceil_log2(value: u32) -> u32 {
    return 32u - countLeadingZeros(max(value, 1u) - 1u);
}

// The neighbour whose common box is smallest; of equals the one whose place differs least in its
// high bits, which pairs up equal boxes.
fn nearest(i: u32, count: u32) -> u32 {
    let mine = shared_box(i);
    var found = i;
    var least = 0xffffffffu;
    let first = i - min(i, parameters.radius);
    let last = min(i + parameters.radius, count - 1u);
    for (var j = first; j <= last; j += 1u) {
        if (j == i) { continue; }
        let size = bitcast<u32>(area(unite(mine, shared_box(j))));
        if (size < least || (size == least && (i ^ j) < (i ^ found))) {
            least = size;
            found = j;
        }
    }
    return found;
}

fn set_parent(child: i32, parent: u32) {
    if (child >= 0) { nodes[child].parent = parent; }
    if (child < 0) { leaf_parents[~child] = parent; }
}

// The clusters to begin with; their number.
fn load(segment: u32, lane: u32) -> u32 {
    if (lane == 0u) { atomicStore(&deepest, 0u); }
    var own = 0u;
    if (parameters.top == 0u) {
        for (var i = 2u * lane; i < 2u * lane + 2u; i += 1u) {
            if (i >= segments[segment].count) { break; }
            clusters[i] = ~i32(order[segments[segment].first + i]);
            own += 1u;
        }
    } else {
        for (var k = 2u * lane; k < 2u * lane + 2u; k += 1u) {
            if (k < parameters.segments) { own += segments[k].roots; }
        }
    }
    let place = exclusive_sum(lane, own);
    if (parameters.top == 1u) {
        var at = place.x;
        for (var k = 2u * lane; k < 2u * lane + 2u; k += 1u) {
            if (k >= parameters.segments) { break; }
            for (var i = 0u; i < segments[k].roots; i += 1u) {
                clusters[at] = roots[segments[k].first + i];
                at += 1u;
            }
            atomicMax(&deepest, segments[k].levels);
        }
    }
    workgroupBarrier();
    for (var i = lane; i < place.y; i += 256u) { share_box(i, box_of(clusters[i])); }
    return place.y;
}

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    let number = group.y * groups.x + group.x;
    if (parameters.top == 0u && number >= parameters.segments) { return; }
    let segment = select(number, parameters.segments, parameters.top == 1u);
    let begin = segments[segment].first;
    let base = begin + segment;
    let given = load(segment, lane);
    if (lane == 0u) { left_over = given; }
    workgroupBarrier();
    var levels = atomicLoad(&deepest);
    var created = 0u;
    loop {
        let count = workgroupUniformLoad(&left_over);
        if (count <= parameters.roots) { break; }
        // Halving the number of clusters needs the fewest levels; from here on nothing else fits.
        let hurry = levels + 1u + ceil_log2(count) > parameters.max_levels;
        for (var i = 2u * lane; i < min(2u * lane + 2u, count); i += 1u) {
            var other = select(i, i ^ 1u, (i ^ 1u) < count);
            if (!hurry) { other = nearest(i, count); }
            best[i] = other;
        }
        workgroupBarrier();
        var leads = vec2u(0u);
        var stays = vec2u(0u);
        for (var k = 0u; k < 2u; k += 1u) {
            let i = 2u * lane + k;
            if (i >= count) { break; }
            let mutual = best[i] != i && best[best[i]] == i;
            leads[k] = select(0u, 1u, mutual && i < best[i]);
            stays[k] = select(0u, 1u, !mutual || i < best[i]);
        }
        let place = exclusive_sum(lane, (leads.x + leads.y) | (stays.x + stays.y) << 16u);
        var id = base + created + (place.x & 0xffffu);
        var cluster = vec2i(0);
        var box: array<Box, 2>;
        for (var k = 0u; k < 2u; k += 1u) {
            let i = 2u * lane + k;
            if (stays[k] == 0u) { continue; }
            cluster[k] = clusters[i];
            box[k] = shared_box(i);
            if (leads[k] == 1u) {
                let other = clusters[best[i]];
                box[k] = unite(box[k], shared_box(best[i]));
                nodes[id] = merge(cluster[k], other, box[k]);
                set_parent(cluster[k], id);
                set_parent(other, id);
                cluster[k] = i32(id);
                id += 1u;
            }
        }
        workgroupBarrier();
        var at = place.x >> 16u;
        for (var k = 0u; k < 2u; k += 1u) {
            if (stays[k] == 0u) { continue; }
            clusters[at] = cluster[k];
            share_box(at, box[k]);
            at += 1u;
        }
        created += place.y & 0xffffu;
        levels += 1u;
        if (lane == 0u) { left_over = place.y >> 16u; }
        storageBarrier();
        workgroupBarrier();
    }
    let count = workgroupUniformLoad(&left_over);
    if (lane == 0u && parameters.finish == 1u && created == 0u) {
        var only = EMPTY_CHILD;
        var box = empty_box();
        if (count == 1u) {
            only = clusters[0];
            box = shared_box(0u);
        }
        if (only < 0) {
            nodes[base] = merge(only, EMPTY_CHILD, box);
            if (count == 1u) { set_parent(only, base); }
            clusters[0] = i32(base);
            created = 1u;
            levels += 1u;
        }
    }
    workgroupBarrier();
    for (var i = lane; i < min(count, parameters.roots); i += 256u) { roots[begin + i] = clusters[i]; }
    if (lane == 0u) {
        segments[segment].root = select(0u, u32(clusters[0]), created + count > 0u);
        segments[segment].roots = count;
        segments[segment].levels = levels;
        segments[segment].created = created;
    }
}
