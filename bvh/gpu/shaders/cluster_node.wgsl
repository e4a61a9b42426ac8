// What a node says of its subtree, and what two say together: see bvh/gpu/cluster_node.py.
// Needs `parameters`, `nodes` and `boxes`.

struct Part {
    cost: vec3f,
    stack: u32,
    counts: vec3u,
    depth: u32,
}

struct Joined {
    part: Part,
    shares: u32,
}

fn rounded(value: f32) -> f32 {
    return bitcast<f32>(bitcast<u32>(value) ^ parameters.zero);
}

// Half the surface area.
fn area(box: Box) -> f32 {
    let side = clamp(box.high - box.low, vec3f(SHORTEST_SIDE), vec3f(LONGEST_SIDE));
    let two = rounded(rounded(side.x * side.y) + rounded(side.y * side.z));
    return rounded(two + rounded(side.z * side.x));
}

fn box_of(child: i32) -> Box {
    if (child >= 0) { return Box(nodes[child].low, nodes[child].high); }
    let at = 3u * u32(~child);
    return make_box(boxes[at], boxes[at + 1u], boxes[at + 2u]);
}

fn leaf_part() -> Part {
    return Part(vec3f(0.0), 0u, vec3u(0u), 0x11000000u);
}

fn empty_part() -> Part {
    return Part(vec3f(0.0), 0u, vec3u(0u), 0u);
}

fn byte_of(word: u32, width: u32) -> u32 {
    return word >> (8u * (width - 1u)) & 0xffu;
}

// Slots that a child given `width` of them uses; an EMPTY one's depth word is 0.
fn used_of(part: Part, width: u32) -> u32 {
    if (width == 1u) { return min(part.depth, 1u); }
    return part.depth >> (16u + 4u * width) & 0xfu;
}

// Slots that go left where a node fills `width`; of its own four where `width` is 4.
fn share_of(shares: u32, width: u32) -> u32 {
    if (width == 4u) { return shares & 3u; }
    return shares >> (2u * width - 2u) & 3u;
}

// The children of a wide node with `shares` over (left, right), in order.
fn slots_of(left: i32, right: i32, shares: u32) -> vec4i {
    var slots = vec4i(EMPTY_CHILD);
    var used = 0u;
    let narrow = (shares & NARROW) != 0u;
    let share = share_of(shares, 4u);
    var waiting: array<vec2i, 4>;
    waiting[0] = vec2i(right, select(4 - i32(share), 1, narrow));
    waiting[1] = vec2i(left, select(i32(share), 1, narrow));
    var count = 2u;
    while (count > 0u && used < 4u) {
        count -= 1u;
        let item = waiting[count];
        if (item.x == EMPTY_CHILD) { continue; }
        var split = 0u;
        if (item.x >= 0 && item.y > 1) { split = share_of(nodes[item.x].shares, u32(item.y)); }
        if (split == 0u) {
            slots[used] = item.x;
            used += 1u;
        } else {
            waiting[count] = vec2i(nodes[item.x].right, item.y - i32(split));
            waiting[count + 1u] = vec2i(nodes[item.x].left, i32(split));
            count += 2u;
        }
    }
    return slots;
}

// Whether a node with these children is stored as FP16.
fn wants_half(slots: vec4i) -> bool {
    if (parameters.node_format == 0u) { return false; }
    var exact = 0.0;
    var stored = 0.0;
    for (var c = 0u; c < 4u; c += 1u) {
        if (slots[c] == EMPTY_CHILD) { continue; }
        let box = box_of(slots[c]);
        var outward: Box;
        for (var axis = 0u; axis < 3u; axis += 1u) {
            let low = half_down(box.low[axis]);
            let high = half_up(box.high[axis]);
            if (!half_in_range(low) || !half_in_range(high)) { return false; }
            outward.low[axis] = half_value(low);
            outward.high[axis] = half_value(high);
        }
        exact = rounded(exact + area(box));
        stored = rounded(stored + area(outward));
    }
    return parameters.node_format == 1u || stored <= rounded(1.25 * exact);
}

// A node of half area `own_area` over `l` and `r`.
fn join(l: Part, r: Part, own_area: f32) -> Joined {
    let opened_2 = rounded(l.cost.x + r.cost.x);
    let three = vec2f(rounded(l.cost.x + r.cost.y), rounded(l.cost.y + r.cost.x));
    let four = vec3f(rounded(l.cost.x + r.cost.z), rounded(l.cost.y + r.cost.y),
        rounded(l.cost.z + r.cost.x));
    let share_3 = select(1u, 2u, three.y < three.x);
    let opened_3 = min(three.x, three.y);
    var share_4 = select(1u, 2u, four.y < four.x);
    let least = min(four.x, four.y);
    share_4 = select(share_4, 3u, four.z < least);

    let levels = 1u + max(l.stack >> 24u, r.stack >> 24u);
    var shares = share_4;
    var given = vec2u(share_4, 4u - share_4);
    var opened_4 = min(least, four.z);
    var used = used_of(l, given.x) + used_of(r, given.y);
    var below = max(byte_of(l.stack, given.x), byte_of(r.stack, given.y));
    if (max(used, max(used, 1u) - 1u + below) > levels + SPARE_ENTRIES) {
        shares |= NARROW;
        given = vec2u(1u);
        opened_4 = opened_2;
        used = used_of(l, 1u) + used_of(r, 1u);
        below = max(byte_of(l.stack, 1u), byte_of(r.stack, 1u));
    }
    let own = rounded(own_area + opened_4);
    var cost = vec3f(own);
    var counts = vec3u(1u + l.counts[given.x - 1u] + r.counts[given.y - 1u]);
    var stack = vec3u(max(used, max(used, 1u) - 1u + below));
    var depth = vec3u(1u + max(byte_of(l.depth, given.x), byte_of(r.depth, given.y)));
    depth &= vec3u(0xffu);
    var slots = vec2u(1u);
    if (opened_2 < own) {
        shares |= 1u << 2u;
        cost.y = opened_2;
        counts.y = l.counts.x + r.counts.x;
        stack.y = max(byte_of(l.stack, 1u), byte_of(r.stack, 1u));
        depth.y = max(byte_of(l.depth, 1u), byte_of(r.depth, 1u));
        slots.x = used_of(l, 1u) + used_of(r, 1u);
    }
    if (opened_3 < own) {
        let other = 3u - share_3;
        shares |= share_3 << 4u;
        cost.z = opened_3;
        counts.z = l.counts[share_3 - 1u] + r.counts[other - 1u];
        stack.z = max(byte_of(l.stack, share_3), byte_of(r.stack, other));
        depth.z = max(byte_of(l.depth, share_3), byte_of(r.depth, other));
        slots.y = used_of(l, share_3) + used_of(r, other);
    }
    let stacks = stack.x | stack.y << 8u | stack.z << 16u | levels << 24u;
    let depths = depth.x | depth.y << 8u | depth.z << 16u | slots.x << 24u | slots.y << 28u;
    return Joined(Part(cost, stacks, counts, depths), shares);
}

// 64-byte units of a node's wide nodes, from those of its children.
fn join_units(l: vec3u, r: vec3u, shares: u32) -> vec3u {
    var given = share_of(shares, 4u);
    var rest = 4u - given;
    if ((shares & NARROW) != 0u) {
        given = 1u;
        rest = 1u;
    }
    let size = select(2u, 1u, (shares & HALF) != 0u);
    var units = vec3u(size + l[given - 1u] + r[rest - 1u]);
    if (share_of(shares, 2u) != 0u) { units.y = l.x + r.x; }
    let share_3 = share_of(shares, 3u);
    if (share_3 != 0u) { units.z = l[share_3 - 1u] + r[2u - share_3]; }
    return units;
}
