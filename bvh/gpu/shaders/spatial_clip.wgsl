// Boxes of the two parts of a block that a plane cuts: see bvh/gpu/spatial_clip.py.

struct Parts {
    left: OrderedBox,
    right: OrderedBox,
}

fn corner(block: u32, index: u32) -> vec3f {
    let at = CORNER_WORDS * block + 3u * index;
    return vec3f(corners[at], corners[at + 1u], corners[at + 2u]);
}

fn reciprocal(value: f32) -> f32 {
    var guess = bitcast<f32>(0x7ef311c7u - bitcast<u32>(value));
    for (var step = 0u; step < 3u; step += 1u) {
        guess = rounded(guess * (2.0 - rounded(value * guess)));
    }
    return guess;
}

fn clip_block(block: u32, whole: OrderedBox, axis: u32, plane: f32) -> Parts {
    var parts = Parts(no_box(), no_box());
    let on_plane = ordered(vec3f(plane)).x;
    for (var i = 0u; i < CORNERS; i += 1u) {
        let a = corner(block, i);
        let at = a[axis];
        let point = OrderedBox(ordered(a), ordered(a));
        if (at <= plane) { parts.left = join(parts.left, point); }
        if (at >= plane) { parts.right = join(parts.right, point); }
        for (var j = i + 1u; j < CORNERS; j += 1u) {
            let b = corner(block, j);
            let bt = b[axis];
            if (!((at < plane && bt > plane) || (at > plane && bt < plane))) { continue; }
            var first = a;
            var second = b;
            if (at > bt) {
                first = b;
                second = a;
            }
            let length = second[axis] - first[axis];
            let exponent = bitcast<u32>(length) >> 23u;
            var crossing = OrderedBox(min(ordered(first), ordered(second)),
                max(ordered(first), ordered(second)));
            if (exponent >= 16u && exponent <= 240u) {
                let share = rounded((plane - first[axis]) * reciprocal(length));
                let point = first + rounded_3((second - first) * share);
                let error = rounded_3(max(abs(first), abs(second)) * CROSSING_ERROR);
                crossing = OrderedBox(ordered(point - error), ordered(point + error));
            }
            crossing.low[axis] = on_plane;
            crossing.high[axis] = on_plane;
            parts.left = join(parts.left, crossing);
            parts.right = join(parts.right, crossing);
        }
    }
    return Parts(meet(parts.left, whole), meet(parts.right, whole));
}

fn meet(a: OrderedBox, b: OrderedBox) -> OrderedBox {
    return OrderedBox(max(a.low, b.low), min(a.high, b.high));
}

// By value: -0 and 0 are one plane.
fn is_box(box: OrderedBox) -> bool {
    return all(value_of(box.low) <= value_of(box.high));
}
