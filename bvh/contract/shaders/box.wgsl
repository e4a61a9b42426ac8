// Ray against the four boxes of a node: contract ledger section 7, both rule sets. All numbers are
// bits; each vector holds one value of the four children.

struct Boxes {
    children: vec4u,
    low: array<vec4u, 3>, // bounds by axis
    high: array<vec4u, 3>,
}

fn load_box(node_type: u32) -> Boxes {
    var boxes: Boxes;
    boxes.children = load_quad(0u);
    if (node_type == NODE_BOX_FP16) {
        // Three words a child: xy of min, z of min and x of max, yz of max.
        let a = load_quad(1u);
        let b = load_quad(2u);
        let c = load_quad(3u);
        let first = vec4u(a.x, a.w, b.z, c.y);
        let second = vec4u(a.y, b.x, b.w, c.z);
        let third = vec4u(a.z, b.y, c.x, c.w);
        let mask = vec4u(0xffffu);
        let shift = vec4u(16u);
        boxes.low[0] = half_to_float4(first & mask);
        boxes.low[1] = half_to_float4(first >> shift);
        boxes.low[2] = half_to_float4(second & mask);
        boxes.high[0] = half_to_float4(second >> shift);
        boxes.high[1] = half_to_float4(third & mask);
        boxes.high[2] = half_to_float4(third >> shift);
    } else {
        // Six words a child; words 28..31 are not read.
        let a = load_quad(1u);
        let b = load_quad(2u);
        let c = load_quad(3u);
        let d = load_quad(4u);
        let e = load_quad(5u);
        let f = load_quad(6u);
        boxes.low[0] = vec4u(a.x, b.z, d.x, e.z);
        boxes.low[1] = vec4u(a.y, b.w, d.y, e.w);
        boxes.low[2] = vec4u(a.z, c.x, d.z, f.x);
        boxes.high[0] = vec4u(a.w, c.y, d.w, f.y);
        boxes.high[1] = vec4u(b.x, c.z, e.x, f.z);
        boxes.high[2] = vec4u(b.y, c.w, e.y, f.w);
    }
    return boxes;
}

struct Interval {
    entry: vec4u,
    leave: vec4u,
}

// Where the ray enters and leaves each box: per plane a subtraction, then a product. Axis by axis,
// in a loop: see arithmetic_exact.wgsl.
fn box_interval(boxes: Boxes, ray: NodeRay) -> Interval {
    // A NaN loses against any number, so it is what nothing has been found yet.
    var interval = Interval(vec4u(QUIET_NAN), vec4u(QUIET_NAN));
    for (var plane = 0u; plane < 6u; plane += 1u) {
        let axis = plane >> 1u;
        let is_high = (plane & 1u) == 1u;
        let inverse = ray.inverse_direction[axis];
        let bound = select(boxes.low[axis], boxes.high[axis], is_high);
        let t = mul4(sub4(bound, vec4u(ray.origin[axis])), vec4u(inverse));
        // -0 counts as not negative, NaN (gpurt only) as negative: it fails "at least 0".
        let forward = (inverse & SIGN) == 0u && !is_nan(inverse) || inverse == SIGN;
        if (is_high != forward) {
            interval.entry = max_num4(interval.entry, t);
        } else {
            interval.leave = min_num4(interval.leave, t);
        }
    }
    return interval;
}

fn intersect_box_chapter(boxes: Boxes, ray: NodeRay, growth: u32, sort: bool) -> vec4u {
    let interval = box_interval(boxes, ray);
    let positive = less4(vec4u(0u), interval.entry);
    // Growth is an integer added to the exit's bits, a negative zero first made positive. A
    // negative exit misses whatever this makes of it.
    let grown = min((interval.leave & vec4u(MAGNITUDE)) + vec4u(growth), vec4u(INFINITY));
    let hit = less_equal4(vec4u(0u), interval.leave)
        & less4(interval.entry, vec4u(ray.extent))
        & less_equal4(interval.entry, grown);
    var key = select(vec4u(INFINITY), select(vec4u(0u), interval.entry, positive), hit);
    var child = select(vec4u(INVALID_POINTER), boxes.children, hit);
    if (!sort) { return child; }
    // Comparators (0,1)(2,3), (0,2)(1,3), (1,2): exchanged where the left key is greater.
    var swap = key.xz > key.yw;
    child = vec4u(select(child.x, child.y, swap.x), select(child.y, child.x, swap.x),
                  select(child.z, child.w, swap.y), select(child.w, child.z, swap.y));
    key = vec4u(select(key.x, key.y, swap.x), select(key.y, key.x, swap.x),
                select(key.z, key.w, swap.y), select(key.w, key.z, swap.y));
    swap = key.xy > key.zw;
    child = vec4u(select(child.xy, child.zw, swap), select(child.zw, child.xy, swap));
    key = vec4u(select(key.xy, key.zw, swap), select(key.zw, key.xy, swap));
    if (key.y > key.z) { child = child.xzyw; }
    return child;
}

fn intersect_box_gpurt(boxes: Boxes, ray: NodeRay, growth: u32, sort: bool) -> vec4u {
    let interval = box_interval(boxes, ray);
    let none = is_nan4(interval.entry) | is_nan4(interval.leave);
    // The entry clamped at 0, either zero written as +0, so that keys compare as integers.
    var key = select(vec4u(0u), interval.entry, less4(vec4u(0u), interval.entry));
    let leave = min_num4(interval.leave, vec4u(ray.extent));
    // 1 + growth * 2^-24 rounds to half of the growth in ULPs of 1, ties to even.
    let half_growth = growth >> 1u;
    let factor = ONE + half_growth + (half_growth & growth & 1u);
    let hit = less_equal4(key, mul4(leave, vec4u(factor))) & !none;
    var child = select(vec4u(INVALID_POINTER), boxes.children, hit);
    if (!sort) { return child; }
    // Comparators (0,2)(1,3), (0,1)(2,3), (1,2): an invalid left pointer always gives way.
    var swap = gpurt_swaps(child.xy, child.zw, key.xy, key.zw);
    child = vec4u(select(child.xy, child.zw, swap), select(child.zw, child.xy, swap));
    key = vec4u(select(key.xy, key.zw, swap), select(key.zw, key.xy, swap));
    swap = gpurt_swaps(child.xz, child.yw, key.xz, key.yw);
    child = vec4u(select(child.x, child.y, swap.x), select(child.y, child.x, swap.x),
                  select(child.z, child.w, swap.y), select(child.w, child.z, swap.y));
    key = vec4u(select(key.x, key.y, swap.x), select(key.y, key.x, swap.x),
                select(key.z, key.w, swap.y), select(key.w, key.z, swap.y));
    if (gpurt_swaps(child.yy, child.zz, key.yy, key.zz).x) { child = child.xzyw; }
    return child;
}

fn gpurt_swaps(left: vec2u, right: vec2u, left_key: vec2u, right_key: vec2u) -> vec2<bool> {
    let invalid = vec2u(INVALID_POINTER);
    return (left == invalid) | ((right != invalid) & (right_key < left_key));
}
