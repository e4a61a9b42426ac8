// Rounds of PLOC within chunks of 256 clusters, one workgroup a chunk: see bvh/gpu/ploc_stages.py.

#import bvh.gpu.build_records
#import bvh.gpu.ploc_stages
#import "bvh/gpu/shaders/box.wgsl"

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

var<workgroup> ends: array<u32, 256>; // clusters up to the end of each lane's share of `counts`
var<workgroup> lows: array<vec4f, 288>; // w: BLOCKED where it must not merge, else 0
var<workgroup> highs: array<vec3f, 288>;
var<workgroup> refs: array<i32, 256>;
var<workgroup> place_heights: array<u32, 256>;
var<workgroup> offsets: array<i32, 256>; // to the nearest; 0: none, or out of the chunk
var<workgroup> stays: array<atomic<u32>, 8>; // one bit a cluster
var<workgroup> left: u32;

fn rounded(value: f32) -> f32 {
    return bitcast<f32>(bitcast<u32>(value) ^ parameters.zero);
}

fn share() -> u32 {
    return (counts[0] + 255u) / 256u;
}

// Inclusive scan over the lanes' shares of `counts`.
fn scan_counts(lane: u32) {
    if (counts[0] <= 1u) {
        ends[lane] = select(0u, counts[1], counts[0] == 1u);
        workgroupBarrier();
        return;
    }
    var sum = 0u;
    for (var k = lane * share(); k < min((lane + 1u) * share(), counts[0]); k += 1u) {
        sum += counts[1u + k];
    }
    ends[lane] = sum;
    workgroupBarrier();
    for (var reach = 1u; reach < 256u; reach *= 2u) {
        var before = 0u;
        if (lane >= reach) { before = ends[lane - reach]; }
        workgroupBarrier();
        ends[lane] += before;
        workgroupBarrier();
    }
}

// The cluster at a place counted over all chunks; there are more than `place`.
fn cluster_at(place: u32) -> Cluster {
    var owner = 0u; // the first lane whose share ends behind it
    for (var step = 128u; step > 0u; step /= 2u) {
        if (ends[owner + step - 1u] <= place) { owner += step; }
    }
    var within = place;
    if (owner > 0u) { within -= ends[owner - 1u]; }
    var chunk = owner * share();
    while (within >= counts[1u + chunk]) {
        within -= counts[1u + chunk];
        chunk += 1u;
    }
    return clusters[chunk * CHUNK + within];
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

fn nearest(lane: u32, penalised: f32) -> i32 {
    let slot = PAD + lane;
    let low = vec4f(lows[slot].xyz, penalised);
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
        }
        if (lane < end - start) {
            let cluster = cluster_at(start + lane);
            lows[PAD + lane] = vec4f(cluster.low, 0.0);
            highs[PAD + lane] = cluster.high;
            refs[lane] = cluster.link;
            place_heights[lane] = cluster.place_height;
        }
        if (lane == 0u) { left = end - start; }
        var round = 0u;
        loop {
            let count = workgroupUniformLoad(&left);
            let searching = count > goal && round < most_rounds;
            if (!searching && count <= halved) { break; }
            let limit = height_limit(select(total, count, last));
            if (lane < 8u) { atomicStore(&stays[lane], 0u); }
            if (lane < count) {
                lows[PAD + lane].w = penalty(place_heights[lane], limit);
            }
            if (lane >= RADIUS && lane < 2u * RADIUS) {
                lows[PAD + count + lane - RADIUS] = outside_low;
                highs[PAD + count + lane - RADIUS] = outside_high;
            }
            workgroupBarrier();
            let here = i32(lane);
            if (lane < count) {
                var offset = select(-1, 1, lane % 2u == 0u);
                if (searching) { offset = nearest(lane, lows[PAD + lane].w); }
                if (here + offset < 0 || here + offset >= i32(count)) { offset = 0; }
                offsets[lane] = offset;
            }
            workgroupBarrier();
            var kept = lane < count;
            var low = vec3f();
            var high = vec3f();
            var link = 0;
            var place_height = 0u;
            if (kept) {
                low = lows[PAD + lane].xyz;
                high = highs[PAD + lane];
                link = refs[lane];
                place_height = place_heights[lane];
                let offset = offsets[lane];
                if (offset != 0 && offsets[here + offset] == -offset) {
                    kept = offset > 0;
                    if (kept) {
                        let other = u32(here + offset);
                        low = min(low, lows[PAD + other].xyz);
                        high = max(high, highs[PAD + other]);
                        let node = (place_heights[other] >> HEIGHT_BITS) - 1u;
                        let pair = vec2i(link, refs[other]);
                        write_node(node, pair, low, high);
                        if (pair.x == 0 || pair.y == 0) { zero_parent[0] = node; }
                        link = i32(node);
                        let below = max(height_of(place_height), height_of(place_heights[other]));
                        place_height = (place_height >> HEIGHT_BITS << HEIGHT_BITS) | (below + 1u);
                    }
                }
                if (kept) { atomicOr(&stays[lane / 32u], 1u << (lane % 32u)); }
            }
            workgroupBarrier();
            var before = 0u;
            var after = 0u;
            for (var word = 0u; word < 8u; word += 1u) {
                let bits = atomicLoad(&stays[word]);
                after += countOneBits(bits);
                if (word < lane / 32u) { before += countOneBits(bits); }
                if (word == lane / 32u) { before += countOneBits(bits & ((1u << (lane % 32u)) - 1u)); }
            }
            if (kept) {
                lows[PAD + before] = vec4f(low, 0.0);
                highs[PAD + before] = high;
                refs[before] = link;
                place_heights[before] = place_height;
            }
            if (lane == 0u) { left = after; }
            // Nothing has merged, so nothing will.
            round = select(round + 1u, most_rounds, after == count);
        }
        let count = workgroupUniformLoad(&left);
        if (lane < count) {
            next_clusters[start + lane] = Cluster(
                lows[PAD + lane].xyz, refs[lane], highs[PAD + lane], place_heights[lane]);
        }
        if (lane == 0u) { next_counts[1u + chunk] = count; }
        storageBarrier();
        if (last && lane == 0u) {
            if (total > 1u && refs[0] > 0) { move_root(u32(refs[0])); }
            if (total == 1u && refs[0] < 0) {
                write_node(0u, vec2i(refs[0], EMPTY_CHILD), lows[PAD].xyz, highs[PAD]);
            }
        }
        workgroupBarrier();
    }
}
