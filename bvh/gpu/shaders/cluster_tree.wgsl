// One workgroup merges neighbours in Morton order into trees: see bvh/gpu/cluster_tree.py.

#import bvh.gpu.build_records
#import bvh.gpu.cluster_records
#import "bvh/gpu/shaders/box.wgsl"
#import "bvh/gpu/shaders/half_bounds.wgsl"
#import "bvh/gpu/shaders/cluster_node.wgsl"
#import "bvh/gpu/shaders/cluster_sweep.wgsl"
#import $lanes

@group(0) @binding(0) var<uniform> parameters: ClusterParameters;
@group(0) @binding(1) var<storage, read> order: array<u32>;
@group(0) @binding(2) var<storage, read> boxes: array<vec2f>;
@group(0) @binding(3) var<storage, read_write> segments: array<ClusterSegment>;
@group(0) @binding(4) var<storage, read_write> nodes: array<ClusterNode>;
@group(0) @binding(5) var<storage, read_write> leaf_parents: array<u32>;
@group(0) @binding(6) var<storage, read_write> roots: array<i32>;

// During the rounds, by cluster: low corner and id; high corner and SLOT_BITS of slot below leaves.
// In the sweeps, by slot: a Part (cost and stack; counts and depth), then units.
var<workgroup> first_half: array<vec4u, 512>;
var<workgroup> second_half: array<vec4u, 512>;
var<workgroup> best: array<u32, 512>;
// By node: its children's slots, then shares.
var<workgroup> joined: array<u32, 512>;
var<workgroup> areas: array<f32, 512>;
// Bits of clusters, for even and for odd rounds: 512 that are gone, 512 that are merged.
var<workgroup> marks: array<atomic<u32>, 64>;
var<workgroup> round_ends: array<u32, 64>;
var<workgroup> deepest: atomic<u32>;

const PER_LANE = SEGMENT / LANES;
const SLOT_BITS = 9u;
const SLOT_MASK = (1u << SLOT_BITS) - 1u;
const MERGED = 16u; // words of `marks` from those that are gone

struct Choice {
    least: u32,
    found: u32,
}

struct Clusters {
    count: u32,
    ids: array<i32, PER_LANE>, // this lane's of those to begin with
    places: array<u32, PER_LANE>, // at least SEGMENT where it has none
}

fn share_cluster(at: u32, box: Box, id: i32, slot_and_leaves: u32) {
    first_half[at] = vec4u(bitcast<vec3u>(box.low), bitcast<u32>(id));
    second_half[at] = vec4u(bitcast<vec3u>(box.high), slot_and_leaves);
}

fn shared_box(at: u32) -> Box {
    return Box(bitcast<vec3f>(first_half[at].xyz), bitcast<vec3f>(second_half[at].xyz));
}

fn ceil_log2(value: u32) -> u32 {
    return 32u - countLeadingZeros(max(value, 1u) - 1u);
}

fn mark(first: u32, at: u32) {
    atomicOr(&marks[first + at / 32u], 1u << (at & 31u));
}

fn bits_before(first: u32, at: u32) -> u32 {
    return countOneBits(atomicLoad(&marks[first + at / 32u]) & ((1u << (at & 31u)) - 1u));
}

fn better(choice: Choice, mine: Box, i: u32, j: u32, count: u32) -> Choice {
    let size = bitcast<u32>(area(unite(mine, shared_box(min(j, count - 1u)))));
    let smaller = size < choice.least
        || (size == choice.least && (i ^ j) < (i ^ choice.found));
    if (j < count && smaller) { return Choice(size, j); }
    return choice;
}

// The neighbour whose common box is smallest; of equals the one whose place differs least in its
// high bits, which pairs up equal boxes.
fn nearest(i: u32, count: u32) -> u32 {
    let mine = shared_box(i);
    var choice = Choice(0xffffffffu, i);
    // Four steps at a time, so that their loads overlap. Places below 0 wrap and are past the end.
    for (var step = 1u; step <= parameters.radius; step += 4u) {
        choice = better(choice, mine, i, i - step, count);
        choice = better(choice, mine, i, i + step, count);
        let left = parameters.radius - step;
        let second = select(SEGMENT, step + 1u, left >= 1u);
        choice = better(choice, mine, i, i - second, count);
        choice = better(choice, mine, i, i + second, count);
        let third = select(SEGMENT, step + 2u, left >= 2u);
        choice = better(choice, mine, i, i - third, count);
        choice = better(choice, mine, i, i + third, count);
        let fourth = select(SEGMENT, step + 3u, left >= 3u);
        choice = better(choice, mine, i, i - fourth, count);
        choice = better(choice, mine, i, i + fourth, count);
    }
    return choice.found;
}

fn set_parent(child: i32, parent: u32) {
    if (child >= 0) { nodes[child].parent = parent; }
    if (child < 0) { leaf_parents[~child] = parent; }
}

// The clusters to begin with, each in a slot of its own. Uses the marks of odd rounds.
fn load(segment: u32, lane: u32) -> Clusters {
    var mine: Clusters;
    if (lane < 64u) { atomicStore(&marks[lane], 0u); }
    if (lane == 0u) { atomicStore(&deepest, 0u); }
    if (parameters.top == 0u) {
        mine.count = segments[segment].count;
        for (var k = 0u; k < PER_LANE; k += 1u) {
            mine.places[k] = lane + k * LANES;
            if (mine.places[k] >= mine.count) {
                mine.places[k] = SEGMENT;
                continue;
            }
            mine.ids[k] = ~i32(order[segments[segment].first + mine.places[k]]);
            share_cluster(mine.places[k], box_of(mine.ids[k]), mine.ids[k],
                mine.places[k] | 1u << SLOT_BITS);
        }
        workgroupBarrier();
        return mine;
    }
    workgroupBarrier();
    // Every segment has left up to so many.
    let most: u32 = parameters.roots_below;
    for (var k = 0u; k < PER_LANE; k += 1u) {
        let at = lane + k * LANES;
        let below = at / most;
        mine.places[k] = SEGMENT;
        if (below < parameters.segments && at % most < segments[below].roots) {
            mine.ids[k] = roots[segments[below].first + at % most];
            mine.places[k] = at;
            mark(32u, at);
            atomicMax(&deepest, segments[below].levels);
        }
    }
    workgroupBarrier();
    var before = array<u32, PER_LANE>();
    for (var word = 0u; word < SEGMENT / 32u; word += 1u) {
        let bits = countOneBits(atomicLoad(&marks[32u + word]));
        mine.count += bits;
        for (var k = 0u; k < PER_LANE; k += 1u) {
            before[k] += select(0u, bits, word < mine.places[k] / 32u);
        }
    }
    for (var k = 0u; k < PER_LANE; k += 1u) {
        if (mine.places[k] >= SEGMENT) { continue; }
        let place = before[k] + bits_before(32u, mine.places[k]);
        let id = mine.ids[k];
        mine.places[k] = place;
        var leaves = 1u;
        if (id >= 0) { leaves = nodes[id].leaves; }
        share_cluster(place, box_of(id), id, place | leaves << SLOT_BITS);
    }
    workgroupBarrier();
    return mine;
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
    let mine = load(segment, lane);
    var count = mine.count;
    var levels = atomicLoad(&deepest);
    var created = 0u;
    var rounds = 0u;
    loop {
        if (count <= parameters.roots) { break; }
        // Halving the number of clusters needs the fewest levels; from here on nothing else fits.
        let hurry = levels + 1u + ceil_log2(count) > parameters.max_levels;
        for (var i = lane; i < count; i += LANES) {
            var other = select(i, i ^ 1u, (i ^ 1u) < count);
            if (!hurry) { other = nearest(i, count); }
            best[i] = other;
        }
        workgroupBarrier();
        let marks_now = 32u * (rounds & 1u);
        if (lane < 32u) { atomicStore(&marks[(marks_now ^ 32u) + lane], 0u); }
        // Of each of this lane's clusters, what stays of it, and whom it takes in.
        var low: array<vec4u, PER_LANE>;
        var high: array<vec4u, PER_LANE>;
        var taken: array<vec2u, PER_LANE>; // id, slot
        var stays: array<bool, PER_LANE>;
        var merges: array<bool, PER_LANE>;
        for (var k = 0u; k < PER_LANE; k += 1u) {
            let i = lane + k * LANES;
            stays[k] = false;
            if (i >= count) { continue; }
            let other = best[i];
            let mutual = other != i && best[other] == i;
            stays[k] = !mutual || i < other;
            merges[k] = mutual && i < other;
            if (mutual) { mark(marks_now + select(0u, MERGED, merges[k]), i); }
            if (!stays[k]) { continue; }
            low[k] = first_half[i];
            high[k] = second_half[i];
            if (merges[k]) {
                let box = unite(shared_box(i), shared_box(other));
                taken[k] = vec2u(first_half[other].w, second_half[other].w & SLOT_MASK);
                let leaves = second_half[other].w >> SLOT_BITS << SLOT_BITS;
                low[k] = vec4u(bitcast<vec3u>(box.low), low[k].w);
                high[k] = vec4u(bitcast<vec3u>(box.high), high[k].w + leaves);
            }
        }
        workgroupBarrier();
        var all = vec2u(0u); // gone, merged
        var before = array<vec2u, PER_LANE>();
        for (var word = 0u; 32u * word < count; word += 1u) {
            let bits = countOneBits(vec2u(atomicLoad(&marks[marks_now + word]),
                atomicLoad(&marks[marks_now + MERGED + word])));
            all += bits;
            for (var k = 0u; k < PER_LANE; k += 1u) {
                before[k] += select(vec2u(0u), bits, word < (lane + k * LANES) / 32u);
            }
        }
        for (var k = 0u; k < PER_LANE; k += 1u) {
            let i = lane + k * LANES;
            if (!stays[k]) { continue; }
            if (merges[k]) {
                let node = created + before[k].y + bits_before(marks_now + MERGED, i);
                let id = base + node;
                let box = Box(bitcast<vec3f>(low[k].xyz), bitcast<vec3f>(high[k].xyz));
                let left = bitcast<i32>(low[k].w);
                let right = bitcast<i32>(taken[k].x);
                nodes[id].low = box.low;
                nodes[id].left = left;
                nodes[id].high = box.high;
                nodes[id].right = right;
                nodes[id].leaves = high[k].w >> SLOT_BITS;
                set_parent(left, id);
                set_parent(right, id);
                joined[node] = (high[k].w & SLOT_MASK) | taken[k].y << SLOT_BITS;
                areas[node] = area(box);
                low[k].w = id;
            }
            let place = i - before[k].x - bits_before(marks_now, i);
            first_half[place] = low[k];
            second_half[place] = high[k];
        }
        count -= all.x;
        created += all.y;
        if (lane == 0u) { round_ends[rounds] = created; }
        rounds += 1u;
        levels += 1u;
        workgroupBarrier();
    }
    // A tree of one leaf or none gets a root with an EMPTY child.
    let alone = parameters.finish == 1u && created == 0u
        && (count == 0u || bitcast<i32>(first_half[0].w) < 0);
    if (lane == 0u) {
        var root = 0u;
        if (count > 0u) { root = first_half[0].w; }
        if (alone) {
            var box = empty_box();
            var child = EMPTY_CHILD;
            if (count > 0u) {
                box = shared_box(0u);
                child = bitcast<i32>(root);
                leaf_parents[~child] = base;
            }
            nodes[base].low = box.low;
            nodes[base].left = child;
            nodes[base].high = box.high;
            nodes[base].right = EMPTY_CHILD;
            nodes[base].leaves = count;
            joined[0] = 1u << SLOT_BITS;
            areas[0] = area(box);
            round_ends[0] = 1u;
            root = base;
        }
        segments[segment].root = root;
        segments[segment].roots = count;
        segments[segment].levels = levels + u32(alone);
        segments[segment].created = created + u32(alone);
    }
    for (var i = lane; i < count; i += LANES) {
        let id = select(bitcast<i32>(first_half[i].w), i32(base), alone);
        roots[begin + i] = id;
        if (id >= 0) { nodes[id].parent = ROOT_PARENT; }
    }
    if (lane == 0u && alone) { nodes[base].parent = ROOT_PARENT; }
    created += u32(alone);
    rounds += u32(alone);
    workgroupBarrier();
    sweep_cuts(lane, base, rounds, mine);
    if (parameters.node_format != 0u) { sweep_units(lane, base, rounds, created, mine); }
}
