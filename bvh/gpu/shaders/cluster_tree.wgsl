// One workgroup merges neighbours in Morton order into trees: see bvh/gpu/cluster_tree.py.

#import bvh.gpu.build_records
#import bvh.gpu.cluster_records
#import "bvh/gpu/shaders/box.wgsl"
#import "bvh/gpu/shaders/half_bounds.wgsl"
#import "bvh/gpu/shaders/cluster_node.wgsl"
#import $lanes

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
var<workgroup> partial_sums: array<u32, LANES>;
var<workgroup> row_sums: array<u32, LANES / 16u>;
var<workgroup> deepest: atomic<u32>;

const PER_LANE = SEGMENT / LANES;

fn shared_box(i: u32) -> Box {
    return make_box(cluster_boxes[3u * i], cluster_boxes[3u * i + 1u], cluster_boxes[3u * i + 2u]);
}

fn share_box(i: u32, box: Box) {
    cluster_boxes[3u * i] = box.low.xy;
    cluster_boxes[3u * i + 1u] = vec2f(box.low.z, box.high.x);
    cluster_boxes[3u * i + 2u] = box.high.yz;
}

// (sum of the values of lanes before this one, of all). Every lane calls it, and passes a barrier
// before it does so again.
fn exclusive_sum(lane: u32, value: u32) -> vec2u {
    partial_sums[lane] = value;
    workgroupBarrier();
    if (lane < LANES / 16u) {
        var sum = 0u;
        for (var i = 0u; i < 16u; i += 1u) { sum += partial_sums[16u * lane + i]; }
        row_sums[lane] = sum;
    }
    workgroupBarrier();
    var before = 0u;
    var all = 0u;
    for (var i = 0u; i < LANES / 16u; i += 1u) {
        if (i < lane / 16u) { before += row_sums[i]; }
        all += row_sums[i];
    }
    for (var i = lane & ~15u; i < lane; i += 1u) { before += partial_sums[i]; }
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
        let last = min(PER_LANE * (lane + 1u), segments[segment].count);
        for (var i = PER_LANE * lane; i < last; i += 1u) {
            clusters[i] = ~i32(order[segments[segment].first + i]);
            own += 1u;
        }
    } else {
        let last = min(PER_LANE * (lane + 1u), parameters.segments);
        for (var k = PER_LANE * lane; k < last; k += 1u) { own += segments[k].roots; }
    }
    let place = exclusive_sum(lane, own);
    if (parameters.top == 1u) {
        var at = place.x;
        let last = min(PER_LANE * (lane + 1u), parameters.segments);
        for (var k = PER_LANE * lane; k < last; k += 1u) {
            for (var i = 0u; i < segments[k].roots; i += 1u) {
                clusters[at] = roots[segments[k].first + i];
                at += 1u;
            }
            atomicMax(&deepest, segments[k].levels);
        }
    }
    workgroupBarrier();
    for (var i = lane; i < place.y; i += LANES) { share_box(i, box_of(clusters[i])); }
    return place.y;
}

@compute @workgroup_size(LANES)
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
    var count = load(segment, lane);
    workgroupBarrier();
    var levels = atomicLoad(&deepest);
    var created = 0u;
    loop {
        if (count <= parameters.roots) { break; }
        // Halving the number of clusters needs the fewest levels; from here on nothing else fits.
        let hurry = levels + 1u + ceil_log2(count) > parameters.max_levels;
        let last = min(PER_LANE * (lane + 1u), count);
        for (var i = PER_LANE * lane; i < last; i += 1u) {
            var other = select(i, i ^ 1u, (i ^ 1u) < count);
            if (!hurry) { other = nearest(i, count); }
            best[i] = other;
        }
        workgroupBarrier();
        var numbers = 0u; // nodes to make, and clusters that stay in the upper half
        for (var i = PER_LANE * lane; i < last; i += 1u) {
            let mutual = best[i] != i && best[best[i]] == i;
            numbers += select(0u, 1u, mutual && i < best[i]);
            numbers += select(0u, 1u << 16u, !mutual || i < best[i]);
        }
        let place = exclusive_sum(lane, numbers);
        var id = base + created + (place.x & 0xffffu);
        var kept = 0u;
        var cluster: array<i32, PER_LANE>;
        var box: array<Box, PER_LANE>;
        for (var i = PER_LANE * lane; i < last; i += 1u) {
            let other = best[i];
            let mutual = other != i && best[other] == i;
            if (mutual && other < i) { continue; }
            cluster[kept] = clusters[i];
            box[kept] = shared_box(i);
            if (mutual) {
                box[kept] = unite(box[kept], shared_box(other));
                nodes[id] = merge(cluster[kept], clusters[other], box[kept]);
                set_parent(cluster[kept], id);
                set_parent(clusters[other], id);
                cluster[kept] = i32(id);
                id += 1u;
            }
            kept += 1u;
        }
        // New nodes are read by other lanes from the next round on.
        storageBarrier();
        for (var k = 0u; k < kept; k += 1u) {
            clusters[(place.x >> 16u) + k] = cluster[k];
            share_box((place.x >> 16u) + k, box[k]);
        }
        created += place.y & 0xffffu;
        count = place.y >> 16u;
        levels += 1u;
        workgroupBarrier();
    }
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
    for (var i = lane; i < min(count, parameters.roots); i += LANES) { roots[begin + i] = clusters[i]; }
    if (lane == 0u) {
        segments[segment].root = select(0u, u32(clusters[0]), created + count > 0u);
        segments[segment].roots = count;
        segments[segment].levels = levels;
        segments[segment].created = created;
    }
}
