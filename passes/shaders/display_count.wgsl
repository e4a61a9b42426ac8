// A pixel's count of one ray type, or its difference from the baseline's. Needs `frame`, `display`,
// `slot_counts` and `baseline`, which is one plane.

struct PixelCount {
    sent: bool, // a ray of the type, in the frame or in the baseline
    value: i32,
}

fn pixel_count(index: u32) -> PixelCount {
    let slots = frame.width * frame.height * display.slots_per_pixel;
    var nodes = 0u;
    var count = 0u;
    var was = 0u;
    for (var kind = 0u; kind < display.slots_per_pixel; kind += 1u) {
        let slot = index * display.slots_per_pixel + kind;
        let here = slot_counts[display.field * slots + slot];
        let there = select(0u, baseline[slot], display.difference != 0u);
        nodes += slot_counts[SLOT_NODES * slots + slot];
        if (display.field == SLOT_STACK_MAX) {
            count = max(count, here);
            was = max(was, there);
        } else {
            count += here;
            was += there;
        }
    }
    return PixelCount(nodes + was > 0u, i32(count - was));
}
