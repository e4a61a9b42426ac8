// Levels of the pyramid that a workgroup makes in its own memory: see bvh/gpu/refit.py. The stage
// declares `own: array<i32>` in workgroup memory, for 340 boxes of six words.

fn keep_own(slot: u32, box: OrderedBox) {
    let at = 6u * slot;
    own[at] = box.low.x;
    own[at + 1u] = box.low.y;
    own[at + 2u] = box.low.z;
    own[at + 3u] = box.high.x;
    own[at + 4u] = box.high.y;
    own[at + 5u] = box.high.z;
}

fn own_box(slot: u32) -> OrderedBox {
    let at = 6u * slot;
    return OrderedBox(vec3i(own[at], own[at + 1u], own[at + 2u]),
        vec3i(own[at + 3u], own[at + 4u], own[at + 5u]));
}

fn store_box(at: u32, box: OrderedBox) {
    let packed = pack_box(box);
    boxes[3u * at] = packed[0];
    boxes[3u * at + 1u] = packed[1];
    boxes[3u * at + 2u] = packed[2];
}

// The first 256 boxes of `own` are tile `tile` of the level `bottom`, inverted ones past its end:
// four levels above it, as far as the pyramid goes. `bottom` is the same for the whole workgroup.
fn join_tile(lane: u32, tile: u32, bottom: vec2u) {
    var level = bottom;
    var below = 0u;
    for (var width = 64u; width > 0u && level.y > PYRAMID_TOP; width /= 4u) {
        workgroupBarrier();
        level = level_above(level);
        let above = below + 4u * width;
        if (lane < width) {
            let four = below + 4u * lane;
            let box = join(join(own_box(four), own_box(four + 1u)),
                join(own_box(four + 2u), own_box(four + 3u)));
            keep_own(above + lane, box);
            let at = tile * width + lane;
            if (at < level.y) { store_box(level.x + at, box); }
        }
        below = above;
    }
}
