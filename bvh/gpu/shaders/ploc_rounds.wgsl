// Rounds of PLOC within chunks of 256 clusters, one workgroup a chunk: see bvh/gpu/ploc_stages.py.

#import bvh.gpu.build_records
#import bvh.gpu.ploc_stages
#import "bvh/gpu/shaders/ploc_chunks.wgsl"

override RADIUS: u32 = 8u; // at most PAD

@group(0) @binding(0) var<uniform> parameters: PlocParameters;
@group(0) @binding(1) var<storage, read> counts: array<u32>;
@group(0) @binding(2) var<storage, read> clusters: array<Cluster>;
@group(0) @binding(3) var<storage, read_write> next_counts: array<u32>;
@group(0) @binding(4) var<storage, read_write> next_clusters: array<Cluster>;
@group(0) @binding(5) var<storage, read_write> children: array<vec2i>;
@group(0) @binding(6) var<storage, read_write> bounds: array<vec2f>;
@group(0) @binding(7) var<storage, read_write> zero_parent: array<u32>;

const PAD = 16u; // room for the neighbours on either side
const NO_NEIGHBOUR = vec4f(0.0, 0.0, 0.0, BLOCKED);

var<workgroup> lows: array<vec4f, 288>; // w: BLOCKED where it must not merge, else 0
var<workgroup> highs: array<vec3f, 288>;
var<workgroup> links: array<i32, 256>;
var<workgroup> place_heights: array<u32, 256>;
var<workgroup> offsets: array<i32, 256>; // to the nearest; 0: none, or out of the chunk
var<workgroup> stays: array<atomic<u32>, 16>; // one bit a cluster, of this round and the next
var<workgroup> left: u32;

fn rounded(value: f32) -> f32 {
    return bitcast<f32>(bitcast<u32>(value) ^ parameters.zero);
}

fn height_of(place_height: u32) -> u32 {
    return place_height & ((1u << HEIGHT_BITS) - 1u);
}

fn height_limit(count: u32) -> u32 {
    return MAX_DEPTH - (32u - countLeadingZeros(max(count, 1u) - 1u));
}

fn penalty(place_height: u32, limit: u32) -> f32 {
    return select(0.0, BLOCKED, height_of(place_height) >= limit);
}

// Half the area of the common box of a cluster and the one in a slot.
fn distance(low: vec4f, high: vec3f, slot: u32) -> f32 {
    let other = lows[slot];
    let side = min(max(high, highs[slot]) - min(low.xyz, other.xyz), vec3f(LONGEST_SIDE));
    let two = rounded(rounded(side.x * side.y) + rounded(side.y * side.z));
    return max(two + rounded(side.z * side.x), max(low.w, other.w));
}

fn nearest(lane: u32) -> i32 {
    let slot = PAD + lane;
    let low = lows[slot];
    let high = highs[slot];
    var best = BLOCKED;
    var offset = 0;
    let paired = select(-1, 1, lane % 2u == 0u);
    let area = distance(low, high, u32(i32(slot) + paired));
    if (area < best) {
        best = area;
        offset = paired;
    }
    for (var step = 1u; step <= RADIUS; step += 1u) {
        let below = distance(low, high, slot - step);
        if (below < best) {
            best = below;
            offset = -i32(step);
        }
        let above = distance(low, high, slot + step);
        if (above < best) {
            best = above;
            offset = i32(step);
        }
    }
    return offset;
}

fn keep(at: u32, cluster: Cluster, limit: u32) {
    lows[PAD + at] = vec4f(cluster.low, penalty(cluster.place_height, limit));
    highs[PAD + at] = cluster.high;
    links[at] = cluster.link;
    place_heights[at] = cluster.place_height;
}

fn cluster_in(at: u32) -> Cluster {
    return Cluster(lows[PAD + at].xyz, links[at], highs[PAD + at], place_heights[at]);
}

// The cluster united with the one at a place to its right; writes their node.
fn merge(left_one: Cluster, right: u32) -> Cluster {
    let low = min(left_one.low, lows[PAD + right].xyz);
    let high = max(left_one.high, highs[PAD + right]);
    let node = (place_heights[right] >> HEIGHT_BITS) - 1u;
    let pair = vec2i(left_one.link, links[right]);
    write_node(node, pair, low, high);
    if (pair.x == 0 || pair.y == 0) { zero_parent[0] = node; }
    let below = max(height_of(left_one.place_height), height_of(place_heights[right]));
    let place = left_one.place_height >> HEIGHT_BITS << HEIGHT_BITS;
    return Cluster(low, i32(node), high, place | (below + 1u));
}

fn write_node(node: u32, pair: vec2i, low: vec3f, high: vec3f) {
    children[node] = pair;
    bounds[3u * node] = low.xy;
    bounds[3u * node + 1u] = vec2f(low.z, high.x);
    bounds[3u * node + 2u] = high.yz;
}

// The root is node 0: whatever has that number takes the root's.
fn move_root(root: u32) {
    let top = children[root];
    let moved = children[0];
    children[0] = top;
    children[root] = moved;
    for (var k = 0u; k < 3u; k += 1u) {
        let part = bounds[k];
        bounds[k] = bounds[3u * root + k];
        bounds[3u * root + k] = part;
    }
    let parent = select(zero_parent[0], 0u, zero_parent[0] == root);
    let pair = children[parent];
    children[parent] = select(pair, vec2i(i32(root)), pair == vec2i(0));
}

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    scan_counts(lane);
    let total = workgroupUniformLoad(&ends[255]);
    let chunks = (total + CHUNK - 1u) / CHUNK;
    let last = total <= CHUNK;
    var goal = CHUNK / 2u;
    var most_rounds = ROUNDS;
    var halved = CHUNK; // what halving goes down to
    if (last) {
        goal = 1u;
        most_rounds = LAST_ROUNDS;
        halved = 1u;
    } else if (parameters.forced == 1u) {
        halved = 1u << (31u - countLeadingZeros(max(CHUNK / chunks, 1u)));
    }
    if (group.x == 0u && lane == 0u) {
        next_counts[0] = chunks;
        if (total == 0u) {
            write_node(0u, vec2i(EMPTY_CHILD), vec3f(LARGEST), vec3f(-LARGEST));
        }
    }
    for (var chunk = group.x; chunk < chunks; chunk += groups.x) {
        let start = chunk * CHUNK;
        let end = min(start + CHUNK, total);
        // In front of the chunk (lanes below RADIUS) and behind it (as many above).
        var outside_low = NO_NEIGHBOUR;
        var outside_high = vec3f();
        let outside = select(end + lane - RADIUS, start + lane - RADIUS, lane < RADIUS);
        if (lane < 2u * RADIUS && outside < total) {
            let cluster = cluster_at(outside);
            outside_low = vec4f(cluster.low, penalty(cluster.place_height, height_limit(total)));
            outside_high = cluster.high;
        }
        if (lane < RADIUS) {
            lows[PAD - RADIUS + lane] = outside_low;
            highs[PAD - RADIUS + lane] = outside_high;
        } else if (lane < 2u * RADIUS) {
            lows[PAD + end - start + lane - RADIUS] = outside_low;
            highs[PAD + end - start + lane - RADIUS] = outside_high;
        }
        if (lane < end - start) {
            keep(lane, cluster_at(start + lane), height_limit(total));
        }
        if (lane < 16u) { atomicStore(&stays[lane], 0u); }
        if (lane == 0u) { left = end - start; }
        var round = 0u;
        var turn = 0u;
        loop {
            let count = workgroupUniformLoad(&left);
            let searching = count > goal && round < most_rounds;
            if (!searching && count <= halved) { break; }
            let here = i32(lane);
            if (lane < count) {
                var offset = select(-1, 1, lane % 2u == 0u);
                if (searching) { offset = nearest(lane); }
                if (here + offset < 0 || here + offset >= i32(count)) { offset = 0; }
                offsets[lane] = offset;
            }
            if (lane < 8u) { atomicStore(&stays[8u - turn + lane], 0u); }
            workgroupBarrier();
            var kept = lane < count;
            var mine: Cluster;
            if (kept) {
                mine = cluster_in(lane);
                let offset = offsets[lane];
                if (offset != 0 && offsets[here + offset] == -offset) {
                    kept = offset > 0;
                    if (kept) { mine = merge(mine, u32(here + offset)); }
                }
                if (kept) { atomicOr(&stays[turn + lane / 32u], 1u << (lane % 32u)); }
            }
            workgroupBarrier();
            var before = 0u;
            var after = 0u;
            for (var word = 0u; word < 8u; word += 1u) {
                let bits = atomicLoad(&stays[turn + word]);
                after += countOneBits(bits);
                let lower = select(0u, (1u << (lane % 32u)) - 1u, word == lane / 32u);
                before += countOneBits(bits & select(lower, 0xffffffffu, word < lane / 32u));
            }
            if (kept) { keep(before, mine, height_limit(select(total, after, last))); }
            if (lane >= RADIUS && lane < 2u * RADIUS) {
                lows[PAD + after + lane - RADIUS] = outside_low;
                highs[PAD + after + lane - RADIUS] = outside_high;
            }
            if (lane == 0u) { left = after; }
            // Where nothing has merged, nothing will.
            round = select(round + 1u, most_rounds, after == count);
            turn = 8u - turn;
        }
        let count = workgroupUniformLoad(&left);
        if (lane < count) {
            next_clusters[start + lane] = cluster_in(lane);
        }
        if (lane == 0u) { next_counts[1u + chunk] = count; }
        storageBarrier();
        if (last && lane == 0u) {
            if (total > 1u && links[0] > 0) { move_root(u32(links[0])); }
            if (total == 1u && links[0] < 0) {
                write_node(0u, vec2i(links[0], EMPTY_CHILD), lows[PAD].xyz, highs[PAD]);
            }
        }
        workgroupBarrier();
    }
}
