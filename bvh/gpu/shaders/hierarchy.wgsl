// Children, leaf range and way up of every inner node of the radix tree: see bvh/gpu/hierarchy.py.

#import bvh.gpu.build_records
#import bvh.gpu.tree_order_records
#import "bvh/gpu/shaders/box.wgsl"

@group(0) @binding(0) var<uniform> parameters: BuildParameters;
@group(0) @binding(1) var<storage, read> state: array<BuildState>;
@group(0) @binding(2) var<storage, read> keys: array<u32>;
@group(0) @binding(3) var<storage, read> payload: array<u32>;
@group(0) @binding(4) var<storage, read_write> deepest: array<u32>;
@group(0) @binding(5) var<storage, read_write> children: array<vec2i>;
@group(0) @binding(6) var<storage, read_write> ranges: array<vec2u>;
@group(0) @binding(7) var<storage, read_write> parents: array<u32>;

// Leading bits of a key that this attempt looks at.
fn compared_bits(kept: u32) -> u32 {
    if (parameters.attempt == 0u) { return 32u * parameters.key_words; }
    let zeros = 32u * parameters.key_words - 3u * parameters.grid_bits - parameters.size_bits;
    let by_place = 32u - countLeadingZeros(kept - 1u);
    return min(zeros + max(parameters.max_depth, by_place) - by_place, 32u * parameters.key_words);
}

// Leading bits that leaf j shares with leaf i, whose key is (low, high); -1 where j is no leaf.
fn prefix(i: i32, low: u32, high: u32, j: i32, kept: i32, compared: u32) -> i32 {
    if (j < 0 || j >= kept) { return -1; }
    var shared_bits: u32;
    if (parameters.key_words == 1u) {
        shared_bits = countLeadingZeros(low ^ keys[j]);
    } else {
        shared_bits = countLeadingZeros(high ^ keys[2 * j + 1]);
        if (shared_bits == 32u) { shared_bits += countLeadingZeros(low ^ keys[2 * j]); }
    }
    if (shared_bits >= compared) {
        shared_bits = compared + countLeadingZeros(u32(i ^ j));
    }
    return i32(shared_bits);
}

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    let i = i32(flat_index(group, groups, lane));
    let kept = i32(state[0].kept);
    if (parameters.attempt == 1u && deepest[0] < parameters.max_depth) { return; }
    if (i == 0) {
        parents[0] = NO_PARENT;
        // Nobody reads `deepest` in a first attempt.
        if (parameters.attempt == 0u) {
            deepest[0] = 0u;
            deepest[1] = 0u;
        }
    }
    if (kept < 2) {
        if (i == 0) {
            children[0] = vec2i(select(EMPTY_CHILD, ~i32(payload[0]), kept == 1), EMPTY_CHILD);
            ranges[0] = vec2u(0u);
        }
        return;
    }
    if (i >= kept - 1) { return; }
    let compared = compared_bits(u32(kept));
    let words = i32(parameters.key_words);
    let low = keys[words * i];
    let high = keys[words * i + words - 1];
    var step = 1;
    var outside = prefix(i, low, high, i - 1, kept, compared);
    let after = prefix(i, low, high, i + 1, kept, compared);
    if (after <= outside) {
        step = -1;
        outside = after;
    }
    var reach = 2;
    while (prefix(i, low, high, i + reach * step, kept, compared) > outside) { reach *= 2; }
    var length = 0;
    for (var stride = reach / 2; stride > 0; stride /= 2) {
        if (prefix(i, low, high, i + (length + stride) * step, kept, compared) > outside) {
            length += stride;
        }
    }
    let end = i + length * step;
    let own = prefix(i, low, high, end, kept, compared);
    var split = 0;
    var stride = length;
    loop {
        stride = (stride + 1) / 2;
        if (prefix(i, low, high, i + (split + stride) * step, kept, compared) > own) { split += stride; }
        if (stride <= 1) { break; }
    }
    let cut = i + split * step + min(step, 0);
    let first = min(i, end);
    let last = max(i, end);
    var left = cut;
    var right = cut + 1;
    // No two nodes have a child in common, so each parent has one writer.
    if (first == cut) {
        left = ~i32(payload[cut]);
    } else {
        parents[cut] = u32(i);
    }
    if (last == cut + 1) {
        right = ~i32(payload[cut + 1]);
    } else {
        parents[cut + 1] = u32(i) | RIGHT_CHILD;
    }
    children[i] = vec2i(left, right);
    ranges[i] = vec2u(u32(first), u32(last));
}
