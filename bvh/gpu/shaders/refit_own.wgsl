// Boxes in a workgroup's memory, six words each: the stage declares `own: array<i32>`.

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
