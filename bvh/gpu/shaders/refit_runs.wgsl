// The box of a run of blocks, from the pyramid over their boxes: see bvh/gpu/refit.py. The stage
// binds `boxes: array<vec2i>`.

// First box of a level, and how many there are.
fn level_above(level: vec2u) -> vec2u {
    return vec2u(level.x + level.y, (level.y + 3u) / 4u);
}

fn find_level(blocks: u32, number: u32) -> vec2u {
    var level = vec2u(0u, blocks);
    for (var k = 0u; k < number; k += 1u) { level = level_above(level); }
    return level;
}

fn stored_box(at: u32) -> OrderedBox {
    return unpack_box(boxes[3u * at], boxes[3u * at + 1u], boxes[3u * at + 2u]);
}

// Boxes [first, last], four at most. Loads past the end repeat the last one, so that none waits
// for another.
fn join_four(first: u32, last: u32) -> OrderedBox {
    let a = stored_box(first);
    let b = stored_box(min(first + 1u, last));
    let c = stored_box(min(first + 2u, last));
    let d = stored_box(last);
    return join(join(a, b), join(c, d));
}

// Blocks [first, last]: at every level the rest of the four that it starts in and of the four that
// it ends in; what lies between is whole boxes of the level above.
fn run_box(blocks: u32, first: u32, last: u32) -> OrderedBox {
    if (first == last) { return stored_box(first); }
    var level = vec2u(0u, blocks);
    var left = first;
    var right = last;
    var box = inverted_box();
    loop {
        let split = min(left | 3u, right);
        box = join(box, join_four(level.x + left, level.x + split));
        if (split == right) { break; }
        box = join(box, join_four(level.x + (right & ~3u), level.x + right));
        left = left / 4u + 1u;
        right = right / 4u;
        if (left == right) { break; }
        right -= 1u;
        level = level_above(level);
    }
    return box;
}
