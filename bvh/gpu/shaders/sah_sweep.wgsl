// Whole subtrees of at most SWEEP primitives, every position of every axis tried: see
// bvh/gpu/binned_sah_sweep.py. A workgroup takes the nodes that begin in its SWEEP places, a lane
// a primitive; all its nodes of one depth are split in one round.

#import bvh.gpu.binned_sah_records
#import "bvh/gpu/shaders/sah_boxes.wgsl"

@group(0) @binding(0) var<uniform> parameters: SahParameters;
@group(0) @binding(1) var<storage, read> state: array<u32>;
@group(0) @binding(2) var<storage, read> heads: array<SahHead>;
@group(0) @binding(3) var<storage, read> work: array<vec4u>;
@group(0) @binding(4) var<storage, read> other_work: array<vec4u>;
@group(0) @binding(5) var<storage, read_write> children: array<i32>;
@group(0) @binding(6) var<storage, read_write> bounds: array<u32>;

const LANES = 256u;
const UNUSED = 0xffffffffu;

// By lane: min x y z, max x; max y z, primitive, and of its node now first lane | count << 8 |
// depth << 16; centre (as bits) and its node's id.
var<workgroup> places_a: array<vec4u, LANES>;
var<workgroup> places_b: array<vec4u, LANES>;
var<workgroup> places_c: array<vec4u, LANES>;
var<workgroup> least_cost: array<atomic<u32>, LANES>; // by a node's first lane
var<workgroup> least_key: array<atomic<u32>, LANES>;
var<workgroup> marks: array<atomic<u32>, 8>; // a bit a lane
var<workgroup> open: u32;

// Marked lanes in [first, last).
fn marks_between(first: u32, last: u32) -> u32 {
    var found = 0u;
    for (var w = first / 32u; w * 32u < last; w += 1u) {
        var bits = atomicLoad(&marks[w]);
        if (w == first / 32u) { bits &= 0xffffffffu << (first % 32u); }
        if (last < w * 32u + 32u) { bits &= (1u << (last % 32u)) - 1u; }
        found += countOneBits(bits);
    }
    return found;
}

fn before(a: f32, at: u32, b: f32, bt: u32) -> bool {
    return a < b || (a == b && at <= bt);
}

fn box_at(lane: u32) -> OrderedBox {
    let a = places_a[lane];
    return OrderedBox(a.xyz, vec3u(a.w, places_b[lane].xy));
}

fn centre_at(lane: u32) -> vec3f {
    return bitcast<vec3f>(places_c[lane].xyz);
}

fn load_places(base: u32, lane: u32) {
    let kept = state[0];
    if (lane < 8u) { atomicStore(&marks[lane], 0u); }
    workgroupBarrier();
    var head = SahHead(0u, 0u, 0u);
    if (lane < SWEEP && base + lane < kept) { head = heads[base + lane]; }
    places_b[lane].w = lane | head.count << 8u | head.depth << 16u;
    places_c[lane].w = head.id;
    if (head.count > 0u) { atomicOr(&marks[lane / 32u], 1u << (lane % 32u)); }
    workgroupBarrier();
    // The last head at or before this lane.
    var first = UNUSED;
    for (var w = 0u; w <= lane / 32u; w += 1u) {
        var bits = atomicLoad(&marks[w]);
        if (w == lane / 32u) { bits &= 0xffffffffu >> (31u - lane % 32u); }
        if (bits != 0u) { first = 32u * w + firstLeadingBit(bits); }
    }
    var node = 0u;
    var id = 0u;
    if (first != UNUSED) {
        let found = places_b[first].w;
        if (lane - first < (found >> 8u & 0xffu)) {
            node = found;
            id = places_c[first].w;
        }
    }
    workgroupBarrier();
    if (node == 0u) {
        places_b[lane].w = 0u;
        return;
    }
    let at = 2u * (base + lane);
    var a: vec4u;
    var b: vec4u;
    // The root is in the first buffer, its children in the other, and so on.
    if ((node >> 16u & 1u) == 1u) {
        a = work[at];
        b = work[at + 1u];
    } else {
        a = other_work[at];
        b = other_work[at + 1u];
    }
    places_a[lane] = a;
    places_b[lane] = vec4u(b.xyz, node);
    let centre = centre_of(record_box(a, b));
    places_c[lane] = vec4u(bitcast<vec3u>(centre), id);
}

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    let base = (group.y * groups.x + group.x) * SWEEP;
    if (base >= state[0]) { return; }
    load_places(base, lane);
    for (var round = 0u; round < SWEEP; round += 1u) {
        workgroupBarrier();
        if (lane == 0u) { open = 0u; }
        if (lane < 8u) { atomicStore(&marks[lane], 0u); }
        atomicStore(&least_cost[lane], UNUSED);
        atomicStore(&least_key[lane], UNUSED);
        workgroupBarrier();
        let mine_a = places_a[lane];
        let mine_b = places_b[lane];
        let mine_c = places_c[lane];
        let first = mine_b.w & 0xffu;
        let count = mine_b.w >> 8u & 0xffu;
        let depth = mine_b.w >> 16u;
        let live = count > 1u;
        if (live) { open = 1u; }
        if (workgroupUniformLoad(&open) == 0u) { break; }

        // The cheapest cut right after this lane's primitive, over the three axes.
        let centre = bitcast<vec3f>(mine_c.xyz);
        var whole = no_box();
        var cost = UNUSED;
        var key = UNUSED;
        if (live) {
            var left_x = no_box();
            var left_y = no_box();
            var left_z = no_box();
            var right_x = no_box();
            var right_y = no_box();
            var right_z = no_box();
            var lefts = vec3u(0u);
            for (var other = first; other < first + count; other += 1u) {
                let box = box_at(other);
                let place = centre_at(other);
                if (before(place.x, other, centre.x, lane)) {
                    left_x = join(left_x, box);
                    lefts.x += 1u;
                } else {
                    right_x = join(right_x, box);
                }
                if (before(place.y, other, centre.y, lane)) {
                    left_y = join(left_y, box);
                    lefts.y += 1u;
                } else {
                    right_y = join(right_y, box);
                }
                if (before(place.z, other, centre.z, lane)) {
                    left_z = join(left_z, box);
                    lefts.z += 1u;
                } else {
                    right_z = join(right_z, box);
                }
            }
            whole = join(left_x, right_x);
            let scale = area_scale(whole);
            let left_area = vec3f(scaled_area(left_x, scale), scaled_area(left_y, scale),
                scaled_area(left_z, scale));
            let right_area = vec3f(scaled_area(right_x, scale), scaled_area(right_y, scale),
                scaled_area(right_z, scale));
            let most = most_below(depth, parameters.max_depth);
            for (var axis = 0u; axis < 3u; axis += 1u) {
                let left = lefts[axis];
                let right = count - left;
                if (right == 0u || max(left, right) > most) { continue; }
                let a = rounded(left_area[axis] * f32(left));
                let value = bitcast<u32>(a + rounded(right_area[axis] * f32(right)));
                // Of equal costs the evenest, then the first axis, then the first primitive.
                let uneven = max(left, right) - min(left, right);
                let rank = uneven << 16u | axis << 8u | (lane - first);
                if (value < cost || (value == cost && rank < key)) {
                    cost = value;
                    key = rank;
                }
            }
            atomicMin(&least_cost[first], cost);
        }
        workgroupBarrier();
        if (live && cost == atomicLoad(&least_cost[first])) { atomicMin(&least_key[first], key); }
        workgroupBarrier();
        var left = false;
        if (live) {
            let best = atomicLoad(&least_key[first]);
            let axis = best >> 8u & 3u;
            let last = first + (best & 0xffu);
            left = before(centre[axis], lane, centre_at(last)[axis], last);
            if (left) { atomicOr(&marks[lane / 32u], 1u << (lane % 32u)); }
        }
        workgroupBarrier();
        if (live) {
            let id = mine_c.w;
            let lefts = marks_between(first, first + count);
            let rank = marks_between(first, lane);
            let rights = count - lefts;
            let to = select(first + lefts + (lane - first - rank), first + rank, left);
            let child_first = select(first + lefts, first, left);
            let child_count = select(rights, lefts, left);
            let child_id = select(id + lefts, id + 1u, left);
            let node = child_first | child_count << 8u | (depth + 1u) << 16u;
            places_a[to] = mine_a;
            places_b[to] = vec4u(mine_b.xyz, node);
            places_c[to] = vec4u(mine_c.xyz, child_id);
            if (child_count == 1u) { children[2u * id + select(1u, 0u, left)] = ~i32(mine_b.z); }
            if (lane == first) {
                if (lefts > 1u) { children[2u * id] = i32(id + 1u); }
                if (rights > 1u) { children[2u * id + 1u] = i32(id + lefts); }
                let low = bitcast<vec3u>(value_of(whole.low));
                let high = bitcast<vec3u>(value_of(whole.high));
                for (var k = 0u; k < 3u; k += 1u) {
                    bounds[6u * id + k] = low[k];
                    bounds[6u * id + 3u + k] = high[k];
                }
            }
        }
    }
}
